#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# selastic doctor on a real Slurm: a good site, and sites with mistakes. tests/unit/test_doctor.c has each rule.
# Takes 35 s

bats_require_minimum_version 1.5.0
load helpers
load elastic

setup_file() {
    # A network for each node, where that can be: the last test closes ports of one.
    export NETWORKS=
    ((UID)) || ! unshare --net --mount --uts true || NETWORKS=--netns
    # shellcheck disable=SC2086 # no word if there are none
    testbed_up --nodes 3 $NETWORKS
    # The doctor looks at all services of a user, those of other files, too.
    export TB_USER_HOME=$TB_WORK/home
    as_user mkdir -m 0700 "$TB_USER_HOME"
    cp "$TREE/tests/system/steps.py" "$TB_WORK/"
    make_good
}

teardown_file() { testbed_down; }

teardown() { cancel_all; }

# What a testbed has on purpose, and a site should not: its plugin is required, other users may write where jobs keep
# their state, and all snapshots of a node's jobs lie below a directory of the testbed.
make_good() {
    local etc=$TB_DIR/etc
    sed -i 's/^required/optional/' "$etc/plugstack.conf"
    grep -vE '^(snapshot_dir|state_dir)' "$etc/elastic.conf" >"$TB_WORK/good.conf"
    chmod 644 "$TB_WORK/good.conf"
    # The simple form has no such line. slurmctld does not start with a plugin that there is not.
    grep -qi '^JobSubmitPlugins=.*elastic' "$etc/slurm.conf" || ! has_plugin job_submit_elastic ||
        echo 'JobSubmitPlugins=elastic' >>"$etc/slurm.conf"
    cp "$etc/slurm.conf" "$etc/plugstack.conf" "$TB_HOME/"
    on_testbed scontrol reconfigure
}

# ids: of the mistakes in the JSON on stdin; with an argument those of this level. Not the one of every site
# without our job_submit.
ids() {
    json_value "*sorted({f['id'] for f in s['findings'] if f['level'] == '${1:-mistake}'} - {'$(unbuilt)'})"
}
unbuilt() { has_plugin job_submit_elastic || echo job-submit; }

# doctor CONF [ARGUMENT...]: as root, with that elastic.conf; prints JSON.
doctor() { on_testbed env ELASTIC_CONF="$1" selastic doctor --json "${@:2}"; }

@test "a good site has no mistakes, for root and for a user" {
    need_plugin job_submit_elastic
    run -0 on_testbed env ELASTIC_CONF="$TB_WORK/good.conf" selastic doctor
    echo "$output"
    [[ ${lines[-1]} == "no mistakes" ]]
    run -0 as_user env ELASTIC_CONF="$TB_WORK/good.conf" selastic doctor --json
    [[ $(json_value 's["mistakes"], s["release"]' <<<"$output") == "0 $(as_user selastic --version | awk '{ print $2 }')" ]]
    run -0 as_user env ELASTIC_CONF="$TB_WORK/good.conf" selastic doctor --here --json
    [[ ${#lines[@]} == 1 ]]
}

@test "mistakes in slurm.conf, plugstack.conf and the hooks are found, and what to do" {
    local etc=$TB_DIR/etc
    sed -i 's/^optional/required/' "$etc/plugstack.conf"
    ln -s /nonexistent/50-elastic "$etc/epilog.d/60-gone"
    # The last line of a key counts.
    cat >>"$etc/slurm.conf" <<'CONF'
PrologEpilogTimeout=10
KillWait=2
MinJobAge=20
PrivateData=nodes
CONF
    sed -i 's/^\(PartitionName=spare .*\)GraceTime=[0-9]*/\1GraceTime=0/' "$etc/slurm.conf"
    on_testbed scontrol reconfigure
    run -1 doctor "$TB_WORK/good.conf"
    report=$output
    run -1 on_testbed env ELASTIC_CONF="$TB_WORK/good.conf" selastic doctor
    words=$output
    rm "$etc/epilog.d/60-gone"
    cp "$TB_HOME/slurm.conf" "$TB_HOME/plugstack.conf" "$etc/"
    on_testbed scontrol reconfigure
    echo "$words"
    [[ $(ids <<<"$report") == "hook-broken hook-limit kill-wait pool-grace private-nodes spank-required" ]]
    [[ $(ids note <<<"$report") == *job-age* ]]
    [[ $words == *"epilog.d/60-gone, a link that leads nowhere"* ]]
    [[ $words == *"->   in slurm.conf: PrologEpilogTimeout=45, or more"* ]]
    [[ $words == *$'\nmistakes: '$(has_plugin job_submit_elastic && echo 6 || echo 7) ]]
}

@test "mistakes in elastic.conf and in the plugin's file are found" {
    local etc=$TB_DIR/etc
    printf 'color = red\n' >"$TB_WORK/wrong.conf"
    echo "optional $TB_HOME/spank_elastic.so" >"$etc/plugstack.conf"
    run -1 doctor "$TB_WORK/wrong.conf"
    absent=$output
    echo nothing >"$TB_HOME/spank_elastic.so"
    { cat "$TB_WORK/good.conf" && printf '[pool nowhere]\n[pool whole]\nqos = none\n'; } >"$TB_WORK/pools.conf"
    sed -i '1i state_dir = /dev/shm/elastic-%u-%j' "$TB_WORK/pools.conf"
    run -1 doctor "$TB_WORK/pools.conf"
    broken=$output
    : >"$etc/plugstack.conf"
    run -1 doctor "$TB_WORK/no.conf"
    none=$output
    cp "$TB_HOME/plugstack.conf" "$etc/"
    [[ $(ids <<<"$absent") == "conf-wrong spank-absent" ]]
    [[ $absent == *"wrong.conf:1: unknown key 'color'"* ]]
    echo "$broken"
    # /dev/shm belongs to everybody, and is memory.
    [[ $(ids <<<"$broken") == "plugin-broken pool-partition pool-preempt-off pool-qos-accounting pool-tier state-memory state-unsafe" ||
        $(ids <<<"$broken") == "plugin-broken pool-partition pool-preempt-off pool-qos-accounting state-memory state-unsafe" ]]
    [[ $(ids <<<"$none") == "conf-wrong spank-not-named" || $(ids <<<"$none") == "conf-absent spank-not-named" ]]
}

# mistaken ID COMMAND [UNDO]: what is wrong after the command, beside what a good site has, is that and no more.
# CONF is the elastic.conf that root's doctor reads, or DOCTOR another way to ask.
mistaken() {
    local found
    CONF=$TB_WORK/one.conf
    cp "$TB_WORK/good.conf" "$CONF"
    eval "$2"
    found=$(${DOCTOR:-on_testbed} env ELASTIC_CONF="$CONF" selastic doctor --json |
        json_value '*sorted({f["id"] for f in s["findings"]} - set("'"$GOOD"'".split()))')
    eval "${3:-}"
    [[ $found == "$1" ]] || { echo "$2: $found, not $1" >&2; return 1; }
    COUNT=$((COUNT + 1))
}

# in_slurm_conf SED-SCRIPT; as_before: slurm.conf
in_slurm_conf() { sed -i "$1" "$TB_DIR/etc/slurm.conf" && on_testbed scontrol reconfigure; }
as_before() { cp "$TB_HOME/slurm.conf" "$TB_DIR/etc/" && on_testbed scontrol reconfigure; }

@test "one mistake at a time is found, and nothing else" {
    local inst port hook own script state spank=$TB_DIR/etc/plugstack.conf
    COUNT=0
    GOOD=$(on_testbed env ELASTIC_CONF="$TB_WORK/good.conf" selastic doctor --json | json_value '*{f["id"] for f in s["findings"]}')
    # shellcheck disable=SC2034 # of what is evaluated
    port=$(sed -n 's/^SlurmctldPort=//p' "$TB_DIR/etc/slurm.conf")
    mistaken ports-ephemeral 'sed -i "1i port_range = 40000-40100" "$CONF"'
    mistaken ports-slurm 'sed -i "1i port_range = $((port - 10))-$((port + 10))" "$CONF"'
    mistaken conf-no-pool 'sed -i "/^default_pool/d; /^\[pool/,\$d" "$CONF"'
    mistaken pool-grace-short 'sed -i "s/^grace = .*/grace = 600/" "$CONF"'
    mistaken snapshot-unsafe 'sed -i "1i snapshot_dir = $TB_WORK" "$CONF"'
    ln -s /run "$TB_HOME/link"
    chown -h 65534 "$TB_HOME/link"
    mistaken snapshot-unsafe 'sed -i "1i snapshot_dir = $TB_HOME/link" "$CONF"'
    # Below a directory of all users anybody makes root's first, until root has it.
    # shellcheck disable=SC2034 # of what is evaluated
    state='sed -i "1i state_dir = $TB_HOME/scratch/%u/jobs/%c-%j" "$CONF"'
    mkdir -m 1777 "$TB_HOME/scratch"
    mistaken state-missing "$state"
    install -d -m 0700 -o 65534 "$TB_HOME/scratch/root"
    mistaken state-stranger "$state"
    chown 0 "$TB_HOME/scratch/root"
    mistaken '' "$state"
    chmod 0777 "$TB_HOME/scratch" # where anybody renames what root has
    mistaken state-unsafe "$state"
    mistaken snapshot-absent 'sed -i "1i snapshot_dir = /nonexistent/snapshots" "$CONF"'
    mistaken pool-qos-accounting 'sed -i "s/^\[pool elastic\]/&\nqos = low/" "$CONF"'
    DOCTOR=as_user mistaken conf-unreadable 'chmod 0 "$CONF"' 'chmod 644 "$CONF"'
    mistaken pool-down 'on_testbed scontrol update partition=elastic state=down' 'on_testbed scontrol update partition=elastic state=up'
    mistaken pool-tier 'in_slurm_conf "/^PartitionName=elastic /s/PriorityTier=[0-9]*/PriorityTier=99/"' as_before
    mistaken pool-grace 'in_slurm_conf "/^PartitionName=elastic /s/GraceTime=[0-9]*/GraceTime=0/"' as_before
    mistaken private-nodes 'in_slurm_conf "\$aPrivateData=nodes"' as_before
    mistaken kill-wait 'in_slurm_conf "\$aKillWait=2"' as_before
    ! has_plugin job_submit_elastic || mistaken job-submit 'in_slurm_conf "/^JobSubmitPlugins=/d"' as_before
    mistaken hook-missing 'in_slurm_conf "/^Epilog=/d"' as_before
    mistaken hook-limit 'in_slurm_conf "\$aPrologEpilogTimeout=10"' as_before
    mistaken job-age 'in_slurm_conf "\$aMinJobAge=20"' as_before
    mistaken conf-wrong 'sed -i "1i color = red" "$CONF"'
    mistaken pool-partition 'printf "[pool nowhere]\n" >>"$CONF"'
    mistaken spank-required 'sed -i "s/^optional/required/" "$spank"' 'cp "$TB_HOME/plugstack.conf" "$spank"'
    # shellcheck disable=SC2034 # of what is evaluated
    own=$(grep -o '/[^ ]*/spank_elastic.so' "$spank")
    mistaken plugin-unsafe 'install -D -m 0646 "$own" "$TB_HOME/loose/spank_elastic.so"; sed -i "s|$own|$TB_HOME/loose/spank_elastic.so|" "$spank"' 'cp "$TB_HOME/plugstack.conf" "$spank"'
    mistaken spank-absent 'echo "optional $TB_WORK/none/spank_elastic.so" >"$spank"' 'cp "$TB_HOME/plugstack.conf" "$spank"'
    mistaken spank-not-named ': >"$spank"' 'cp "$TB_HOME/plugstack.conf" "$spank"'
    mistaken hook-broken 'ln -s /nonexistent/50-elastic "$TB_DIR/etc/epilog.d/60-gone"' 'rm "$TB_DIR/etc/epilog.d/60-gone"'
    mistaken hook-none 'in_slurm_conf "s|^Epilog=.*|Epilog=$TB_DIR/etc/none.d/*|"' as_before
    mistaken program-writable 'chmod o+w "$TB_DIR/etc/epilog.d"' 'chmod o-w "$TB_DIR/etc/epilog.d"'
    if ((UID == 0)); then
        mistaken program-owner 'chown nobody "$TB_DIR/etc/epilog.d"' 'chown root "$TB_DIR/etc/epilog.d"'
    fi
    hook=$TB_DIR/etc/epilog.d/50-elastic
    # shellcheck disable=SC2034
    own=$(readlink -f "$hook")
    # shellcheck disable=SC2034
    script=${own/%elastic-hook/epilog.d\/50-elastic}
    mistaken hook-mode 'rm "$hook"; printf "#!/bin/sh\nhook=%s\n" "$script" >"$hook"; chmod 644 "$hook"' 'ln -sf "$own" "$hook"'
    inst=$TB_DIR/inst/libexec/slurm-elastic
    if [[ -e $inst ]]; then # a copy, which may be broken
        mistaken program-missing 'mv "$inst/elastic-notice" "$inst/away"' 'mv "$inst/away" "$inst/elastic-notice"'
        mistaken program-mode 'chmod 755 "$inst/elastic-flush"' 'chmod 711 "$inst/elastic-flush"'
        mistaken program-writable 'chmod o+w "$inst/elastic-runs"' 'chmod o-w "$inst/elastic-runs"'
    fi
    "$TESTBED" stop-controller --dir "$TB_DIR"
    mistaken slurmctld true '"$TESTBED" start-controller --dir "$TB_DIR"'
    echo "$COUNT mistakes"
    ((COUNT >= $(has_plugin job_submit_elastic && echo 30 || echo 29)))
}

@test "--nodes: all alike; then a node with another elastic.conf, and one without" {
    run as_user env ELASTIC_CONF="$TB_WORK/good.conf" selastic doctor --nodes 'n[1-3]' --partition batch --timeout 50
    echo "$output"
    [[ ${lines[-1]} == "no mistakes" || $(unbuilt) ]]
    [[ $output != *" differs on "* ]]
    # Root's would keep users from making theirs.
    { echo "state_dir = $TB_WORK/shared/%c-%j" && cat "$TB_WORK/good.conf"; } >"$TB_WORK/shared.conf"
    run doctor "$TB_WORK/shared.conf" --nodes n1 --partition batch --timeout 50
    echo "$output"
    [[ $(ids <<<"$output") != *nodes-* && ! -e $TB_WORK/shared ]]
    { cat "$TB_WORK/good.conf" && echo '# another'; } >"$TB_WORK/other.conf"
    script prolog <<SH
#!/bin/bash
case \$SLURMD_NODENAME in
    n2) echo "export ELASTIC_CONF=$TB_WORK/other.conf" ;;
    n3) echo "export ELASTIC_CONF=$TB_WORK/pools.conf" ;;
esac
SH
    printf 'color = red\n' >"$TB_WORK/pools.conf"
    # srun gets nothing of the caller's environment that would change its job, but PATH.
    as_user mkdir "$TB_WORK/bin"
    script bin/srun <<SH
#!/bin/bash
exec $(command -v srun) --task-prolog=$TB_WORK/prolog "\$@"
SH
    run -1 as_user env ELASTIC_CONF="$TB_WORK/good.conf" PATH="$TB_WORK/bin:$PATH" \
        "$(as_user sh -c 'command -v selastic')" doctor --json --nodes 'n[1-3]' --partition batch --timeout 50
    echo "$output"
    [[ $(ids <<<"$output") == "nodes-conf nodes-mistake" ]]
    [[ $output == *"elastic.conf differs on n2,n3"* && $output == *"n3: "*"unknown key 'color'"* ]]
    run -1 as_user selastic doctor --nodes , --timeout 5
    [[ ${#lines[@]} == 1 && $output == *"--nodes=, names no nodes"* ]]
    run -1 as_user selastic doctor --nodes n9 --partition batch --timeout 5
    [[ $output == "selastic: error: "* ]]
}

@test "--job: why a job has its size, and what happened last, in five lines" {
    job=$(train 1:2 100000 0.2)
    wait_for 60 size_is "$job" 2
    run -0 as_user selastic doctor --job "$job"
    echo "$output"
    [[ ${#lines[@]} == 5 ]]
    [[ ${lines[0]} == "Size                running, 2 nodes, allowed 1:2" ]]
    [[ ${lines[2]} == "Why not more        MAX is 2" ]]
    [[ ${lines[3]} == "What happened last  "*" ago: grow to 2 nodes: "* ]]
    [[ $(as_user selastic doctor --job "$job" --json | json_value 's["job"], s["why_not_more"]') == "$job MAX is 2" ]]
    run -1 as_user selastic doctor --job 999999
    [[ ${#lines[@]} == 1 ]]
}

@test "--nodes: a node that cannot connect to another one is named" {
    local space
    [[ $NETWORKS ]] || skip "no network namespaces on this machine"
    space=elastic-$(sed -n 's/^SlurmctldPort=//p' "$TB_DIR/etc/slurm.conf")-n2
    # As a firewall would: Slurm's own ports are open.
    ip -n "$space" rule add pref 10 ipproto tcp dport 23000-27999 prohibit
    run -1 as_user env ELASTIC_CONF="$TB_WORK/good.conf" selastic doctor --json --nodes 'n[1-3]' --partition batch --timeout 50
    ip -n "$space" rule delete pref 10
    echo "$output"
    [[ $(ids <<<"$output") == nodes-ports ]]
    [[ $output == *"nodes cannot connect to each other: n2 to n3, port "*" (Permission denied)"* ]]
}

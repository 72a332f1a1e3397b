#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# scripts/testbed: what it promises in doc/internals/testbed.md.
# shellcheck disable=SC2001,SC2030,SC2031 # each test is a subshell, and TB_DIR is its own
# Takes 135 s

load helpers

setup_file() {
    testbed_up --stock --nodes 4 --grace 600
}

teardown_file() {
    testbed_down
}

teardown() {
    # Why Slurm did so, of a test that has failed.
    [[ $BATS_TEST_COMPLETED ]] || tail -n 12 "$TB_DIR"/log/slurm*.log 2>/dev/null || true
    [[ ! -e $TB_HOME/other ]] || "$TESTBED" down --dir "$TB_HOME/other"
    if [[ -e $TB_DIR ]]; then
        cancel_all
    fi
}

# other OPTION...: a second testbed beside the file's own, for as_user and the like. Its jobs have
# the same numbers, so their output goes elsewhere.
other() {
    TB_DIR=$TB_HOME/other
    TB_WORK=$(mktemp -d "$TB_HOME/work.XXXX")
    chown "$TB_USER" "$TB_WORK"
    "$TESTBED" up --dir "$TB_DIR" "$@"
}

nothing_left_of() {
    local left
    left=$(processes_of "$1")
    if [[ -e $1 || -n $left ]]; then
        ls -lA "$1" >&2 || true
        printf 'left: %s\n' "$left" >&2
        return 1
    fi
}

refused() {
    run -1 "$TESTBED" "$@"
    echo "$output"
    # Where only the simple form is possible, that is said before anything is tried.
    [[ ${lines[0]} != "testbed: simple form: "* ]] || lines=("${lines[@]:1}")
    [[ ${#lines[@]} -eq 1 && ${lines[0]} == "testbed: "* ]]
}

job_of_four_nodes() {
    script four.sh <<'JOB'
#!/bin/bash
srun bash -c 'echo "$SLURMD_NODENAME $(id -un)"'
JOB
}

# Its tasks make a file ready.NODE once they would notice SIGTERM, and term.NODE when it comes; then
# they leave. (Through srun: srun may lose what a task says while its step is being cancelled.)
polite_job() {
    script polite.sh <<'JOB'
#!/bin/bash
srun bash -c 'at=$SLURM_SUBMIT_DIR/$SLURM_JOB_ID
    trap "touch $at.term.$SLURMD_NODENAME; exit 0" TERM
    touch $at.ready.$SLURMD_NODENAME
    sleep 300 &
    wait'
JOB
}

# tasks_are JOB COUNT WORD: whether so many tasks of a polite job have come so far.
tasks_are() {
    [[ $(find "$TB_WORK" -name "$1.$3.*" | wc -l) -eq $2 ]]
}

@test "an ordinary user's job runs on all four nodes" {
    id=$(submit -N4 "$(job_of_four_nodes)")
    wait_for 15 job_is "$id" COMPLETED
    [ "$(sort "$TB_WORK/$id.out")" = "$(printf "n%d $TB_USER\n" 1 2 3 4)" ]
}

@test "jobs share a node unless they are exclusive" {
    one=$(submit -w n1 -n1 --wrap 'sleep 300')
    two=$(submit -w n1 -n1 --wrap 'sleep 300')
    alone=$(submit -w n1 --exclusive --wrap 'sleep 300')
    wait_for 15 job_is "$one" RUNNING
    wait_for 15 job_is "$two" RUNNING
    [ -n "$(job_processes "$one" n1)" ] && [ -z "$(job_processes "$one" n2)" ]
    job_is "$alone" PENDING
    as_user scancel "$one" "$two"
    wait_for 15 job_is "$alone" RUNNING
}

@test "a job of the higher tier gets its nodes as soon as the lower one has left" {
    low=$(submit -p elastic -N4 --exclusive "$(polite_job)")
    wait_for 15 tasks_are "$low" 4 ready
    began=$EPOCHREALTIME
    high=$(submit -N2 --wrap hostname)
    wait_for 20 job_is "$high" COMPLETED
    [ "$(seconds_since "$began")" -lt 300 ] # the grace time is 600
    wait_for 15 job_ended "$low"
    # It was asked. Not all its tasks need to have heard of it: srun, which is asked as well, has them killed.
    [ -n "$(compgen -G "$TB_WORK/$low.term.*")" ]
}

@test "all listen on 127.0.0.1 only" {
    ports=$("$TESTBED" status --dir "$TB_DIR" | awk '$3 ~ /^[0-9]+$/ && $4 == "running" {print $3}')
    [ "$(wc -w <<<"$ports")" -eq 5 ]
    for port in $ports; do
        [ "$(ss -Htln "sport = :$port" | awk '{print $4}')" = "127.0.0.1:$port" ]
    done
}

@test "env makes a shell use the testbed, and nothing of an outer Slurm" {
    run -0 env SLURM_JOB_ID=7 SBATCH_PARTITION=none bash -c '
        eval "$("$1" env --dir "$2")"; echo "$SLURM_CONF ${SLURM_JOB_ID-no} ${SBATCH_PARTITION-no}"' \
        - "$TESTBED" "$TB_DIR"
    [ "$output" = "$TB_DIR/etc/slurm.conf no no" ]
}

@test "the state of jobs lies in the testbed's directory" {
    as_user mkdir "$TB_DIR/jobs/x" "$TB_DIR/snapshots/x"
    as_user rmdir "$TB_DIR/jobs/x" "$TB_DIR/snapshots/x"
    says "$TB_DIR/etc/elastic.conf" "^munge_socket = $TB_DIR/"
}

@test "a second up in the same directory is refused and disturbs nothing" {
    refused up --stock --dir "$TB_DIR"
    [[ $output == *"is up in $TB_DIR; take it down with: scripts/testbed down"* ]]
    nodes_are 4 idle
}

@test "testbeds started at once do not see each other" {
    dirs=("$TB_HOME/a" "$TB_HOME/b" "$TB_HOME/c")
    pids=()
    for dir in "${dirs[@]}"; do
        "$TESTBED" up --stock --nodes 2 --dir "$dir" 3>&- &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do
        wait "$pid"
    done
    ports=$(cat "${dirs[@]/%//etc/slurm.conf}" "$TB_DIR/etc/slurm.conf" |
        grep -oE '\b(Slurmctld)?Port=[0-9]+')
    [ "$(wc -l <<<"$ports")" -eq 14 ]
    [ -z "$(sed 's/.*=//' <<<"$ports" | sort | uniq -d)" ]
    for dir in "${dirs[@]}"; do
        TB_DIR=$dir as_user srun -N2 true
        "$TESTBED" down --dir "$dir"
        nothing_left_of "$dir"
    done
    nodes_are 4 idle
}

@test "down with running jobs leaves no process and no file" {
    other --stock --nodes 2
    stray=$(script stray.sh <<'JOB'
#!/bin/bash
trap '' TERM
(setsid sleep 300 >/dev/null 2>&1 &)
srun bash -c 'trap "" TERM; touch $SLURM_JOB_ID.ready.$SLURMD_NODENAME; sleep 300; sleep 300'
JOB
    )
    id=$(submit -N2 "$stray")
    wait_for 15 tasks_are "$id" 2 ready
    as_user srun -N1 --overcommit sleep 300 3>&- &
    client=$!
    bystander=$(as_user bash -c 'sleep 300 >/dev/null 2>&1 3>&- & echo $!')
    [ "$(processes_of "$TB_DIR" | wc -l)" -gt 10 ]
    "$TESTBED" down --dir "$TB_DIR"
    kill -0 "$bystander" # has the testbed's environment, but is no part of a job
    kill "$bystander"
    wait "$client" || true
    nothing_left_of "$TB_DIR"
    TB_DIR=$TB_HOME/testbed
    nodes_are 4 idle
}

@test "down after slurmctld was killed leaves nothing" {
    other --stock --nodes 2
    id=$(submit -N2 "$(polite_job)")
    wait_for 15 tasks_are "$id" 2 ready
    kill -9 "$("$TESTBED" status --dir "$TB_DIR" | awk '$1 == "slurmctld" {print $2}')"
    is_dead() { ! "$TESTBED" status --dir "$TB_DIR" >"$TB_HOME/status" && says "$TB_HOME/status" '^slurmctld .*dead'; }
    wait_for 20 is_dead
    "$TESTBED" down --dir "$TB_DIR"
    nothing_left_of "$TB_DIR"
}

@test "a signal to up leaves nothing" {
    TB_DIR=$TB_HOME/other
    mkdir "$TB_HOME/blind" # no node is ever seen idle there, so that up is still at work
    printf '#!/bin/sh\nexit 1\n' >"$TB_HOME/blind/sinfo"
    chmod +x "$TB_HOME/blind/sinfo"
    for signal in INT TERM; do
        # A shell starts background commands with SIGINT ignored; env undoes that.
        PATH=$TB_HOME/blind:$PATH env --default-signal=INT "$TESTBED" up --stock --nodes 8 --dir "$TB_DIR" 3>&- &
        up=$!
        wait_for 60 says "$TB_DIR/run/pids" slurmd
        kill -s "$signal" "$up"
        ! wait "$up"
        nothing_left_of "$TB_DIR"
    done
}

@test "an installation of Slurm is used where it is, or refused" {
    run -1 "$TESTBED" up --stock --slurm /nonexistent --dir "$TB_HOME/none"
    [ "$output" = "testbed: --slurm /nonexistent: there is no sbin/slurmctld" ]
    # Its programs go before those of PATH.
    mkdir -p "$TB_HOME/slurm/sbin" "$TB_HOME/slurm/lib/slurm"
    touch "$TB_HOME/slurm/lib/slurm/select_cons_tres.so"
    printf '#!/bin/sh\n[ "$1" = -V ] && echo slurm 22.05.8 || echo "of the other Slurm"\n' >"$TB_HOME/slurm/sbin/slurmctld"
    chmod +x "$TB_HOME/slurm/sbin/slurmctld"
    ELASTIC_SLURM=$TB_HOME/slurm run -1 "$TESTBED" up --stock --dir "$TB_HOME/none"
    [[ $output == *"Slurm has no "*"slurmctld has ended"*"of the other Slurm"* ]]
    nothing_left_of "$TB_HOME/none"
}

@test "a daemon that cannot start is shown with its log, and nothing stays" {
    mkdir "$TB_HOME/bin"
    printf '#!/bin/sh\necho "slurmctld: fatal: no luck" >&2\nexit 1\n' >"$TB_HOME/bin/slurmctld"
    chmod +x "$TB_HOME/bin/slurmctld"
    PATH=$TB_HOME/bin:$PATH run -1 "$TESTBED" up --stock --dir "$TB_HOME/none"
    [[ $output == *"slurmctld has ended"*"fatal: no luck"*"nothing is left"* ]]
    nothing_left_of "$TB_HOME/none"
}

@test "GPUs are granted and numbered, and nodes have processors of their own" {
    [ "$UID" -eq 0 ]
    other --stock --nodes 2 --gpus-per-node 2 --own-cpus
    run -0 as_user srun -N2 --gpus-per-node=2 bash -c 'echo "gpus=$CUDA_VISIBLE_DEVICES"'
    [ "$output" = $'gpus=0,1\ngpus=0,1' ]
    run ! as_user srun -N1 --gpus-per-node=3 true
    run -0 as_user srun --quiet -N2 nproc
    (($(nproc) == 1 || lines[0] + lines[1] == $(nproc)))
}

@test "with accounting, QOS high displaces QOS elastic and sacct knows of it" {
    need_database
    other --stock --nodes 2 --gpus-per-node 1 --dbd --grace 600
    low=$(submit -p elastic --qos elastic -N2 --exclusive "$(polite_job)")
    wait_for 15 tasks_are "$low" 2 ready
    began=$EPOCHREALTIME
    high=$(submit --qos high -N1 --gpus-per-node=1 --wrap true)
    wait_for 20 job_is "$high" COMPLETED
    [ "$(seconds_since "$began")" -lt 300 ]
    accounted() {
        # A preempted job that ends well by itself is PREEMPTED in later Slurms.
        [ "$(as_user sacct -nPX -j "$low,$high" -o qos,state,partition | sed s/PREEMPTED/COMPLETED/)" = \
            $'elastic|COMPLETED|elastic\nhigh|COMPLETED|batch' ]
    }
    wait_for 20 accounted
    run ! as_user sbatch --qos nosuch --wrap true
    "$TESTBED" down --dir "$TB_DIR"
    nothing_left_of "$TB_DIR"
}

# reaches FROM TO: whether something on one node can connect to the slurmd of another.
reaches() {
    as_user srun --quiet --overlap -w "$1" timeout 3 bash -c "exec 3<>/dev/tcp/$2/$(sed -n "s/^NodeName=$2 .* Port=\\([0-9]*\\) .*/\\1/p" "$TB_DIR/etc/slurm.conf")" 2>"$TB_HOME/reaches"
}

@test "a node can be cut off, and be killed with all that is on it" {
    unshare --net --mount --uts true || skip "no network namespaces on this machine"
    other --stock --nodes 3 --netns --slurmd-timeout 60
    port=$(sed -n 's/^SlurmctldPort=//p' "$TB_DIR/etc/slurm.conf")
    run -0 as_user srun -N3 --label hostname
    [ "$(sort <<<"$output")" = $'0: n1\n1: n2\n2: n3' ]
    wait_for 20 reaches n1 n2
    "$TESTBED" cut --dir "$TB_DIR" n2
    run ! reaches n1 n2
    "$TESTBED" mend --dir "$TB_DIR" n2
    wait_for 20 reaches n1 n2
    id=$(submit -w n3 "$(polite_job)")
    wait_for 15 tasks_are "$id" 1 ready
    [ -n "$(ip netns pids "elastic-$port-n3")" ]
    mkdir -p "$TB_DIR/snapshots/elastic-0-1.0-n"{2,3}
    "$TESTBED" crash --dir "$TB_DIR" n3
    [ -z "$(ip netns pids "elastic-$port-n3")" ]
    [ "$(cd "$TB_DIR/snapshots" && echo *)" = elastic-0-1.0-n2 ]
    refused crash --dir "$TB_DIR" n4
    [ "$output" = "testbed: node n4: want one of n1 to n3" ]
    "$TESTBED" boot --dir "$TB_DIR" n3
    as_user scancel "$id" # Slurm does not look for what has just begun
    wait_for 30 nodes_are 3 idle
    run -0 as_user srun -w n3 hostname
    "$TESTBED" down --dir "$TB_DIR"
    nothing_left_of "$TB_DIR"
    [[ $(ip netns list) != *"elastic-$port"* && $(ip link show) != *"elastic$port"* ]]
}

@test "without --netns a node can be killed as well, but not cut off" {
    id=$(submit -w n4 "$(polite_job)")
    wait_for 15 tasks_are "$id" 1 ready
    refused cut --dir "$TB_DIR" n4
    [ "$output" = "testbed: cut needs a testbed that was started with --netns" ]
    refused boot --dir "$TB_DIR" n4
    "$TESTBED" crash --dir "$TB_DIR" n4
    [ -z "$(job_processes "$id" n4)" ]
    [[ $("$TESTBED" status --dir "$TB_DIR") == *"slurmd.n4 "*dead* ]]
    "$TESTBED" boot --dir "$TB_DIR" n4
    cancel_all
    wait_for 30 nodes_are 4 idle
    run -0 as_user srun -w n4 true
}

# No cgroup and no mount of a testbed that is gone: nothing has its port in its name, nor lies below its directory.
nothing_of_the_kernel_left() {
    [[ -z $(find /sys/fs/cgroup -maxdepth 2 -name "slurm-elastic-$1" 2>/dev/null) ]]
    ! grep -F " $2" /proc/self/mountinfo
}

@test "nodes of the realistic form have mounts and limits of their own; nothing of them stays" {
    need_real_form
    TB_DIR=$TB_HOME/other
    TB_WORK=$(mktemp -d "$TB_HOME/work.XXXX")
    chown "$TB_USER" "$TB_WORK"
    "$TESTBED" up --stock --nodes 2 --dir "$TB_DIR"
    port=$(sed -n 's/^SlurmctldPort=//p' "$TB_DIR/etc/slurm.conf")
    [ "$(ps -o user= -p "$("$TESTBED" status --dir "$TB_DIR" | awk '$1 == "slurmctld" {print $2}')")" = slurm ]
    run -0 as_user srun -N2 -n2 --mem=100 bash -c 'ls -A /tmp /dev/shm | tr "\n" " "; touch /tmp/mine /dev/shm/mine; sort -u /proc/self/cgroup | grep -c "slurm_$SLURMD_NODENAME/.*/job_"'
    [ "$(sort -u <<<"$output")" = "/dev/shm: /tmp: 3" ] || [ "$(sort -u <<<"$output")" = "/dev/shm:  /tmp: 3" ]
    run ! as_user srun -N1 --mem=50 /usr/bin/python3 -c 'b"x" * 200_000_000'
    [[ $output == *"Out Of Memory"* ]]
    id=$(submit -N2 "$(polite_job)")
    wait_for 15 tasks_are "$id" 2 ready
    "$TESTBED" crash --dir "$TB_DIR" n2
    [ ! -e "/sys/fs/cgroup/freezer/slurm-elastic-$port/n2" ]
    "$TESTBED" boot --dir "$TB_DIR" n2
    "$TESTBED" status --dir "$TB_DIR" | awk '$1 == "slurmctld" || $1 == "slurmd.n1" {print $2}' | xargs kill -9
    "$TESTBED" down --dir "$TB_DIR"
    nothing_left_of "$TB_DIR"
    nothing_of_the_kernel_left "$port" "$TB_DIR"
    # A start that fails, and a start that is killed.
    mkdir "$TB_HOME/deaf"
    printf '#!/bin/sh\nexit 1\n' >"$TB_HOME/deaf/sinfo"
    chmod +x "$TB_HOME/deaf/sinfo"
    for signal in TERM KILL; do
        PATH=$TB_HOME/deaf:$PATH "$TESTBED" up --stock --nodes 2 --dir "$TB_DIR" 3>&- &
        up=$!
        wait_for 60 says "$TB_DIR/run/pids" slurmd.n2
        port=$(sed -n 's/^SlurmctldPort=//p' "$TB_DIR/etc/slurm.conf")
        kill -s "$signal" "$up"
        ! wait "$up"
        [[ $signal == TERM ]] || "$TESTBED" down --dir "$TB_DIR"
        nothing_left_of "$TB_DIR"
        nothing_of_the_kernel_left "$port" "$TB_DIR"
    done
}

@test "the mount namespace of a node has a lower number than those of its jobs, also if its processor got new numbers" {
    local processors own cpu
    need_real_form
    # shellcheck source=scripts/testbed.d/namespace.sh
    . "$TREE/scripts/testbed.d/namespace.sh"
    choose_namespace_cpu
    [[ $NAMESPACE_LIMIT ]] || skip "there is one row of numbers"
    processors=$(own_processors)
    : >"$TB_HOME/mounts"
    for cpu in $(tr , '\n' <<<"$processors" | awk -F- '{ for (i = $1; i <= $NF; i++) print i }'); do
        own=$(number_of_namespace "$TREE/scripts/testbed.d/own-mounts" "$cpu" 1 "$TB_HOME/mounts" "$processors")
        [[ $own -lt $(number_of_namespace taskset -c "$cpu" unshare --mount --) ]]
        choose_namespace_cpu
        [[ $own -lt $(number_of_namespace taskset -c "$NAMESPACE_CPU" unshare --mount --) ]]
    done
}

@test "where the realistic form is not possible the simple form starts, and says why" {
    need_real_form
    ((UID == 0)) && [[ -d /sys/fs/cgroup/freezer ]] || skip "nothing to hide here"
    TB_DIR=$TB_HOME/other
    run -0 unshare --mount -- bash -c 'mount -t tmpfs none /sys/fs/cgroup/freezer && exec "$@"' - "$TESTBED" up --stock --nodes 1 --dir "$TB_DIR"
    [[ $output == *"testbed: simple form: no hierarchy of cgroup v1 at "* ]]
    says "$TB_DIR/etc/slurm.conf" '^ProctrackType=proctrack/linuxproc'
    [[ $("$TESTBED" env --dir "$TB_DIR") == *" TESTBED_SIMPLE=no\\ hierarchy"* ]]
}

@test "an installation that the user cannot reach is copied" {
    mkdir -m 0700 "$TB_HOME/hidden"
    mkdir -p "$TB_HOME/hidden/inst/bin"
    printf '#!/bin/sh\necho here\n' >"$TB_HOME/hidden/inst/bin/elasticrun"
    chmod 0700 "$TB_HOME/hidden/inst/bin/elasticrun"
    package=share/slurm-elastic/python/slurm_elastic
    mkdir -p "$TB_HOME/hidden/inst/$package"
    touch "$TB_HOME/hidden/inst/$package/__init__.py"
    mkdir -p "$TB_HOME/hidden/inst/libexec/slurm-elastic"
    install -m 0711 "$TB_HOME/hidden/inst/bin/elasticrun" "$TB_HOME/hidden/inst/libexec/slurm-elastic/elastic-flush"
    other --nodes 1 --prefix "$TB_HOME/hidden/inst" >"$TB_HOME/up.out"
    says "$TB_HOME/up.out" 'plugins: none .not installed: spank_elastic job_submit/elastic'
    [ "$(as_user elasticrun)" = here ]
    [ "$(as_user srun elasticrun)" = here ]
    run -0 as_user /usr/bin/python3 -c 'import slurm_elastic; print(slurm_elastic.__file__)'
    [ "$output" = "$TB_DIR/inst/$package/__init__.py" ]
    [ "$(stat -c %a "$TB_DIR/inst/libexec/slurm-elastic/elastic-flush")" = 711 ]
}

@test "installed prolog and epilog scripts run, other files beside them do not" {
    for kind in prolog epilog; do
        hooks=$TB_HOME/inst/libexec/slurm-elastic/$kind.d
        mkdir -p "$hooks"
        printf '#!/bin/sh\ntouch "%s/%s.$SLURMD_NODENAME.$SLURM_JOB_ID"\n' "$TB_HOME" "$kind" \
            >"$hooks/10-touch"
        chmod +x "$hooks/10-touch"
        echo "not a script" >"$hooks/README"
    done
    other --nodes 2 --prefix "$TB_HOME/inst"
    id=$(submit -N2 --wrap 'srun true')
    wait_for 15 job_is "$id" COMPLETED
    wait_for 30 nodes_are 2 idle
    [ "$(cd "$TB_HOME" && echo prolog.* epilog.*)" = \
        "prolog.n1.$id prolog.n2.$id epilog.n1.$id epilog.n2.$id" ]
}

@test "an ordinary user can have a testbed, too" {
    TB_DIR=$TB_WORK/own
    as_tester() {
        (cd / && setpriv --reuid="$TB_USER" --regid="$TB_USER" --init-groups -- "$@")
    }
    cp -R "$TREE/scripts" "$TB_WORK/scripts"
    as_tester "$TB_WORK/scripts/testbed" up --stock --nodes 2 --dir "$TB_DIR"
    run -0 as_tester env SLURM_CONF="$TB_DIR/etc/slurm.conf" srun -N2 id -un
    [ "$output" = "$TB_USER"$'\n'"$TB_USER" ]
    run -1 "$TESTBED" down --dir "$TB_DIR"
    [[ $output == *"run this as its owner"* ]]
    run -1 as_tester "$TB_WORK/scripts/testbed" up --stock --gpus-per-node 1 --dir "$TB_WORK/x"
    [[ $output == *"needs root"* ]]
    as_tester "$TB_WORK/scripts/testbed" down --dir "$TB_DIR"
    nothing_left_of "$TB_DIR"
    TB_DIR=$TB_HOME/testbed
}

@test "down removes only testbeds" {
    mkdir "$TB_HOME/precious"
    touch "$TB_HOME/precious/file"
    refused down --dir "$TB_HOME/precious"
    refused up --stock --dir "$TB_HOME/precious"
    [ -e "$TB_HOME/precious/file" ]
    refused down --dir "$TB_HOME/nothing-here"
    refused status --dir "$TB_HOME/nothing-here"
    refused env --dir "$TB_HOME/nothing-here"
}

@test "bad options are refused in one line that says what would be right" {
    refused up --nodes 0
    [ "$output" = "testbed: --nodes 0: want a whole number from 1 to 512" ]
    refused up --nodes many
    refused up --nodes
    refused up --gpus-per-node -1
    refused up --cpus-per-node 1000
    refused up --frobnicate
    [[ $output == *"unknown option --frobnicate"*"--help"* ]]
    refused up --stock=yes
    refused up --user no-such-user
    refused up --prefix /nonexistent
    [[ $output == *"--prefix /nonexistent"* ]]
    refused up --stock --dir '/tmp/with space'
    refused up --stock --dir /nonexistent/parent/dir
    refused up --stock --dir "/tmp/$(printf 'x%.0s' {1..90})"
    refused down --nodes 4
    refused up --slurmd-timeout 1
    refused up --simple --proctrack cgroup --dir "$TB_HOME/none"
    [ "$output" = "testbed: --proctrack cgroup: not in the simple form: by --simple" ]
    if ((UID == 0)); then
        refused up --real --dir /tmp/none
        [[ $output == "testbed: --real: "* ]]
    fi
    refused up --netns --nodes 251
    refused crash
    refused crash n1 n2
    refused sideways
    refused
    run -0 "$TESTBED" --help
    [[ $output == Usage:* ]]
}

#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# PMIx's own tools, and queries, at a running job: as its user, and as another one.
# Takes 20 s

load helpers
load elastic

setup_file() {
    testbed_up --nodes 3
    install -m 0755 "${top_builddir:-$TREE/build}/tests/system/pmix/probe" "$TB_WORK/probe"
    # Debian 12's own crash; these are the same but for that.
    tools=$("$TREE/scripts/setup" --print-pmix-tools) || return 1
    install -m 0755 "$tools/plookup" "$tools/pquery" "$TB_WORK/"
    JOB=$(submit --elastic=2:3 --elastic-grow=ask -N2 --ntasks-per-node=2 --exclusive -t 60 --wrap \
        "srun elasticrun bash -c 'timeout 200 $TB_WORK/probe publish query elastic.nodes pmix.qry.lptable >$TB_WORK/worker.\$RANK; exec sleep 3600'")
    export JOB
    wait_for 30 size_is "$JOB" 2
    RUN_DIR=$(find "$TB_DIR/snapshots" -maxdepth 1 -name "elastic-*-$JOB.*-n1")
    export RUN_DIR
}

teardown_file() { testbed_down; }

# tool COMMAND...: on node n1, as a user would type it there. (On a machine that is one node, without PMIX_HOSTNAME.)
tool() { as_user PMIX_HOSTNAME=n1 PMIX_SYSTEM_TMPDIR="$TB_DIR/snapshots" timeout 200 "$@"; }

# The second form is that of PMIx 7.
space_of() { tool pps 2>&1 | sed -n 's/^Active nspaces: //p; s/^Namespace \([^ ]*\) (.*/\1/p'; }
names_the_world() { grep -E "^(Active nspaces:|Namespace) $JOB\.0\.1\." <<<"$output"; }

@test "pps names the world, from the directory of all run directories or from the job's own" {
    run -0 tool pps
    echo "$output"
    names_the_world
    run -0 as_user PMIX_HOSTNAME=n1 PMIX_SYSTEM_TMPDIR="$RUN_DIR" timeout 200 pps
    names_the_world
    [[ $(show_json "$JOB" | json_value 's["pmix"]') == "on each node; on n1: PMIX_SYSTEM_TMPDIR=$RUN_DIR" ]]
}

@test "what is known on the node" {
    space=$(space_of)
    run -0 tool "$TB_WORK/probe" query "pmix.qry.ptable@$space" "pmix.qry.jst@$space" pmix.alist pmix.qry.psetnum pmix.qry.spawn
    echo "$output"
    [[ $output == *"$space 0 on n1 "*"$space 1 on n1 "*"$space 2 on n2 "*"$space 3 on n2 "* ]]
    [[ $output == *"pmix.qry.jst: SUCCESS"*"pmix.alist: n1,n2"*"pmix.qry.psetnum: 0"*"pmix.qry.spawn: "* ]]
    run -0 tool "$TB_WORK/probe" query "pmix.job.size@$space" "pmix.num.nodes@$space"
    [[ $output == *"pmix.job.size: 4"*"pmix.num.nodes: 2"* ]]
    run -0 tool "$TB_WORK/probe" query pmix.qry.keys
    [[ $output == *pmix.qry.ns,*pmix.time.remaining,*elastic.reason* ]]
}

@test "what the leader knows: sizes, time and reasons, as selastic says them" {
    run -0 tool "$TB_WORK/probe" query elastic.sizes elastic.nodes elastic.target elastic.generation elastic.reason \
        pmix.time.remaining pmix.query.alloc
    echo "$output"
    [[ $output == *"elastic.sizes: 2:3"*"elastic.nodes: 2"*"elastic.target: "*"elastic.generation: 1"* ]]
    left=$(sed -n 's/^pmix.time.remaining: //p' <<<"$output")
    ((left > 60 && left <= 3600))
    reasons=$(show_json "$JOB" | json_value 's["why_size"] + "\nWhy not more: " + s["why_not_more"]')
    [[ ${output%%, *} == *"elastic.reason: Why this size: ${reasons%%, *}"* ]]
}

@test "what nobody knows is answered at once" {
    for key in nobody.knows.this pmix.qry.qlst; do
        run -3 tool "$TB_WORK/probe" query "$key"
        [[ $output == NOT-SUPPORTED ]]
    done
    run -3 tool "$TB_WORK/probe" query pmix.qry.ptable@gone
    [[ $output == NOT-FOUND ]]
    run -3 tool "$TB_WORK/probe" query elastic.nodes nobody.knows.this
    [[ $output == QUERY-PARTIAL-SUCCESS ]]
}

@test "workers ask the same" {
    for rank in 0 1 2 3; do
        wait_for 30 says "$TB_WORK/worker.$rank" '^SUCCESS$'
        says "$TB_WORK/worker.$rank" '^elastic.nodes: 2$'
    done
    says "$TB_WORK/worker.3" ' 3 on n2 '
    run ! says "$TB_WORK/worker.3" ' 0 on n1 '
}

# Those of OpenPMIx 5 and later.
newer_tools() { [[ $(pkg-config --modversion pmix) != 4.* ]]; }

# values TEXT: what pquery was told, a word each. (It writes keys and values to two different outputs.) The tools of
# OpenPMIx 5 write some of them below the key, with blanks before.
values() { sed -nE 's/.*Value: ([^ ]+)$/\1/p; s/^    ([^ ]+)$/\1/p' <<<"$1" | tr , '\n' | sort -V | paste -sd ' '; }

# pquery of OpenPMIx 7.0.0rc1 frees the keys that it asks for before it asks, also where no server is (since openpmix's pull request 3984).
asks_with_freed_keys() {
    [[ $(pkg-config --modversion pmix) == 7.0.0rc1 ]] || return 1
    run timeout 200 env -i PATH="$PATH" "$TB_WORK/pquery" PMIX_QUERY_NAMESPACES
    ((status != 0)) && [[ $output == *PMIX_ERR_BAD_PARAM* ]]
}

@test "no pquery but that of OpenPMIx 7.0.0rc1 is excused, and only while it is broken" {
    TB_WORK=$BATS_TEST_TMPDIR
    printf '#!/bin/sh\necho "PMIx_Query_info returned: PMIX_ERR_BAD_PARAM"\nexit 229\n' >"$TB_WORK/pquery"
    chmod +x "$TB_WORK/pquery"
    pkg-config() { echo "$version"; }
    version=7.0.0rc1 && asks_with_freed_keys
    for version in 4.2.2 5.0.7 6.1.0 7.0.0rc2 7.0.0; do
        run ! asks_with_freed_keys
    done
    printf '#!/bin/sh\necho "PMIX_QUERY_NAMESPACES:"\n' >"$TB_WORK/pquery"
    version=7.0.0rc1
    run ! asks_with_freed_keys
}

@test "pquery asks for names and sizes, for what the leader knows, and for a table of processes" {
    ! asks_with_freed_keys || skip "this pquery asks with keys that it has freed"
    space=$(space_of)
    uri=$(head -n 1 "$RUN_DIR/pmix/pmix.n1.tool.elasticrun")
    pid=$(basename "$RUN_DIR"/pmix/pmix.n1.tool.[0-9]*)
    for server in --system-server-first "--namespace elasticrun" "--uri $uri" "--pid ${pid##*.}"; do
        # shellcheck disable=SC2086 # an option and its value
        run -0 tool "$TB_WORK/pquery" $server PMIX_QUERY_NAMESPACES
        echo "$output"
        [[ $(values "$output") == "$space" && $output == *"PMIX_QUERY_NAMESPACES:"* ]]
    done
    run -0 tool "$TB_WORK/pquery" --system-server-first "PMIX_JOB_SIZE[PMIX_NSPACE=$space]" PMIX_ALLOCATED_NODELIST PMIX_TIME_REMAINING
    echo "$output"
    [[ $(values "$output") =~ ^4\ ([0-9]+)\ n1\ n2$ ]]
    ((BASH_REMATCH[1] > 60 && BASH_REMATCH[1] <= 3600))
    run -0 tool "$TB_WORK/pquery" --system-server-first "PMIX_QUERY_PROC_TABLE[PMIX_NSPACE=$space]"
    echo "$output"
    for rank in 0 1 2 3; do
        grep -A1 "PROC: $space:$rank\$" <<<"$output" | grep -q "Hostname: n$((rank / 2 + 1))[[:space:]]"
    done
    run -209 tool "$TB_WORK/pquery" --system-server-first PMIX_QUERY_QUEUE_LIST
    [[ $output == *NOT[-_]SUPPORTED* ]]
    run -210 tool "$TB_WORK/pquery" --system-server-first "PMIX_JOB_SIZE[PMIX_NSPACE=gone]"
    [[ $output == *NOT[-_]FOUND* ]]
}

@test "plookup finds what processes have published for the job and for its node, and nothing else" {
    for rank in 0 1 2 3; do
        wait_for 30 says "$TB_WORK/worker.$rank" "^publish $rank: ok\$"
    done
    run -0 tool "$TB_WORK/plookup" job.0 job.3 node.1
    [[ $output == *"Key: job.0"*"Key: job.3"*"Key: node.1"* ]]
    # It ends with the low byte of the status, -46: not found. OpenPMIx 5 says the word for it.
    for key in nobody.has.published.this node.3 world.0; do
        run -210 tool "$TB_WORK/plookup" "$key"
        [[ $output == *"PMIx_Lookup failed: "@(-46|PMIX_ERR_NOT_FOUND)* ]]
    done
    # It waits until all is there, here never: -24, the time is over.
    run -232 tool "$TB_WORK/plookup" --wait 1 --timeout 1 job.0 nobody.has.published.this
    [[ $output == *"PMIx_Lookup failed: "@(-24|PMIX_ERR_TIMEOUT)* ]]
    run -0 tool "$TB_WORK/probe" lookup job.3
    [[ $output == "job.3: of rank 3"* ]]
    run -3 tool "$TB_WORK/probe" unpublish job.3
    [[ $output == NOT-SUPPORTED ]]
}

@test "pevent is heard; a tool that crashes once it is connected, as Debian 12's plookup does, harms nobody" {
    # That of OpenPMIx 5.0 takes no event at all.
    newer_tools || run -0 tool pevent --event -200 --range 4
    run tool plookup nobody.has.published.this
    echo "$status $output"
    ((status != 0 && status != 124))
    run -0 tool pps
}

@test "another user is not let in, knows he the address or not, and the job's own user still is" {
    ((UID == 0)) || skip "only root can be another user"
    uri=$(head -n 1 "$RUN_DIR/pmix/pmix.n1.tool.elasticrun")
    [[ $uri == elasticrun.0\;tcp4://127.0.0.1:* ]]
    other=(timeout 200 setpriv --reuid=nobody --regid=nogroup --clear-groups env -i PATH=/usr/bin:/bin)
    run -4 "${other[@]}" PMIX_SERVER_URI41="$uri" "$TB_WORK/probe" query elastic.nodes
    [[ $output == *UNREACH* ]]
    run "${other[@]}" PMIX_HOSTNAME=n1 PMIX_SYSTEM_TMPDIR="$RUN_DIR" pps
    ((status != 0 && status != 124))
    # -25 is PMIX_ERR_UNREACH, and -46 NOT_FOUND: the address is in a directory of the user.
    for address in PMIX_SYSTEM_TMPDIR="$RUN_DIR" PMIX_SERVER_URI41="$uri"; do
        run "${other[@]}" PMIX_HOSTNAME=n1 "$address" "$TB_WORK/plookup" job.0
        echo "$output"
        [[ $output == *"PMIx_tool_init failed: "@(-25|-46) ]]
    done
    for address in --system-server-first "--uri $uri"; do
        # shellcheck disable=SC2086 # an option and its value
        run "${other[@]}" PMIX_HOSTNAME=n1 PMIX_SYSTEM_TMPDIR="$RUN_DIR" "$TB_WORK/pquery" $address PMIX_QUERY_NAMESPACES
        echo "$output"
        [[ $output == *"PMIx_tool_init failed: "@(UNREACHABLE|PMIX_ERR_UNREACH|PMIX_ERR_NOT_FOUND) ]]
    done
    # A tool that says it were the user: it is the kernel that is asked.
    run -4 timeout 200 env -i PATH=/usr/bin:/bin PMIX_SERVER_URI41="$uri" "$TB_WORK/probe" query elastic.nodes
    run -0 as_user PMIX_SERVER_URI41="$uri" timeout 200 "$TB_WORK/probe" query elastic.nodes
    [[ $output == "elastic.nodes: 2"* ]]
    run -0 as_user PMIX_SERVER_URI41="$uri" timeout 200 "$TB_WORK/plookup" job.0
    size_is "$JOB" 2
    run ! grep -q 'lost it' "$TB_WORK/$JOB.out"
}

#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# PMIx's own tools, and queries, at a running job: as its user, and as another one.

# shellcheck disable=SC2034
BATS_TEST_TIMEOUT=60
load helpers
load elastic

setup_file() {
    testbed_up --nodes 3
    install -m 0755 "${top_builddir:-$TREE/build}/tests/system/pmix/probe" "$TB_WORK/probe"
    JOB=$(submit --elastic=2:3 --elastic-grow=ask -N2 --ntasks-per-node=2 --exclusive -t 10 --wrap \
        "srun elasticrun bash -c 'timeout 20 $TB_WORK/probe query elastic.nodes pmix.qry.lptable >$TB_WORK/worker.\$RANK; exec sleep 600'")
    export JOB
    wait_for 30 size_is "$JOB" 2
    RUN_DIR=$(find "$TB_DIR/snapshots" -maxdepth 1 -name "elastic-*-$JOB.*-n1")
    export RUN_DIR
}

teardown_file() { testbed_down; }

# tool COMMAND...: on node n1, as a user would type it there. (On a machine that is one node, without PMIX_HOSTNAME.)
tool() { as_user PMIX_HOSTNAME=n1 PMIX_SYSTEM_TMPDIR="$TB_DIR/snapshots" timeout 20 "$@"; }

space_of() { tool pps 2>&1 | sed -n 's/^Active nspaces: //p'; }

@test "pps names the world, from the directory of all run directories or from the job's own" {
    run -0 tool pps
    echo "$output"
    [[ $output == *"Active nspaces: $JOB.0.1."* ]]
    run -0 as_user PMIX_HOSTNAME=n1 PMIX_SYSTEM_TMPDIR="$RUN_DIR" timeout 20 pps
    [[ $output == *"Active nspaces: $JOB.0.1."* ]]
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
    ((left > 60 && left <= 600))
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

@test "pevent is heard; plookup and pquery end, if only by their own faults" {
    run -0 tool pevent --event -200 --range 4
    # OpenPMIx 4.2.2: plookup reads a NULL pointer once it is connected, pquery divides by zero before that.
    run tool plookup nobody.has.published.this
    echo "$status $output"
    ((status != 124))
    run tool pquery --system-server-first PMIX_QUERY_NAMESPACES
    echo "$status $output"
    [[ $status == 136 || $output == *"$JOB.0.1."* ]]
    run -0 tool pps
}

@test "another user is not let in, knows he the address or not, and the job's own user still is" {
    ((UID == 0)) || skip "only root can be another user"
    uri=$(head -n 1 "$RUN_DIR/pmix/pmix.n1.tool.elasticrun")
    [[ $uri == elasticrun.0\;tcp4://127.0.0.1:* ]]
    other=(timeout 20 setpriv --reuid=nobody --regid=nogroup --clear-groups env -i PATH=/usr/bin:/bin)
    run -4 "${other[@]}" PMIX_SERVER_URI41="$uri" "$TB_WORK/probe" query elastic.nodes
    [[ $output == *UNREACHABLE* ]]
    run "${other[@]}" PMIX_HOSTNAME=n1 PMIX_SYSTEM_TMPDIR="$RUN_DIR" pps
    ((status != 0 && status != 124))
    # A tool that says it were the user: it is the kernel that is asked.
    run -4 timeout 20 env -i PATH=/usr/bin:/bin PMIX_SERVER_URI41="$uri" "$TB_WORK/probe" query elastic.nodes
    run -0 as_user PMIX_SERVER_URI41="$uri" timeout 20 "$TB_WORK/probe" query elastic.nodes
    [[ $output == "elastic.nodes: 2"* ]]
    size_is "$JOB" 2
    run ! grep -q 'lost it' "$TB_WORK/$JOB.out"
}

#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# --elastic-straggler=replace at MAX: a worker on one node of each job really takes longer. Most of the
# time is waiting until that is sure. tests/sim/scenarios/straggler_* have more.
# Takes 95 s

load helpers
load elastic

setup_file() {
    testbed_up --nodes 8
    cp "$TREE/tests/system/slow_rank.py" "$TB_WORK/"
    ext=$(slow_job n3 -N1 -w n1 --elastic=1:3)
    wait_for 60 size_is "$ext" 3
    base=$(slow_job n7 -N2 -w 'n[6-7]' --elastic=2:3)
    wait_for 60 size_is "$base" 3
    export ext base
}

teardown_file() {
    cancel_all
    testbed_down
}

teardown() {
    [[ $BATS_TEST_COMPLETED ]] || tail -n 40 "$TB_WORK"/*.out
}

# slow_job NODE SBATCH-ARGUMENT...: a training that is slow on this node.
slow_job() {
    submit --exclusive -t 60 --elastic-straggler=replace "${@:2}" \
        --wrap "srun elasticrun $PYTHON $TB_WORK/slow_rank.py 100000 $1"
}

says_of() { grep -qE "job $1: rank [0-9] on $2 needs [2-3]\.[0-9] times as long for a step as the others: .*; $3\$" "$TB_WORK/$1.out"; }

@test "a slow node of an extension is given back, and another one takes its place, at MAX too" {
    wait_for 150 says_of "$ext" n3 'another node takes its place'
    wait_for 60 nodes_are_free n3
    wait_for 60 size_is "$ext" 3
    show_json "$ext" >"$BATS_TEST_TMPDIR/show"
    [[ $(json_value '*sorted(m["node"] for m in s["members"])' <"$BATS_TEST_TMPDIR/show") != *n3* ]]
    [[ $(json_value 's["why_not_more"], s["left_out"]' <"$BATS_TEST_TMPDIR/show") == 'MAX is 3 n3 (slow)' ]]
    # The slow node goes first: job_submit had nothing to refuse.
    [[ $(sizes_of "$ext") == 1,3,2,3 || $(sizes_of "$ext") == 1,2,3,2,3 ]]
    run ! grep refused "$TB_WORK/$ext.out"
    [[ $(history_json "$ext" | json_value '*[g["reason"] for g in s["generations"]]') == *'n3 is slower than the other nodes'* ]]
}

nodes_are_free() { [[ $(on_testbed sinfo -h -n "$1" -p batch -o %T) == idle ]]; }

@test "a slow node of the base is left out: it cannot be given back, and MAX counts it" {
    wait_for 150 says_of "$base" n7 'its node, of the base, is left out'
    wait_for 60 size_is "$base" 2
    wait_for 20 has_all_of_max
    show_json "$base" >"$BATS_TEST_TMPDIR/show"
    [[ $(json_value '*[m["state"] for m in s["members"] if m["node"] == "n7"]' <"$BATS_TEST_TMPDIR/show") == parked ]]
    [[ $(json_value 's["left_out"]' <"$BATS_TEST_TMPDIR/show") == 'n7 (slow)' ]]
    run ! grep refused "$TB_WORK/$base.out"
}

has_all_of_max() {
    [[ $(show_json "$base" | json_value 's["why_not_more"]') == 'the job has the 3 nodes that it may have, and leaves some out' ]]
}

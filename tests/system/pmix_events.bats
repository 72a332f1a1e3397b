#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Programs that know PMIx and nothing else of us are told by events when they have to leave.

# shellcheck disable=SC2034
BATS_TEST_TIMEOUT=120
load helpers
load elastic

GRACE=300

setup_file() {
    testbed_up --nodes 3 --grace "$GRACE"
    compile gcc pmix/checkpointer.c "$TB_WORK/checkpointer" pmix
}

teardown_file() { testbed_down; }

teardown() { cancel_all; }

# What the process of that rank has logged, a word for each line.
log_of() { awk '{ printf "%s ", $1 }' "$TB_WORK/saved/log-$1"; }

@test "the alert comes before a node is taken, and who answers that it has saved is not waited for" {
    as_user mkdir "$TB_WORK/saved"
    job=$(submit --elastic=2:3 --elastic-grow-delay=2 -N2 --ntasks-per-node=1 --exclusive -t 10 --wrap \
        "srun elasticrun $TB_WORK/checkpointer $TB_WORK/saved 0.3")
    wait_for 60 size_is "$job" 3
    wait_for 60 says "$TB_WORK/saved/log-2" '^declared 0$'
    # To grow it was asked to save, and not told that it is being preempted.
    [[ $(log_of 0) == 'begins declared asked saved begins declared ' ]]
    rival=$(submit -N1 --exclusive -t 5 --wrap 'sleep 600')
    wait_for 60 job_is "$rival" RUNNING
    waited_less "$rival" $((GRACE / 6))
    wait_for 60 size_is "$job" 2
    wait_for 60 says "$TB_WORK/saved/log-0" '^begins [1-9]'
    tail -n 20 "$TB_WORK"/saved/log-* "$TB_WORK/$job.out"
    [[ $(log_of 2) == 'begins declared alert asked saved ' ]]
    [[ $(log_of 0) == 'begins declared asked saved begins declared alert asked saved begins '* ]]
    # It was told for how long, and goes on where it has saved.
    left=$(awk '$1 == "alert" { print $2 }' "$TB_WORK/saved/log-2")
    ((left > 1 && left <= GRACE))
    [[ $(awk '$1 == "saved" { saved = $2 } $1 == "begins" && $2 != saved + 0 { print "lost" }' "$TB_WORK/saved/log-0") == "" ]]
    [[ $(sizes_of "$job") == 2,3,2 ]]
    as_user scancel "$job"
    wait_for 30 nothing_is_left_of "$job"
}

#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Live mode: planned changes, in which the workers that stay keep their processes.

# shellcheck disable=SC2034
BATS_TEST_TIMEOUT=180
load helpers
load elastic

setup_file() {
    testbed_up --nodes 5
    cp "$TREE/tests/system/live.py" "$TB_WORK/"
}

teardown_file() { testbed_down; }

teardown() { cancel_all; }

# training EPOCHS ELASTICRUN'S OPTIONS...: a job that has two nodes and grows when it is told to.
training() {
    local epochs=$1
    shift
    job=$(submit --elastic=2:5 --elastic-grow=ask --elastic-grow-delay=0 -N2 --exclusive -t 20 --wrap \
        "srun elasticrun $* /usr/bin/python3 $TB_WORK/live.py train $TB_WORK/log-\$SLURM_JOB_ID $epochs 0.02 $BROKEN")
    LOG=$TB_WORK/log-$job
    wait_for 60 size_is "$job" 2
    seen=-1
    wait_for 60 steps_made_by_size 2
}

# "STEP SIZE" for each line that a rank has written.
steps_and_sizes() { cat "$LOG"/* 2>/dev/null | sed -n 's/.*"step": \([0-9]*\),.*"size": \([0-9]*\),.*/\1 \2/p'; }

# A step after number $seen was made in a world of that size.
steps_made_by_size() { steps_and_sizes | awk -v seen="$seen" -v size="$1" '$1 > seen && $2 == size { found = 1 } END { exit !found }'; }

resize() {
    seen=$(steps_and_sizes | sort -n | tail -1 | cut -d" " -f1)
    as_user selastic resize "$job" "$1"
    wait_for 60 steps_made_by_size "$1"
}

check() { as_user /usr/bin/python3 "$TB_WORK/live.py" check "$LOG" "$@"; }

@test "grown, shrunk and preempted: two processes make every step, and the arithmetic is that of a training never resized" {
    training 220
    for size in 4 5 3 4 2 5; do
        resize "$size"
    done
    rival=$(submit -p batch -N2 --exclusive -t 5 --wrap 'sleep 1')
    wait_for 60 job_is "$rival" COMPLETED
    wait_for 120 job_is "$job" COMPLETED
    grep -q 'trained 1540 steps' "$TB_WORK/$job.out"
    check 220 2
    check 220 2 | grep -q '^sizes 2 .*4 .*5 .*3 .*4 .*2 .*5 .*3'
    # Nothing was restarted, nobody read a checkpoint.
    [[ -z $(find "$TB_DIR/jobs/elastic-$job" -name latest) ]]
}

@test "in restart mode the same script saves, leaves and loads" {
    training 60 --mode=restart
    resize 3
    resize 2
    wait_for 120 job_is "$job" COMPLETED
    check 60 0
}

@test "newcomers that fail before their gate do not disturb the others, and selastic says why" {
    BROKEN=broken training 100
    as_user selastic resize "$job" 3
    wait_for 60 shows "its workers were not let in: a worker ended before its gate"
    wait_for 120 job_is "$job" COMPLETED
    check 100 2
    check 100 2 | grep -q '^sizes 2$'
}

shows() { as_user selastic show "$job" | grep -q "$1"; }

@test "alone and under torchrun it is a training like any other" {
    LOG=$TB_WORK/log-alone
    as_user /usr/bin/python3 "$TB_WORK/live.py" train "$LOG" 3 0
    check 3 1
    LOG=$TB_WORK/log-torchrun
    as_user /usr/bin/python3 -m torch.distributed.run --standalone --nproc_per_node=2 --log_dir="$TB_WORK/torchrun" -r 1 -t 2 "$TB_WORK/live.py" train "$LOG" 3 0
    check 3 2
}

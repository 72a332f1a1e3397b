#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Real PyTorch DDP training through resizes: every sample of each epoch is committed exactly once.

# shellcheck disable=SC2034
BATS_TEST_TIMEOUT=300
load helpers
load elastic

setup_file() {
    testbed_up --nodes 6
    cp "$TREE"/examples/digits/*.py "$TB_WORK/"
}

teardown_file() { testbed_down; }

teardown() { cancel_all; }

# digits SIZES ARGUMENT...: prints the job id.
digits() {
    local sizes=$1
    shift
    submit --elastic="$sizes" --elastic-grow-delay=2 --exclusive -t 10 --wrap \
        "srun elasticrun /usr/bin/python3 -u train_elastic.py --log $TB_WORK/steps-\$SLURM_JOB_ID $*"
}

has_stepped_at() { grep -q "world $2 loss" "$TB_WORK/$1.out"; }

each_sample_once() {
    run as_user /usr/bin/python3 check_log.py --epochs "$2" "$TB_WORK/steps-$1"
    echo "$output"
    ((status == 0))
    [[ ${lines[-1]} == "lost=0 repeated=0" ]]
}

accuracy_is_good() {
    local accuracy
    accuracy=$(sed -n 's/.*accuracy=\([0-9.]*\).*/\1/p' "$TB_WORK/$1.out")
    echo "accuracy $accuracy"
    awk -v a="$accuracy" 'BEGIN { exit !(a > 0.95) }'
}

@test "2 to 6, preempted down to 3, back to 6: no sample is lost or repeated" {
    job=$(digits 2:6 --epochs 40 --step-time 0.1)
    wait_for 90 has_stepped_at "$job" 6
    rival=$(submit -p batch -N3 --exclusive -t 1 --wrap 'srun sleep 3')
    wait_for 30 job_is "$rival" RUNNING
    wait_for 60 has_stepped_at "$job" 3
    wait_for 200 job_is "$job" COMPLETED
    run sizes_of "$job"
    [[ $output == 2,*6,3,* ]]
    each_sample_once "$job" 40
    accuracy_is_good "$job"
}

@test "with data loader processes, whose drawn batches are thrown away" {
    job=$(digits 2:4 --epochs 20 --step-time 0.1 --num-workers 2)
    wait_for 120 has_stepped_at "$job" 4
    as_user selastic resize "$job" 3
    wait_for 60 has_stepped_at "$job" 3
    wait_for 200 job_is "$job" COMPLETED
    each_sample_once "$job" 20
    accuracy_is_good "$job"
}

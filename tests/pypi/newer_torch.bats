#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The join with a newer PyTorch than Debian's, which scripts/setup --python-env installs.
# Takes 45 s

# shellcheck disable=SC2034
NEWER=$PYTHON
load ../system/helpers
load ../system/elastic
load ../system/takeover

PYTHON=${NEWER:=$("$TREE/scripts/setup" --print-python 2>/dev/null)}

setup_file() {
    [[ -n $NEWER ]] || return 0
    testbed_for_training
    cp "$TREE"/examples/digits/*.py "$TB_WORK/"
    PACED=$(paced_python)
    export PACED
}

setup() {
    [[ -n $NEWER ]] || skip "scripts/setup --python-env has not been run"
    crashed='' away=''
}

teardown() {
    [[ -z $NEWER ]] || cancel_all
    [[ -z $job ]] || cat "$TB_WORK/$job.out"
}

@test "live: workers are killed in a step and while a world forms" {
    training 3:4
    wait_for 60 size_is "$job" 4
    trains_on
    faults inject "$job" "$LOG" 4 compute:worker:KILL form:worker:KILL:3
    went_well 2
    wait_for 60 job_is "$job" COMPLETED
    wait_for 20 nothing_is_left_of "$job"
}

has_stepped_at() { grep -q "world $1 loss" "$TB_WORK/$job.out"; }

@test "restart mode: a world of another size goes on from the checkpoint, and no sample is lost or repeated" {
    job=$(submit --elastic=1:2 --elastic-grow-delay=0 --exclusive -t 30 --wrap \
        "PYTHONPATH=$PACED:\$PYTHONPATH srun elasticrun $PYTHON -u train_restart.py --epochs 25 --step-time 0.5 --log $TB_WORK/steps")
    wait_for 60 has_stepped_at 2
    as_user selastic resize "$job" 1
    wait_for 60 size_is "$job" 1
    steps_are_fast
    wait_for 60 job_is "$job" COMPLETED
    [[ $(sizes_of "$job") == *2,1 ]]
    run as_user "$PYTHON" check_log.py --epochs 25 "$TB_WORK/steps"
    [[ $status == 0 && ${lines[-1]} == "lost=0 repeated=0" ]]
}

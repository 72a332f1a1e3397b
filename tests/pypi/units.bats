#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# --elastic-replica: nodes that are added, removed and lost together. Hybrid sharding (HSDP) and tensor
# parallelism in live mode, pipelines in restart mode, for which a newer PyTorch than Debian's is
# needed. What any script finds is in tests/system/main_path.bats.
# Takes 90 s

NEWER=$PYTHON
load ../system/helpers
load ../system/elastic

PYTHON=${NEWER:=$("$TREE/scripts/setup" --print-python 2>/dev/null)}
EPOCHS=12

setup_file() {
    testbed_up --nodes 4
    [[ -n $NEWER ]] || return 0
    PACED=$(paced_python)
    export PACED
    cp "$TREE"/examples/digits/*.py "$TREE/tests/pypi/losses.py" "$TB_WORK/"
    as_user env -C "$TB_WORK" PYTHONPATH="$TREE/client/python" "$PYTHON" train_fsdp.py \
        --epochs "$EPOCHS" --dtype float64 --log "$TB_WORK/alone" >"$TB_WORK/out-alone"
}

teardown_file() { testbed_down; }

teardown() {
    cancel_all
    [[ -z $job ]] || tail -n 50 "$TB_WORK/$job.out"
}

has_stepped_at() { grep -q "world $1 loss" "$TB_WORK/$job.out"; }

agrees() {
    as_user "$PYTHON" "$TB_WORK/losses.py" 1e-9 "$TB_WORK/alone" "$LOG"
    run as_user "$PYTHON" "$TB_WORK/check_log.py" --epochs "$EPOCHS" "$LOG"
    echo "$output"
}

# The process of rank 3, by its log.
rank_3() { tail -n 1 "$LOG.3" | sed 's/.*"process": "[^":]*:\([0-9]*\)".*/\1/'; }

rank_3_has_stepped() { [[ $(rank_3 2>/dev/null) =~ ^[0-9]+$ ]]; }

has_sizes() { [[ $(sizes_of "$job") == "$1" ]]; }

# loses_a_unit OPTION: of a training with sharded units, one of two units loses a node.
loses_a_unit() {
    [[ -n $NEWER ]] || skip "scripts/setup --python-env has not been run"
    steps_are_slow
    job=$(submit --elastic=2:4 --elastic-replica=2 --elastic-grow-delay=0 --exclusive -t 60 --wrap \
        "PYTHONPATH=$PACED:\$PYTHONPATH srun elasticrun $PYTHON -u train_fsdp.py $1 --copy-every 0 --epochs $EPOCHS --dtype float64 --step-time 0.8 --log $TB_WORK/steps$1")
    LOG=$TB_WORK/steps$1
    wait_for 60 has_stepped_at 4
    wait_for 60 rank_3_has_stepped # rank 0 says its step first
    as_user kill -KILL "$(rank_3)"
    wait_for 60 has_sizes 2,4,2,4
    steps_are_fast
    wait_for 120 job_is "$job" COMPLETED
    agrees
    [[ $status == 0 && ${lines[-1]} =~ ^lost=0\ repeated=[01]?[0-9]?[0-9]$ ]]
    # No part had to come from anywhere else: each unit has all of them.
    run -1 grep 'goes on from' "$TB_WORK/$job.out"
    # All extensions were whole units.
    run -1 grep -E 'an extension of (1|3) node' "$TB_WORK/$job.out"
}

@test "hybrid sharding: a unit of two nodes joins, one of its nodes is lost and the unit with it, and the other unit goes on" {
    loses_a_unit --hybrid
}

@test "tensor parallelism inside a unit of two nodes: the same" {
    loses_a_unit --tensor
}

@test "a pipeline of two stages in a unit of two nodes, in restart mode: units come and go, and the losses are those of one process" {
    [[ -n $NEWER ]] || skip "scripts/setup --python-env has not been run"
    steps_are_slow
    LOG=$TB_WORK/pipeline
    job=$(submit --elastic=2:4 --elastic-replica=2 --elastic-grow=ask --elastic-grow-delay=0 -N2 --exclusive -t 60 --wrap \
        "PYTHONPATH=$PACED:\$PYTHONPATH srun elasticrun --mode=restart --max-restarts=0 $PYTHON -u train_pipeline.py --epochs $EPOCHS --dtype float64 --step-time 0.8 --log $LOG")
    wait_for 60 has_stepped_at 2
    as_user selastic resize "$job" 4
    wait_for 60 has_stepped_at 4
    as_user selastic resize "$job" 2
    wait_for 60 has_sizes 2,4,2
    steps_are_fast
    wait_for 120 job_is "$job" COMPLETED
    agrees
    [[ $status == 0 && ${lines[-1]} == "lost=0 repeated=0" ]]
}

#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Live mode with a model that fully_shard() has sharded. Needs a newer PyTorch than Debian's, which
# scripts/setup --python-env installs.
# Takes 85 s

NEWER=$PYTHON
load ../system/helpers
load ../system/elastic

PYTHON=${NEWER:=$("$TREE/scripts/setup" --print-python 2>/dev/null)}
EPOCHS=10

setup_file() {
    [[ -n $NEWER ]] || return 0
    testbed_up --nodes 3
    cp "$TREE"/examples/digits/*.py "$TREE/tests/pypi/losses.py" "$TB_WORK/"
    PACED=$(paced_python)
    export PACED
    # The same training by one process, not sharded.
    as_user env -C "$TB_WORK" PYTHONPATH="$TREE/client/python" "$PYTHON" train_fsdp.py \
        --epochs "$EPOCHS" --dtype float64 --log "$TB_WORK/alone" >"$TB_WORK/out-alone"
}

teardown_file() { [[ -z $NEWER ]] || testbed_down; }

setup() { [[ -n $NEWER ]] || skip "scripts/setup --python-env has not been run"; }

teardown() {
    [[ -n $NEWER ]] || return 0
    cancel_all
    [[ -z $job ]] || tail -n 50 "$TB_WORK/$job.out"
}

# training SIZES NAME [OPTION...]: one that grows when it is told to.
training() {
    steps_are_slow
    job=$(submit --elastic="$1" --elastic-grow=ask --elastic-grow-delay=0 --exclusive -t 60 --wrap \
        "PYTHONPATH=$PACED:\$PYTHONPATH srun elasticrun $PYTHON -u train_fsdp.py --epochs $EPOCHS --dtype float64 --step-time 0.5 --log $TB_WORK/$2 ${*:3}")
}

has_stepped_at() { grep -q "world $1 loss" "$TB_WORK/$job.out"; }

resize() {
    as_user selastic resize "$job" "$1"
    wait_for 60 has_stepped_at "$1"
}

agrees() { as_user "$PYTHON" "$TB_WORK/losses.py" 1e-9 "$TB_WORK/alone" "$TB_WORK/$1"; }

@test "grown from two nodes to three and shrunk to two: no sample is lost or repeated, and the losses are those of one process" {
    training 2:3 steps
    wait_for 60 has_stepped_at 2
    resize 3
    as_user selastic resize "$job" 2
    wait_for 60 size_is "$job" 2
    steps_are_fast
    wait_for 120 job_is "$job" COMPLETED
    [[ $(sizes_of "$job") == 2,3,2 ]]
    run as_user "$PYTHON" "$TB_WORK/check_log.py" --epochs "$EPOCHS" "$TB_WORK/steps"
    echo "$output"
    [[ $status == 0 && ${lines[-1]} == "lost=0 repeated=0" ]]
    # Nobody was started again.
    grep -q '^generation 2: 3 of 3 workers, .* 2 processes stayed' <<<"$output"
    grep -q '^generation 3: 2 of 2 workers, .* 2 processes stayed' <<<"$output"
    agrees steps
    run -1 grep -E 'goes on from|not handed over' "$TB_WORK/$job.out"
    [[ $(grep accuracy= "$TB_WORK/$job.out") == "$(grep accuracy= "$TB_WORK/out-alone")" ]]
}

has_saved() { find "$TB_DIR/jobs/elastic-$job" -name latest | grep -q .; }

# The process of rank 2, by its log.
rank_2() { tail -n 1 "$TB_WORK/$1.2" | sed 's/.*"process": "[^":]*:\([0-9]*\)".*/\1/'; }

# loses NAME COMMAND...: once there is a checkpoint COMMAND makes the training lose something. It is right
# all the same. $lost is how many steps it says that it has lost.
loses() {
    wait_for 60 has_saved
    "${@:2}"
    steps_are_fast
    wait_for 120 job_is "$job" COMPLETED
    agrees "$1"
    run as_user "$PYTHON" "$TB_WORK/check_log.py" --epochs "$EPOCHS" "$TB_WORK/$1"
    [[ ${lines[-1]} == "lost=0 repeated="* ]]
    grep 'goes on from' "$TB_WORK/$job.out" >"$TB_WORK/$1.words"
    [[ $(wc -l <"$TB_WORK/$1.words") == 1 ]]
    lost=$(sed -n "s/.*is lost with its worker: goes on from $WHERE, step [0-9]*: \([0-9]*\) steps\? lost\$/\1/p" "$TB_WORK/$1.words")
    [[ -n $lost ]]
}

# The agent and all that it has started.
kill_extension() { job_processes "$(extensions_of "$job")" | xargs kill -KILL || true; } # some end by themselves

@test "a node is lost: its part comes from the copy on another node, and all go on from its step" {
    training 2:3 copied --copy-every 3
    wait_for 60 has_stepped_at 2
    resize 3
    WHERE='copies in the memory of other nodes' loses copied kill_extension
    # One round that is complete, and one on its way.
    ((lost <= 2 * 3))
    [[ $(sizes_of "$job") == 2,3,2* ]]
}

kill_worker() { as_user kill -KILL "$(rank_2 lost)"; }

@test "a worker is lost, and there are no copies: all go on from the newest checkpoint, which they say" {
    training 3:3 lost --copy-every 0
    wait_for 60 has_stepped_at 3
    WHERE='the newest checkpoint' loses lost kill_worker
}

step_is_made() { grep -q "^epoch 0 step $1 " "$TB_WORK/$job.out"; }

all_nodes_are_idle() { nodes_are 3 idle; }

@test "a job that cannot save is cancelled: epilogs keep the parts of its snapshot, and its next run goes on from that step" {
    local last began
    steps_are_slow
    job=$(submit --elastic=2:2 --elastic-grace=1 --exclusive -t 60 --requeue --open-mode=append --wrap \
        "PYTHONPATH=$PACED:\$PYTHONPATH srun elasticrun $PYTHON -u train_fsdp.py --epochs $EPOCHS --dtype float64 --step-time 0.5 --copy-every 0 --snapshot-every 2 --log $TB_WORK/kept")
    wait_for 60 step_is_made 6
    # shellcheck disable=SC2046
    as_user kill -STOP $(tail -qn 1 "$TB_WORK"/kept "$TB_WORK"/kept.1 | sed 's/.*"process": "[^":]*:\([0-9]*\)".*/\1/')
    as_user scancel "$job"
    wait_for 40 job_ended "$job"
    wait_for 40 all_nodes_are_idle
    run -1 has_saved
    as_user scontrol requeue "$job"
    steps_are_fast
    wait_for 20 start_again "$job"
    wait_for 120 job_ended "$job"
    job_is "$job" COMPLETED
    read -r last began < <(sed -n 's/^epoch 0 step \([0-9]*\) .*/\1/p' "$TB_WORK/$job.out" | awk 'NR > 1 && $1 <= last { print last, $1; exit } { last = $1 }')
    echo "ended in step $last, goes on from $began"
    # The snapshot before is kept until the next one is whole.
    ((began >= 2 && last - began <= 2 * 2))
    agrees kept
    run as_user "$PYTHON" "$TB_WORK/check_log.py" --epochs "$EPOCHS" "$TB_WORK/kept"
    [[ ${lines[-1]} == "lost=0 repeated="* ]]
}

@test "restart mode: a world of another size goes on from the parts that all have saved" {
    steps_are_slow
    job=$(submit --elastic=2:3 --elastic-grow=ask --elastic-grow-delay=0 --exclusive -t 60 --wrap \
        "PYTHONPATH=$PACED:\$PYTHONPATH srun elasticrun --mode=restart $PYTHON -u train_fsdp.py --epochs $EPOCHS --dtype float64 --step-time 0.5 --log $TB_WORK/restarted")
    wait_for 60 has_stepped_at 2
    resize 3
    steps_are_fast
    wait_for 120 job_is "$job" COMPLETED
    run as_user "$PYTHON" "$TB_WORK/check_log.py" --epochs "$EPOCHS" "$TB_WORK/restarted"
    [[ $status == 0 && ${lines[-1]} == "lost=0 repeated=0" ]]
    agrees restarted
}

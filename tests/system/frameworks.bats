#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The examples for frameworks, with what scripts/setup --python-env installs from PyPI.
# Takes 100 s

# shellcheck disable=SC2034
BATS_TEST_TIMEOUT=300
NEWER=$PYTHON
load helpers
load elastic

PYTHON=${NEWER:=$("$TREE/scripts/setup" --print-python 2>/dev/null)}
# More than are made before a test is content. What is left is made quickly, but takes processor time.
EPOCHS=75

has() { [[ -n $NEWER ]] && "$PYTHON" -c "import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, sys.argv[1:])))" "$@"; }

setup_file() {
    [[ -n $NEWER ]] || return 0
    testbed_up --nodes 2
    cp -r "$TREE"/examples/{accelerate,digits,huggingface,lightning} "$TREE/tests/system/frameworks.py" "$TB_WORK/"
    mkdir "$TB_WORK/alone"
    SELDOM=$(seldom_collects)
    export SELDOM
    chown "$TB_USER" "$TB_WORK/alone"
    as_user env PYTHONPATH="$TREE/client/python" "$PYTHON" "$TB_WORK/frameworks.py" reference "$TB_WORK/alone" "$EPOCHS"
}

teardown_file() { [[ -z ${TB_DIR:-} ]] || testbed_down; }

setup() { [[ -n $NEWER ]] || skip "scripts/setup --python-env has not been run"; }

teardown() {
    [[ -n $NEWER ]] || return 0
    cancel_all
    [[ -z $job ]] || tail -n 60 "$TB_WORK/$job.out"
}

made_by() { grep -hqs "\"world\": $1," "$LOG"/*; }

# lives_through SCRIPT OPTION...: a job that grows from one node to two, and gives one back.
lives_through() {
    job=$(submit --elastic=1:2 --elastic-grow=ask --elastic-grow-delay=0 -N1 --exclusive -t 10 --wrap \
        "mkdir -p $TB_WORK/log-\$SLURM_JOB_ID
         OMP_NUM_THREADS=1 PYTHONPATH=$SELDOM:\$PYTHONPATH srun elasticrun --max-restarts=0 $PYTHON $TB_WORK/$1 --epochs $EPOCHS --step-time 0.4 --log $TB_WORK/log-\$SLURM_JOB_ID ${*:2}")
    LOG=$TB_WORK/log-$job
    wait_for 90 made_by 1
    as_user selastic resize "$job" 2
    wait_for 90 made_by 2
    as_user selastic resize "$job" 1
    wait_for 60 size_is "$job" 1
    touch "$LOG/fast"
    wait_for 90 job_is "$job" COMPLETED
    rm "$LOG/fast"
    run as_user "$PYTHON" "$TB_WORK/frameworks.py" check "$LOG" "$TB_WORK/alone"
    echo "$output"
    [[ $status == 0 && $output == *"sizes 1 2 1"* ]]
    [[ $output == *"1 of 2 processes have made all $((7 * EPOCHS)) steps"* ]]
}

@test "Lightning lives through worlds: the process stays, each sample once, the parameters of plain PyTorch" {
    has pytorch_lightning || skip "pytorch_lightning cannot be imported"
    lives_through lightning/train.py
}

@test "Accelerate lives through worlds" {
    has accelerate || skip "accelerate cannot be imported"
    lives_through accelerate/train.py
}

@test "Accelerate lives through worlds with a model that fully_shard() has sharded" {
    has accelerate || skip "accelerate cannot be imported"
    lives_through accelerate/train.py --fsdp
}

@test "the Hugging Face Trainer lives through worlds" {
    has transformers accelerate || skip "transformers and accelerate cannot be imported"
    lives_through huggingface/train_live.py
}

@test "the Hugging Face Trainer lives through worlds with a model that fully_shard() has sharded" {
    has transformers accelerate || skip "transformers and accelerate cannot be imported"
    lives_through huggingface/train_live.py --fsdp
}

# starts_again SCRIPT...: a job in restart mode, which grows from one node to two.
starts_again() {
    job=$(submit --elastic=1:2 --elastic-grow=ask --elastic-grow-delay=0 -N1 --exclusive -t 10 --wrap \
        "OMP_NUM_THREADS=1 PYTHONPATH=$SELDOM:\$PYTHONPATH srun elasticrun --mode=restart --max-restarts=0 $PYTHON -u $TB_WORK/$* --step-time 0.1")
    wait_for 90 says "$TB_WORK/$job.out" "step [0-9]+ world 1"
    as_user selastic resize "$job" 2
    wait_for 90 job_is "$job" COMPLETED
    [[ $(sizes_of "$job") == 1,2 ]]
}

@test "the Hugging Face Trainer is started anew in each world, and makes each step once" {
    has transformers accelerate || skip "transformers and accelerate cannot be imported"
    starts_again "huggingface/train.py $TB_WORK/output --epochs 30"
    diff <(sed -n 's/^step \([0-9]*\) world .*/\1/p' "$TB_WORK/$job.out") <(seq 240)
    grep -q '^trained, parameters' "$TB_WORK/$job.out"
}

@test "a loop with fully_shard() is started anew from the parts that all have saved by DCP" {
    starts_again "digits/train_dcp.py --epochs 12 --dtype float64 --log $TB_WORK/parts"
    run as_user "$PYTHON" "$TB_WORK/digits/check_log.py" --epochs 12 "$TB_WORK/parts"
    echo "$output"
    [[ $status == 0 && ${lines[-1]} == "lost=0 repeated=0" ]]
}

@test "a script for torchrun runs as it is: each world begins with the epoch that is not saved" {
    starts_again "digits/train_ddp.py --epochs 12 --checkpoint $TB_WORK/checkpoint.pt"
    grep -q '^accuracy=0.9' "$TB_WORK/$job.out"
}

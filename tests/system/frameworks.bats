#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The examples for frameworks. These are not in Debian: where they can be imported, perhaps from $ELASTIC_TEST_PACKAGES, they are tried.

# shellcheck disable=SC2034
BATS_TEST_TIMEOUT=300
load helpers
load elastic

setup_file() {
    export ELASTIC_TEST_PACKAGES=${ELASTIC_TEST_PACKAGES:-}
    has_lightning || has_trainer || return 0
    testbed_up --nodes 5
    mkdir "$TB_WORK/huggingface"
    cp "$TREE"/examples/lightning/*.py "$TREE/tests/system/frameworks.py" "$TB_WORK/"
    cp "$TREE"/examples/huggingface/*.py "$TB_WORK/huggingface/"
}

teardown_file() { [[ -z ${TB_DIR:-} ]] || testbed_down; }

teardown() { [[ -z ${TB_DIR:-} ]] || cancel_all; }

has() { PYTHONPATH=$ELASTIC_TEST_PACKAGES /usr/bin/python3 -c "import $1" 2>/dev/null; }

has_lightning() { has lightning.pytorch || has pytorch_lightning; }

has_trainer() { has transformers && has accelerate; }

check() { as_user /usr/bin/python3 "$TB_WORK/frameworks.py" "$@"; }

made_by() { grep -hqs "\"world\": $2," "$TB_WORK/log-$1"/*; }

# resize JOB SIZE: until a step was made by so many.
resize() {
    as_user selastic resize "$1" "$2"
    wait_for 60 made_by "$1" "$2"
}

@test "Lightning lives through worlds: the processes stay, each sample once, the parameters of one process" {
    has_lightning || skip "neither lightning nor pytorch_lightning can be imported"
    job=$(submit --elastic=2:5 --elastic-grow=ask --elastic-grow-delay=0 -N2 --exclusive -t 20 --wrap \
        "mkdir -p $TB_WORK/log-\$SLURM_JOB_ID
         PYTHONPATH=\$PYTHONPATH:$ELASTIC_TEST_PACKAGES srun elasticrun /usr/bin/python3 train.py --epochs 200 --step-time 0.1 --log $TB_WORK/log-\$SLURM_JOB_ID")
    wait_for 90 made_by "$job" 2
    for size in 4 3 5; do
        resize "$job" "$size"
    done
    rival=$(submit -p batch -N2 --exclusive -t 5 --wrap 'sleep 1')
    wait_for 60 job_is "$rival" COMPLETED
    touch "$TB_WORK/log-$job/fast"
    wait_for 150 job_is "$job" COMPLETED
    mkdir -p "$TB_WORK/log-alone"
    chown "$TB_USER" "$TB_WORK/log-alone"
    as_user PYTHONPATH="$prefix/share/slurm-elastic/python:$ELASTIC_TEST_PACKAGES" /usr/bin/python3 train.py --epochs 200 --log "$TB_WORK/log-alone"
    run check "$TB_WORK/log-$job" "$TB_WORK/log-alone"
    echo "$output"
    [[ $status == 0 ]] || tail -n 60 "$TB_WORK/$job.out"
    [[ $status == 0 && $output == *"2 processes have made all 1400 steps"* ]]
    [[ $output == *"sizes 2 "*"4 "*"3 "*"5 "*"3"* ]]
}

@test "the Hugging Face Trainer is started anew in each world, and makes each step once" {
    has_trainer || skip "transformers and accelerate cannot be imported"
    job=$(submit --elastic=2:4 --elastic-grow=ask --elastic-grow-delay=0 -N2 --exclusive -t 20 --wrap \
        "PYTHONPATH=\$PYTHONPATH:$ELASTIC_TEST_PACKAGES srun elasticrun --mode=restart /usr/bin/python3 $TB_WORK/huggingface/train.py \
            $TB_WORK/output --epochs 40 --step-time 0.1")
    for size in 2 4 3; do
        ((size == 2)) || as_user selastic resize "$job" "$size"
        wait_for 90 says "$TB_WORK/$job.out" "^step [0-9]+ world $size"
    done
    wait_for 150 job_is "$job" COMPLETED
    diff <(sed -n 's/^step \([0-9]*\) world .*/\1/p' "$TB_WORK/$job.out") <(seq 320)
    grep -q '^trained, parameters' "$TB_WORK/$job.out"
}

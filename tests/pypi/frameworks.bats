#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The examples for frameworks, with what scripts/setup --python-env installs from PyPI.
# Takes 380 s

# shellcheck disable=SC2034
NEWER=$PYTHON
load ../system/helpers
load ../system/elastic

PYTHON=${NEWER:=$("$TREE/scripts/setup" --print-python 2>/dev/null)}
# More than are made before a test is content. What is left is made quickly, but takes processor time.
EPOCHS=75
CLIP=0.1 # less than most gradients have

has() { [[ -n $NEWER ]] && "$PYTHON" -c "import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, sys.argv[1:])))" "$@"; }

setup_file() {
    [[ -n $NEWER ]] || return 0
    testbed_up --nodes 4
    cp -r "$TREE"/examples/{accelerate,deepspeed,digits,huggingface,lightning} "$TREE"/tests/pypi/{frameworks,losses}.py "$TB_WORK/"
    mkdir "$TB_WORK/alone"
    PACED=$(paced_python)
    export PACED
    chown "$TB_USER" "$TB_WORK/alone"
    as_user env PYTHONPATH="$TREE/client/python" "$PYTHON" "$TB_WORK/frameworks.py" reference "$TB_WORK/alone" "$EPOCHS" "$CLIP"
}

teardown_file() { [[ -z ${TB_DIR:-} ]] || testbed_down; }

setup() { [[ -n $NEWER ]] || skip "scripts/setup --python-env has not been run"; }

teardown() {
    [[ -n $NEWER ]] || return 0
    cancel_all
    [[ -z $job ]] || tail -n 60 "$TB_WORK/$job.out"
}

made_by() { grep -hqs "\"world\": $1," "$LOG"/*; }

has_saved() { find "$TB_DIR/jobs/$TB_USER-$job" -name latest | grep -q .; }

# begins SCRIPT OPTION...: a job that grows from one unit to two. Units have one node, or $UNIT. So many
# failures are allowed as $RESTARTS says. MODE=restart: it is started anew in each world.
begins() {
    local unit=${UNIT:-1}
    steps_are_slow
    job=$(submit --elastic="$unit:$((2 * unit))" --elastic-replica="$unit" --elastic-grow=ask --elastic-grow-delay=0 -N"$unit" --exclusive -t 30 --wrap \
        "mkdir -p $TB_WORK/log-\$SLURM_JOB_ID
         OMP_NUM_THREADS=1 PYTHONPATH=$PACED:\$PYTHONPATH srun elasticrun ${MODE:+--mode=$MODE} --max-restarts=${RESTARTS:-0} $PYTHON $TB_WORK/$1 --epochs $EPOCHS --clip $CLIP --step-time 0.4 --log $TB_WORK/log-\$SLURM_JOB_ID ${*:2}")
    LOG=$TB_WORK/log-$job
    wait_for 90 made_by "$unit"
    as_user selastic resize "$job" $((2 * unit))
    wait_for 90 made_by $((2 * unit))
}

# ends SIZES PROCESSES: it gives a unit back, and has had these sizes then. So many processes have made all
# steps, and $AGAIN steps at most were made again.
ends() {
    local unit=${UNIT:-1}
    as_user selastic resize "$job" "$unit"
    wait_for 60 size_is "$job" "$unit"
    steps_are_fast
    wait_for 90 job_is "$job" COMPLETED
    # Live, all went from memory to memory.
    if [[ -z ${MODE:-} ]]; then run -1 has_saved; else has_saved; fi
    run as_user "$PYTHON" "$TB_WORK/frameworks.py" check "$LOG" "$TB_WORK/alone" "${AGAIN:-0}"
    echo "$output"
    [[ $status == 0 && ${lines[1]} == "sizes $1" ]]
    [[ ${lines[2]} == "$2 processes have made all $((7 * EPOCHS)) steps" ]]
}

# lives_through SCRIPT OPTION...
lives_through() {
    local unit=${UNIT:-1}
    local more=$((2 * unit))
    begins "$@"
    if [[ -z ${MODE:-} ]]; then
        ends "$unit $more $unit" "$unit of $more"
    else
        ends "$unit $more $unit" "0 of $((unit + more + unit))"
    fi
}

# The newest world that has written something: its size and generation.
newest_world() { grep -ho '"world": [0-9]*, "generation": [0-9]*' "$LOG"/* | sort -k 4 -n | tail -n 1; }

worker_of_rank() { basename "$(grep -lF "\"rank\": $1, $(newest_world)," "$LOG"/*)"; }

# Two nodes have made three steps together.
two_go_on() {
    local world
    world=$(newest_world)
    [[ $world == '"world": 2,'* ]] && (($(cat "$LOG"/* | grep -cF "$world,") >= 6))
}

has_sizes() { [[ $(sizes_of "$job") == "$1" ]]; }

# lives_on RANK PROCESSES SCRIPT OPTION...: between growing and giving back, it loses the worker of this
# rank in the midst of a step.
lives_on() {
    RESTARTS=1 begins "${@:3}"
    wait_for 30 two_go_on
    as_user kill -KILL "$(worker_of_rank "$1")"
    wait_for 90 has_sizes 1,2,1,2
    # A framework's warnings are no reason.
    grep -q 'rank [01] on n[0-9] failed: SIGKILL$' "$TB_WORK/$job.out"
    wait_for 30 two_go_on
    ends "1 2 1 2 1" "$2 of 3"
}

# lives_on_replica SCRIPT: with DDP. The step in flight is undone, and nothing has to come from elsewhere.
lives_on_replica() {
    AGAIN=1 lives_on 1 1 "$1"
    run -1 grep 'goes on from' "$TB_WORK/$job.out"
}

# lives_on_copies SCRIPT: with a model that fully_shard() has sharded. The first worker is lost,
# and its part with it.
lives_on_copies() {
    local lost
    AGAIN=20 lives_on 0 0 "$1" --fsdp
    lost=$(sed -n 's/.*goes on from copies in the memory of other nodes, step [0-9]*: \([0-9]*\) steps\? lost$/\1/p' "$TB_WORK/$job.out")
    [[ -n $lost ]]
    # The step in flight may have been logged by one of them.
    [[ ${lines[3]} == "$lost steps were made again" || ${lines[3]} == "$((lost + 1)) steps were made again" ]]
}

@test "Lightning lives through worlds and a lost worker: the process stays, each sample once, the parameters of plain PyTorch" {
    has pytorch_lightning || skip "pytorch_lightning cannot be imported"
    lives_on_replica lightning/train.py
}

@test "Lightning lives through worlds and a lost worker with a module that fully_shard() has sharded" {
    has pytorch_lightning || skip "pytorch_lightning cannot be imported"
    lives_on_copies lightning/train.py
}

@test "Lightning lives through worlds of units, in each of which the module is sharded (HSDP)" {
    has pytorch_lightning || skip "pytorch_lightning cannot be imported"
    UNIT=2 lives_through lightning/train.py --hybrid
}

@test "Lightning is started anew in each world, with the same result" {
    has pytorch_lightning || skip "pytorch_lightning cannot be imported"
    MODE=restart lives_through lightning/train.py
}

@test "Accelerate is started anew in each world, with the same result" {
    has accelerate || skip "accelerate cannot be imported"
    MODE=restart lives_through accelerate/train.py
}

@test "Accelerate lives through worlds and a lost worker" {
    has accelerate || skip "accelerate cannot be imported"
    lives_on_replica accelerate/train.py
}

@test "Accelerate lives through worlds and a lost worker with a model that fully_shard() has sharded" {
    has accelerate || skip "accelerate cannot be imported"
    lives_on_copies accelerate/train.py
}

@test "Accelerate lives through worlds of units, in each of which the model is sharded (HSDP)" {
    has accelerate || skip "accelerate cannot be imported"
    UNIT=2 lives_through accelerate/train.py --hybrid
}

@test "the Hugging Face Trainer lives through worlds and a lost worker" {
    has transformers accelerate || skip "transformers and accelerate cannot be imported"
    lives_on_replica huggingface/train_live.py
}

@test "the Hugging Face Trainer lives through worlds and a lost worker with a model that fully_shard() has sharded" {
    has transformers accelerate || skip "transformers and accelerate cannot be imported"
    lives_on_copies huggingface/train_live.py
}

@test "the Hugging Face Trainer lives through worlds of units, in each of which the model is sharded (HSDP)" {
    has transformers accelerate || skip "transformers and accelerate cannot be imported"
    UNIT=2 lives_through huggingface/train_live.py --hybrid
}

@test "the Hugging Face Trainer lives through worlds of units with tensor parallelism in each" {
    has transformers accelerate || skip "transformers and accelerate cannot be imported"
    UNIT=2 lives_through huggingface/train_live.py --tensor
}

# starts_again SCRIPT...: a job in restart mode, which grows from one node to two. Python looks into
# $MORE_PYTHON, too.
starts_again() {
    steps_are_slow
    job=$(submit --elastic=1:2 --elastic-grow=ask --elastic-grow-delay=0 -N1 --exclusive -t 30 --wrap \
        "OMP_NUM_THREADS=1 PYTHONPATH=$PACED:${MORE_PYTHON:+$MORE_PYTHON:}\$PYTHONPATH srun elasticrun --mode=restart --max-restarts=0 $PYTHON -u $TB_WORK/$* --step-time 0.5")
    wait_for 90 says "$TB_WORK/$job.out" "step [0-9]+ world 1"
    as_user selastic resize "$job" 2
    wait_for 90 says "$TB_WORK/$job.out" "step [0-9]+ world 2"
    steps_are_fast
    wait_for 90 job_is "$job" COMPLETED
    [[ $(sizes_of "$job") == 1,2 ]]
}

@test "the Hugging Face Trainer is started anew in each world, and makes each step once" {
    has transformers accelerate || skip "transformers and accelerate cannot be imported"
    as_user env PYTHONPATH="$TREE/client/python" OMP_NUM_THREADS=1 "$PYTHON" "$TB_WORK/huggingface/train.py" "$TB_WORK/output-alone" --epochs 30 \
        >"$TB_WORK/trained-alone" &
    starts_again "huggingface/train.py $TB_WORK/output --epochs 30"
    wait $!
    diff <(sed -n 's/^step \([0-9]*\) world .*/\1/p' "$TB_WORK/$job.out") <(seq 240)
    # In float32, whose sums depend on how many make them.
    paste -d' ' <(sed -n 's/^trained, parameters //p' "$TB_WORK/$job.out") <(sed -n 's/^trained, parameters //p' "$TB_WORK/trained-alone") |
        awk '{ print; found = ($1 - $2)^2 < 1e-6 && NF == 2 } END { exit !found }'
}

# losses FILE: of the steps of a training, as "EPOCH STEP LOSS".
losses() { sed -n 's/^epoch \([0-9]*\) step \([0-9]*\) world [0-9]* loss \(.*\)/\1 \2 \3/p' "$1"; }

deepspeed() {
    export MORE_PYTHON=${PYTHON%/bin/*}/deepspeed
    [[ -d $MORE_PYTHON ]] || skip "scripts/setup --python-env has not installed DeepSpeed"
    job=$(submit --elastic=1:1 -N1 -t 10 --wrap \
        "PYTHONPATH=$MORE_PYTHON:\$PYTHONPATH srun elasticrun --mode=restart $PYTHON $TB_WORK/deepspeed/train.py --stage $1 --epochs 12")
    wait_for 90 job_is "$job" COMPLETED
    losses "$TB_WORK/$job.out" >"$TB_WORK/losses"
    [[ $(wc -l <"$TB_WORK/losses") == $((7 * 12)) ]]
    starts_again "deepspeed/train.py --stage $1 --epochs 12"
    losses "$TB_WORK/$job.out" | paste -d' ' "$TB_WORK/losses" - |
        awk '$1 != $4 || $2 != $5 || ($3 - $6)^2 > 1e-10 { print; wrong = 1 } END { exit wrong }'
}

@test "DeepSpeed is started anew in each world, ZeRO 2: its losses are those of one process" {
    deepspeed 2
}

@test "DeepSpeed is started anew in each world, ZeRO 1: its losses are those of one process" {
    deepspeed 1
}

@test "a loop with fully_shard() is started anew from the parts that all have saved by DCP" {
    # The same training by one process, not sharded.
    as_user env -C "$TB_WORK" PYTHONPATH="$TREE/client/python" OMP_NUM_THREADS=1 "$PYTHON" "$TB_WORK/digits/train_fsdp.py" \
        --epochs 12 --dtype float64 --log "$TB_WORK/parts-alone" &
    starts_again "digits/train_dcp.py --epochs 12 --dtype float64 --log $TB_WORK/parts"
    wait $!
    as_user "$PYTHON" "$TB_WORK/losses.py" 1e-9 "$TB_WORK/parts-alone" "$TB_WORK/parts"
    run as_user "$PYTHON" "$TB_WORK/digits/check_log.py" --epochs 12 "$TB_WORK/parts"
    echo "$output"
    [[ $status == 0 && ${lines[-1]} == "lost=0 repeated=0" ]]
}

@test "a script for torchrun runs as it is: each world begins with the epoch that is not saved" {
    starts_again "digits/train_ddp.py --epochs 12 --checkpoint $TB_WORK/checkpoint.pt"
    grep -q '^accuracy=0.9' "$TB_WORK/$job.out"
}

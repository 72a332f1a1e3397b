#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Live mode: planned changes, in which the workers that stay keep their processes.
#
# $ELASTIC_TEST_RESIZES (12) changes in the first test; with 50 it takes two minutes and a half.
# Takes 125 s

load helpers
load elastic

# Seconds that a step takes besides its arithmetic, which costs several times what the change of a world does.
STEP=0.2

setup_file() {
    testbed_up --nodes 5 --grace 120
    cp "$TREE/tests/system/live.py" "$TB_WORK/"
    # A cluster on which newcomers have not the usual minute.
    { echo 'newcomer_timeout = 40' && cat "$TB_DIR/etc/elastic.conf"; } >"$TB_WORK/impatient.conf"
    echo '{"scale_config": {"2": {"nodes": 2}, "3": {"nodes": 3}, "4": {"nodes": 4}, "5": {"nodes": 5}}}' \
        >"$TB_WORK/policy.json"
}

teardown_file() { testbed_down; }

teardown() { cancel_all; }

# training EPOCHS ELASTICRUN'S OPTIONS...: a job that has two nodes and grows when it is told to.
training() {
    local epochs=$1
    shift
    job=$(submit --elastic=2:5 --elastic-config="$TB_WORK/policy.json" --elastic-grow=ask --elastic-grow-delay=0 -N2 --exclusive -t 40 \
        --wrap "${CONF:+ELASTIC_CONF=$CONF} srun elasticrun $* $PYTHON $TB_WORK/live.py train $TB_WORK/log-\$SLURM_JOB_ID $epochs $STEP $TB_WORK/newcomers")
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
    as_user selastic resize "$job" "$1"
    grown_to "$1"
}

grown_to() {
    seen=$(steps_and_sizes | sort -n | tail -1 | cut -d" " -f1)
    wait_for 60 steps_made_by_size "$1"
}

check() { as_user "$PYTHON" "$TB_WORK/live.py" check "$LOG" "$@"; }

# finish: with the epoch that is.
finish() {
    as_user touch "$LOG.enough"
    wait_for 120 job_ended "$job"
    job_is "$job" COMPLETED || { cat "$TB_WORK/$job.out" && false; }
}

no_checkpoint() { [[ -z $(find "$TB_DIR/jobs/elastic-$job" -name latest) ]]; }

@test "changed twelve times at random moments: two processes make every step, and the arithmetic is that of a training never resized" {
    local changes=${ELASTIC_TEST_RESIZES:-12}
    training 100000
    as_user "$PYTHON" "$TB_WORK/live.py" resize "$job" "$LOG" "${ELASTIC_TEST_SEED:-1}" "$changes"
    finish
    check 2 float64=1e-10 float32=1e-5
    # The last size is smaller than some before: with equal numbers the unweighted one would pass.
    run -1 check 2 unweighted=1e-5
    grep -q '^step [0-9]*: unweighted: loss .* would be right$' <<<"$output"
    as_user "$PYTHON" "$TB_WORK/live.py" leaks "$LOG"
    # Nothing was restarted, nobody read a checkpoint.
    no_checkpoint
    rm -rf "$TB_WORK/resized" # for the next test
    cp -r "$LOG" "$TB_WORK/resized"
}

@test "the same check finds a sample, a step, a state, a loss, a loader and a process that is wrong" {
    local log words
    LOG=$TB_WORK/resized
    log=$(wc -l "$LOG"/* | sort -n | tail -2 | head -1 | sed 's/^ *[0-9]* //') # of one that has stayed
    sed -i -E '
        3s/"share": \[[0-9]+, [0-9]+/"share": [5, 5/
        4s/"config": [0-9]*/"config": 7/
        5s/("float64": )/\11/
        6,7s/"draw": [^,}]*/"draw": 0.5/
        9s/("state": ")[0-9a-f]{4}/\1wxyz/
        10s/("loader": \[)/\11/
        12d' "$log"
    run -1 check 2 float64=1e-10
    while read -r words; do
        grep -E -- "$words" <<<"$output" || { echo "$output" && false; }
    done <<'WORDS'
^epoch 0: 200 samples, 19[89] different ones
^step 3: scale_config of .*7.* nodes
^step 4: float64: loss
^1 random numbers were drawn more than once
^step 8: the ranks differ
has had 2 sets of loader processes
^step 11: ranks \[[01]\] of worlds of
^1 processes have made all steps, 2 would be right
^process [0-9]* was not there all the time
WORDS
}

shows() { as_user selastic show "$job" | grep -q "$1"; }

# newcomers KIND: workers of later worlds are that from now on.
newcomers() { as_user sh -c "echo $1 >$TB_WORK/newcomers"; }

# milliseconds PATTERN: when slurmctld has last logged that, since midnight.
milliseconds() {
    grep -E "$1" "$TB_DIR/log/slurmctld.log" | tail -1 | sed -E 's/^\[[^T]*T([0-9]+):([0-9]+):([0-9]+)\.([0-9]+)\].*/\1 \2 \3 \4/' |
        awk '{ print (($1 * 60 + $2) * 60 + $3) * 1000 + $4 }'
}

@test "newcomers that crash or hang at import or have another global batch do not disturb the others, and selastic says why; preempted, they leave at once" {
    local extension rival left
    newcomers broken
    STEP=0.5 # they wait for most of the time, and what they train meanwhile is checked
    CONF=$TB_WORK/impatient.conf training 100000
    as_user selastic resize "$job" 3
    wait_for 60 shows "its workers were not let in: a worker ended before its gate"
    newcomers batch
    wait_for 60 shows "its workers were not let in: what they train is not what the others train: .*global batch (which must not depend on WORLD_SIZE)"
    newcomers hang
    wait_for 90 shows "its workers were not let in: they did not come to their gates in 40 s"
    newcomers good
    grown_to 3
    extension=$(extensions_of "$job")
    rival=$(submit -p batch -N3 --exclusive -t 5 --wrap 'sleep 1')
    wait_for 60 job_is "$rival" COMPLETED
    left=$(($(milliseconds "_job_complete: JobId=$extension done") - $(milliseconds "job_signal: 15 of running JobId=$extension ")))
    echo "# preempted, the extension's job has ended $left ms after SIGTERM" >&3
    ((left < 90000)) # of 120 s of grace; bench/resize measures how fast it is
    finish
    run -0 check 2 float64=1e-10
    echo "$output"
    grep '^sizes 2 3 2$' <<<"$output"
    no_checkpoint
}

@test "with --mode=live a script that would be started anew at each change ends the job at its first step" {
    cat >"$TB_WORK/not_live.py" <<'SCRIPT'
import time, slurm_elastic
slurm_elastic.init()
while not slurm_elastic.elastic_event_detected():
    time.sleep(0.1)
SCRIPT
    job=$(submit --elastic=1:2 -t 20 --wrap "srun elasticrun --mode=live $PYTHON $TB_WORK/not_live.py")
    wait_for 60 job_ended "$job"
    job_is "$job" FAILED
    grep '^elasticrun: .*--mode=live: workers on n[0-9]* have begun without slurm_elastic.live' "$TB_WORK/$job.out"
    (($(grep -c ': generation [0-9]*: ' "$TB_WORK/$job.out") == 1)) # nothing was started again
}

@test "a mistake of the script ends the job at once, with one traceback, and the line that says what to do at the end" {
    cat >"$TB_WORK/mistaken.py" <<'SCRIPT'
import torch
from slurm_elastic import live
model = torch.nn.Linear(3, 2)
state = live.State(model, torch.optim.SGD(model.parameters(), lr=0.1))
def train(state):
    while True:
        model(torch.ones(2, 3)).sum().backward()
        state.step()
live.run(train, state)
SCRIPT
    job=$(submit --elastic=2:2 -t 20 --wrap "srun elasticrun $PYTHON $TB_WORK/mistaken.py")
    wait_for 60 job_ended "$job"
    cat "$TB_WORK/$job.out"
    job_is "$job" FAILED
    [[ $(job_field "$job" ExitCode) == 93:0 ]]
    [[ $(grep -c 'Traceback (most recent call last)' "$TB_WORK/$job.out") == 1 ]]
    grep -v '^srun: \|^elasticrun: job ' "$TB_WORK/$job.out" | tail -n 1 |
        grep 'the model has trained, and not through state.ddp: .*Call state.ddp(x) instead of model(x)'
    grep '^elasticrun: error: job [0-9]*: rank [01] on n[0-9] failed: the model has trained, .*(exit code 93)$' "$TB_WORK/$job.out"
    (($(grep -c ': generation [0-9]*: ' "$TB_WORK/$job.out") == 1)) # nothing was started again
}

@test "in restart mode the same script saves, leaves and loads" {
    training 100000 --mode=restart
    resize 3
    finish
    check 0 float64=1e-10
}

@test "alone and under torchrun it is a training like any other" {
    LOG=$TB_WORK/log-alone
    as_user "$PYTHON" "$TB_WORK/live.py" train "$LOG" 3 0
    check 1 float64=1e-10
    [[ ${USE_LIBUV:-1} == 1 ]] || skip "torchrun needs libuv, without which this PyTorch was built"
    LOG=$TB_WORK/log-torchrun
    as_user "$PYTHON" -m torch.distributed.run --rdzv_backend=c10d --rdzv_endpoint=localhost:0 --nproc_per_node=2 --log_dir="$TB_WORK/torchrun" -r 1 -t 2 "$TB_WORK/live.py" train "$LOG" 3 0
    check 2 float64=1e-10
}

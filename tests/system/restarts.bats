#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What follows a failure of workers: how often they are started again, on which nodes, and when they are taken for hung.
# Takes 150 s

load helpers
load elastic

setup_file() {
    # Other files load PyTorch without the libraries and modules that it does not use.
    TRUE_LIBRARIES=yes testbed_up --nodes 4
    cp "$TREE/tests/system/steps.py" "$TB_WORK/"
    # Long enough that a node stays out for the rest of a test.
    sed -i "s|^node_backoff = .*|node_backoff = 100\nreclaim_program = $TB_WORK/notice|" "$TB_DIR/etc/elastic.conf"
    script notice >/dev/null <<SH
#!/bin/sh
[ -e "$TB_WORK/reclaim.\$SLURMD_NODENAME" ]
SH
}

teardown_file() { testbed_down; }

teardown() {
    cancel_all
    rm -f "$TB_WORK"/reclaim.*
}

says() { grep -q -- "$1" "$TB_WORK/$job.out" || { cat "$TB_WORK/$job.out" && false; }; }

# worker NAME: makes steps until MAKE_STEPS is over; its own part is on stdin.
worker() {
    script "$1" <<PY
#!/usr/bin/python3
import os, sys, time
import slurm_elastic
slurm_elastic.init()
rank, node, failures = int(os.environ["RANK"]), os.environ["SLURMD_NODENAME"], int(os.environ["TORCHELASTIC_RESTART_COUNT"])
for step in range(int(sys.argv[1])):
    if slurm_elastic.elastic_event_detected():
        break
    time.sleep(0.1)
$(sed 's/^/    /')
PY
}

@test "a training that makes no steps shows its stacks, and begins anew" {
    hangs=$(worker hangs.py <<'PY'
def stands_still():
    time.sleep(1000)
if step == 5 and failures == 0:
    stands_still()
PY
    )
    job=$(submit --elastic=2:2 --elastic-hang-wait=15 -t 60 --wrap "srun elasticrun --label --max-restarts=1 $hangs 20")
    wait_for 60 job_ended "$job"
    job_is "$job" COMPLETED || { cat "$TB_WORK/$job.out" && false; }
    says 'no rank has made a step for [0-9]* s.*: it hangs'
    says 'no rank has made a step for [0-9]* s (--elastic-hang-wait=15)'
    (($(grep -c 'File .*hangs.py.* line [0-9]* in stands_still' "$TB_WORK/$job.out") == 2))
    [[ $(sizes_of "$job") == 2,2 ]]
}

@test "in live mode the rank that hangs is replaced, and the others go on" {
    hangs=$(script hangs_live.py <<'PY'
#!/usr/bin/python3
import os, sys, time
import torch
from slurm_elastic import live

torch.set_num_threads(1)
model = torch.nn.Linear(4, 1)
state = live.State(model, torch.optim.SGD(model.parameters(), lr=0.1))

def stands_still():
    time.sleep(1000)

together = 0

def enough():
    """For all ranks at once: twenty steps were made in a world of two after the hang."""
    flag = torch.tensor([int(together >= 20)])
    if torch.distributed.get_world_size() > 1:
        torch.distributed.broadcast(flag, 0)
    return bool(flag)

def train(state):
    global together
    while not enough():
        if state.steps >= 20 and int(os.environ["RANK"]) == 1 and not os.path.exists(sys.argv[1]):
            open(sys.argv[1], "w").close()
            stands_still()
        time.sleep(0.1)
        state.ddp(torch.ones(2, 4)).sum().backward()
        state.step()
        if os.environ["RANK"] == "0":
            print("step", state.steps, "by", os.getpid(), "of", os.environ["WORLD_SIZE"], flush=True)
            together += os.environ["WORLD_SIZE"] == "2" and os.path.exists(sys.argv[1])

live.run(train, state)
PY
    )
    job=$(submit --elastic=1:2 --elastic-grow-delay=0 --elastic-hang-wait=20 -t 60 --wrap \
        "srun elasticrun $PYTHON $hangs $TB_WORK/has-hung-\$SLURM_JOB_ID")
    wait_for 90 job_ended "$job"
    job_is "$job" COMPLETED || { cat "$TB_WORK/$job.out" && false; }
    says 'in stands_still'
    (($(awk '/^step/ { print $4 }' "$TB_WORK/$job.out" | sort -u | wc -l) == 1))
    # Where a world ends, the step before it is made, and not told.
    awk '/^step/ { if ($2 <= last) exit bad = 1; told++; last = $2 } END { exit bad || told < last - 10 }' "$TB_WORK/$job.out"
    says '^step .* of 2$'
}

@test "a worker that writes what --fail-pattern looks for is ended, with that line as the reason, and begins anew" {
    nan=$(worker nan.py <<'PY'
if step == 5 and failures == 0:
    if rank == 1:
        print("loss: nan", flush=True)
    time.sleep(1000)
PY
    )
    job=$(submit --elastic=2:2 -t 60 --wrap "srun elasticrun --fail-pattern='loss: (nan|inf)\$' $nan 20")
    wait_for 60 job_ended "$job"
    job_is "$job" COMPLETED || { cat "$TB_WORK/$job.out" && false; }
    says 'rank 1: ended because of this line (--fail-pattern): loss: nan'
    says 'rank 1 on n[0-9] failed: loss: nan (SIGKILL)'
    [[ $(sizes_of "$job") == 2,2 ]]
}

@test "a program that ends with 93 is not started again" {
    final=$(worker final.py <<<'sys.exit(93)')
    job=$(submit --elastic=1:1 -t 60 --wrap "srun elasticrun --max-restarts=5 $final 20")
    wait_for 30 job_is "$job" FAILED
    [[ $(job_field "$job" ExitCode) == 93:0 && $(generation_count "$job") == 1 ]]
}

@test "before its time limit a job saves, goes back into the queue, and goes on from there" {
    job=$(train 1:1 100000 0.2 -- -t 1 --open-mode=append --elastic-requeue=limit)
    wait_for 80 starts_again "$job"
    says 'told to end (its time limit is near; it goes on from the queue)'
    says 'goes back into the queue'
    steps=$(steps_of "$job")
    wait_for 60 steps_exceed "$job" "$steps"
    as_user scancel "$job"
    wait_for 30 job_ended "$job"
    steps_were_made_once "$job"
}

is_left() { ! as_user squeue -h -t R -o '%N' | grep -qx "$1"; }

@test "a node that is about to be taken away is left at once, for good" {
    job=$(train 1:2 100000 0.2)
    wait_for 40 size_is "$job" 2
    node=$(job_field "$(extensions_of "$job")" NodeList)
    as_user touch "$TB_WORK/reclaim.$node"
    wait_for 40 is_left "$node"
    wait_for 40 size_is "$job" 2
    is_left "$node"
    history_json "$job" | json_value '[g["reason"] for g in s["generations"]]' | grep -F "$node is about to be taken away"
    as_user scancel "$job"
    wait_for 30 job_ended "$job"
    steps_were_made_once "$job"
}

#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What follows a failure of workers: how often they are started again, on which nodes, and when they are taken for hung.
# Time limit: 400 s
# Takes 160 s

# shellcheck disable=SC2034
BATS_TEST_TIMEOUT=300
load helpers
load elastic

setup_file() {
    testbed_up --nodes 4
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
    job=$(submit --elastic=2:2 --elastic-hang-wait=3 -t 5 --wrap "srun elasticrun --label --max-restarts=1 $hangs 20")
    wait_for 60 job_ended "$job"
    job_is "$job" COMPLETED || { cat "$TB_WORK/$job.out" && false; }
    says 'no rank has made a step for [0-9]+ s.*: it hangs'
    says 'no rank has made a step for [0-9]* s (--elastic-hang-wait=3)'
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
    job=$(submit --elastic=1:2 --elastic-grow-delay=0 --elastic-hang-wait=5 -t 5 --wrap \
        "srun elasticrun $hangs $TB_WORK/has-hung-\$SLURM_JOB_ID")
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
if step == 5 and rank == 1 and failures == 0:
    print("loss: nan", flush=True)
PY
    )
    job=$(submit --elastic=2:2 -t 5 --wrap "srun elasticrun --fail-pattern='loss: (nan|inf)\$' $nan 20")
    wait_for 60 job_ended "$job"
    job_is "$job" COMPLETED || { cat "$TB_WORK/$job.out" && false; }
    says 'rank 1: ended because of this line (--fail-pattern): loss: nan'
    says 'rank 1 on n[0-9] failed: loss: nan (SIGKILL)'
    [[ $(sizes_of "$job") == 2,2 ]]
}

@test "a program that ends with 93 is not started again" {
    final=$(worker final.py <<<'sys.exit(93)')
    job=$(submit --elastic=1:1 -t 5 --wrap "srun elasticrun --max-restarts=5 $final 20")
    wait_for 30 job_is "$job" FAILED
    [[ $(job_field "$job" ExitCode) == 93:0 && $(generation_count "$job") == 1 ]]
}

@test "a failure too many within the time ends the job" {
    fails=$(worker fails.py <<<'sys.exit(7)')
    job=$(submit --elastic=1:1 --elastic-max-restarts=1/600 -t 5 --wrap "srun elasticrun $fails 20")
    wait_for 30 job_is "$job" FAILED
    says '2 failures: giving up (--max-restarts=1/600)'
    [[ $(job_field "$job" ExitCode) == 7:0 && $(generation_count "$job") == 2 ]]
}

@test "a job that has failed too often goes on from the queue, as often as it may fail" {
    fails=$(worker fails_first.py <<'PY'
if os.environ["ELASTIC_INCARNATION"].endswith(".0"):
    sys.exit(7)
PY
    )
    job=$(submit --elastic=1:1 --elastic-max-restarts=1 --elastic-requeue=fault -t 5 --wrap "srun elasticrun $fails 20")
    wait_for 60 starts_again "$job"
    wait_for 30 job_is "$job" COMPLETED
    again=$(submit --elastic=1:1 --elastic-max-restarts=0 --elastic-requeue=fault -t 5 --wrap "srun elasticrun $fails 20")
    wait_for 30 job_is "$again" FAILED
    [[ $(job_field "$again" Restarts) == 0 ]]
}

@test "before its time limit a job saves, goes back into the queue, and goes on from there" {
    job=$(train 1:1 100000 0.2 -- -t 1 --open-mode=append --elastic-requeue=limit)
    wait_for 80 starts_again "$job"
    says 'told to end (its time limit is near; it goes on from the queue)'
    says 'is back in the queue'
    steps=$(steps_of "$job")
    wait_for 60 steps_exceed "$job" "$steps"
    as_user scancel "$job"
    wait_for 30 job_ended "$job"
    steps_were_made_once "$job"
}

is_left() { ! as_user squeue -h -t R -o '%N' | grep -qx "$1"; }

@test "a node that is drained is left while it still runs, and another one is used" {
    job=$(train 1:2 100000 0.2)
    wait_for 40 size_is "$job" 2
    extension=$(extensions_of "$job")
    node=$(job_field "$extension" NodeList)
    on_testbed scontrol update nodename="$node" state=drain reason=test
    wait_for 20 is_left "$node"
    wait_for 40 size_is "$job" 2
    on_testbed scontrol update nodename="$node" state=resume
    history_json "$job" | json_value '[g["reason"] for g in s["generations"]]' | grep -F "$node is drained or down"
    [[ $(history_json "$job" | json_value '[g["kind"] for g in s["generations"]]') == "['start', 'grow', 'shrink', 'grow']" ]]
    as_user scancel "$job"
    wait_for 30 job_ended "$job"
    steps_were_made_once "$job"
}

@test "a node that is about to be taken away is left at once, for good" {
    job=$(train 1:2 100000 0.2)
    wait_for 40 size_is "$job" 2
    node=$(job_field "$(extensions_of "$job")" NodeList)
    as_user touch "$TB_WORK/reclaim.$node"
    wait_for 20 is_left "$node"
    wait_for 40 size_is "$job" 2
    is_left "$node"
    history_json "$job" | json_value '[g["reason"] for g in s["generations"]]' | grep -F "$node is about to be taken away"
    as_user scancel "$job"
    wait_for 30 job_ended "$job"
    steps_were_made_once "$job"
}

generations_are() { [[ $(generation_count "$1") == "$2" ]]; }

waits_for_others() { [[ $(as_user selastic show "$job") == *"waiting for nodes in the place of lost ones: 1 of 2 are there"* ]]; }

# lose_extension: the agent of the job's extension is killed.
lose_extension() {
    local extension
    # One that was lost before may still be ending.
    extension=$(running_extensions_of "$job")
    as_user kill -KILL "$(agent_of "$extension" "$(job_field "$extension" NodeList)")"
}

@test "a lost node is replaced before training begins anew; where none is free, it goes on with fewer after fault-wait" {
    job=$(train 1:2 100000 0.2 -- --elastic-fault-wait=15)
    wait_for 40 size_is "$job" 2
    lose_extension
    wait_for 15 generations_are "$job" 3
    [[ $(sizes_of "$job") == 1,2,2 ]] || { cat "$TB_WORK/$job.out" && false; }
    # The two that were lost are left out, and no other one is there.
    free=$(on_testbed sinfo -h -p batch -t idle -N -o %N | grep -vx "$(history_json "$job" | json_value 's["generations"][1]["nodes"][1]')")
    on_testbed scontrol update nodename="$free" state=drain reason=test
    wait_for 20 size_is "$job" 2
    lose_extension
    wait_for 10 says 'lost nodes are replaced first: waiting up to 15 s for nodes'
    wait_for 5 waits_for_others
    wait_for 30 size_is "$job" 1
    on_testbed scontrol update nodename="$free" state=resume
    wait_for 40 size_is "$job" 2
    [[ $(sizes_of "$job") == 1,2,2,1,2 ]]
}

# has_used JOB COUNT: so many different nodes so far.
has_used() { [[ $(history_json "$1" | json_value 'len({n for g in s["generations"] for n in g["nodes"]})' 2>/dev/null) == "$2" ]]; }

has_failed_twice() { (($(grep -c 'error: .* rank 1 on .* failed' "$TB_WORK/$job.out") == 2)); }

shows_left_out() { as_user selastic show "$job" | grep -qE '^ *Left out +n[0-9]+ \(for [0-9]+ s\)'; }

@test "a node on which workers fail again and again is left out" {
    fails=$(worker fails_there.py <<PY
bad = "$TB_WORK/bad"
if rank == 1 and step == 5:
    if not os.path.exists(bad):
        with open(bad, "w") as file:
            file.write(node)
    if open(bad).read() == node:
        sys.exit(1)
PY
    )
    job=$(submit --elastic=1:2 --elastic-grow-delay=0 -t 5 --wrap "srun elasticrun --max-restarts=5 $fails 1000")
    wait_for 90 has_used "$job" 3
    wait_for 20 has_failed_twice
    wait_for 20 shows_left_out
    # … and the world on the other one goes on.
    wait_for 20 size_is "$job" 2
}

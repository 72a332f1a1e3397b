#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Live mode: workers, agents and nodes are lost at all moments, and the others go on.
# Takes 115 s

load helpers
load elastic

setup_file() {
    testbed_up --nodes 5
    cp "$TREE"/tests/system/live{,_faults}.py "$TB_WORK/"
    long_kill_wait
}

teardown_file() { testbed_down; }

teardown() { cancel_all; }

faults() { as_user "$PYTHON" "$TB_WORK/live_faults.py" "$@"; }

# training NODES MOST OPTIONS...: starts one whose steps take 0.25 s, on so many nodes of its own.
training() {
    job=$(submit --elastic="$1:$2" --elastic-grow-delay=0 -N"$1" --exclusive -t 20 "${@:3}" --wrap \
        "srun elasticrun --max-restarts=${RESTARTS:-20} $PYTHON $TB_WORK/live_faults.py train $TB_WORK/log-\$SLURM_JOB_ID 0.25")
    LOG=$TB_WORK/log-$job
}

# suffers NODES FAULT...
suffers() {
    faults inject "$job" "$LOG" "$@" || { cat "$TB_WORK/$job.out" && false; }
}

# went_well: no step is lost or made twice, no collective waited for its own time limit, nobody has read a checkpoint.
went_well() {
    wait_for 120 job_ended "$job"
    job_is "$job" COMPLETED || { cat "$TB_WORK/$job.out" && false; }
    faults check "$LOG" 1e-10 150 || { cat "$TB_WORK/$job.out" && false; }
    [[ -z $(find "$TB_DIR/jobs/elastic-$job" -name latest) ]]
}

@test "workers are killed and stopped, in a step, while a world forms and while the state is passed on; agents and nodes are" {
    training 2 5
    suffers 4 compute:worker:KILL reduce:worker0:KILL any:workers:KILL any:worker:STOP form:worker:KILL:3 transfer:worker:KILL:5 \
        leave:worker:KILL:3 any:agent:STOP any:member:KILL
    went_well
}

has_stepped() { cat "$LOG"/* 2>/dev/null | grep -q '"step": 3'; }
shows() { as_user selastic show "$job" | grep -q "$1"; }
checkpoint() { find "$TB_DIR/jobs/elastic-$job" -name latest; }

# alone OPTIONS...: one worker of two is left, and waits for another that does not come.
alone() {
    training 2 2 "$@"
    wait_for 60 has_stepped
    as_user touch "$LOG.broken" # newcomers end
    faults kill "$LOG"
}

drain() { on_testbed scontrol update nodename="$1" state=drain reason=test; }

resume_all() { on_testbed scontrol update nodename='n[1-5]' state=resume 2>/dev/null || true; }

# trains_without NODE...: none of them is in the world.
trains_without() {
    local node training
    training=$(show_json "$job" | json_value '[m["node"] for m in s["members"] if m["state"] == "training"]')
    for node; do
        [[ $training == *"'"* && $training != *"'$node'"* ]] || return 1
    done
}

@test "drained nodes go when those that take their place have the state, and all of an extension goes with one of its nodes" {
    training 2 4 --elastic-grow=ask
    wait_for 60 has_stepped
    base=$(job_nodes "$job")
    for node in $base; do drain "$node"; done
    wait_for 30 shows 'drained or down'
    as_user selastic resize "$job" 4
    # shellcheck disable=SC2086
    wait_for 60 trains_without $base
    as_user sh -c ": >'$LOG.faults'; : >'$LOG.enough'"
    went_well
    [[ $(<"$TB_WORK/$job.out") != *'no worker has the state'* ]]
    resume_all
    training 2 4:2
    wait_for 60 size_is "$job" 4
    extension=$(extensions_of "$job")
    drain "$(job_nodes "$extension" | tail -1)"
    wait_for 30 job_ended "$extension"
    wait_for 30 size_is "$job" 2
    resume_all
    as_user sh -c ": >'$LOG.faults'; : >'$LOG.enough'"
    went_well
}

@test "a job that ends while one waits with the state leaves a checkpoint, and so does one that waits in vain" {
    alone --elastic-fault-wait=600
    wait_for 30 shows "1 of at least 2"
    [[ -z $(checkpoint) ]]
    as_user scancel "$job"
    wait_for 60 job_ended "$job"
    [[ -n $(checkpoint) ]]
    alone --elastic-fault-wait=6
    wait_for 60 job_ended "$job"
    job_is "$job" FAILED
    [[ -n $(checkpoint) ]]
    says "$TB_WORK/$job.out" 'waiting: 1 of at least 2 nodes are there; gave up after'
}

@test "workers that end in the midst of train(), one long after the others, are the end of the training" {
    script=$(script midst.py <<'PY'
#!/usr/bin/python3
import os, time
import torch
from slurm_elastic import live

model = torch.nn.Linear(2, 1)
state = live.State(model, torch.optim.SGD(model.parameters(), lr=0.1))

def enough():
    """As many steps with three workers, for all of them at once."""
    flag = torch.tensor([int(os.path.exists("grown") and torch.distributed.get_world_size() == 3)])
    torch.distributed.broadcast(flag, 0)
    return bool(flag)

def train(state):
    while not enough():
        state.ddp(torch.ones(1, 2)).sum().backward()
        state.step()
        time.sleep(0.1)
    if os.environ["RANK"] == "0":
        print("writes", flush=True)
        while not os.path.exists("taken"):  # what has come out
            time.sleep(0.1)
        print("written", flush=True)
    os._exit(0)

live.run(train, state)
PY
    )
    job=$(submit --elastic=2:3 --elastic-grow-delay=0 -N2 --exclusive -t 20 --wrap "srun elasticrun $PYTHON $script")
    wait_for 60 size_is "$job" 3
    as_user touch "$TB_WORK/grown"
    wait_for 60 says "$TB_WORK/$job.out" '^writes$'
    # Nor is it a reason for another world that Slurm takes a node that has done its part.
    extension=$(extensions_of "$job")
    rival=$(submit -N3 --exclusive -t 5 --wrap 'sleep 1')
    wait_for 30 job_ended "$extension"
    as_user touch "$TB_WORK/taken"
    wait_for 60 job_ended "$job"
    job_is "$job" COMPLETED || { cat "$TB_WORK/$job.out" && false; }
    [[ $(grep -c '^written$' "$TB_WORK/$job.out") == 1 ]]
    [[ $(sizes_of "$job") == 2,3 ]]
    as_user scancel "$rival"
}

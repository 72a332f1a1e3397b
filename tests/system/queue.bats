#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What extensions do in the queue: where they may start, behind whom, and how many wait.
# Takes 35 s

load helpers
load elastic

setup_file() {
    testbed_up --nodes 8
    patient
    cp "$TREE/tests/system/steps.py" "$TB_WORK/"
}

teardown_file() { testbed_down; }

teardown() {
    [[ -z ${sampler:-} ]] || kill "$sampler" || true
    cancel_all
}

# fill COUNT: a rigid job has so many nodes. Sets filler.
fill() {
    filler=$(submit -N"$1" --exclusive -t 90 --wrap 'sleep 5400')
    wait_for 30 job_is "$filler" RUNNING
}

@test "a base that does not own its nodes gets no extension on them, however much room they have" {
    fill 6
    # One of four CPUs on each of two nodes.
    job=$(submit --elastic=2:3 --elastic-grow-delay=2 -N2 -n2 -t 10 --wrap \
        "srun elasticrun /usr/bin/python3 $TB_WORK/steps.py $TB_WORK/log-\$SLURM_JOB_ID 100000 0.2")
    wait_for 30 job_is "$job" RUNNING
    own=$(job_field "$job" NodeList)
    # Slurm has tried: such a job without our restraint starts there at once.
    wait_for 30 has_pending_extension "$job" Re
    extension=$(extensions_of "$job")
    beside=$(submit -p elastic -N1 -n1 -t 5 --wrap 'sleep 1')
    wait_for 30 job_is "$beside" COMPLETED
    [[ " $(as_user scontrol show hostnames "$own" | xargs) " == *" $(job_field "$beside" NodeList) "* ]]
    job_is "$extension" PENDING
    as_user scancel "$filler"
    wait_for 60 size_is "$job" 3
    nodes=$(show_json "$job" | json_value '" ".join(m["node"] for m in s["members"])')
    echo "members on $nodes"
    [[ $(tr ' ' '\n' <<<"$nodes" | sort -u | wc -l) == 3 ]]
    goes_on "$job"
    steps_were_made_once "$job"
}

@test "behind a pending job of all 8 nodes an extension starts on nodes that are idle meanwhile" {
    fill 4
    rigid=$(submit -N8 --exclusive -t 5 --wrap 'sleep 300')
    wait_for 30 waits_for_nodes "$rigid"
    job=$(train 2:4 100000 0.2)
    wait_for 90 size_is "$job" 4
    job_is "$rigid" PENDING
    goes_on "$job"
    steps_were_made_once "$job"
}

# Slurm 23.11 gives such a job no reason.
waits_for_nodes() { job_is "$1" PENDING && [[ $(job_field "$1" StartTime) == 20* ]]; }


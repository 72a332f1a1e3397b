#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Nodes that Slurm powers up and down (scripts/testbed up --cloud), and elastic jobs that grow onto them.
# Takes 155 s

# Slurm 22.05 may take half a minute to see that the nodes of a batch job are up.

load helpers
load elastic
load cloud

setup_file() {
    testbed_up --nodes 1 --cloud spot=3,slow=1 --resume-timeout 45
    cp "$TREE/tests/system/steps.py" "$TB_WORK/"
    zone spot boot=1 pause=1
    zone slow failure=slow pause=1
}

teardown_file() {
    testbed_down
}

setup() {
    zone spot capacity=3 boot=1 trace=none
}

teardown() {
    cancel_all
}

# Those that are not powered down, which Slurm before 23.02 hides by itself.
cloud_nodes() {
    on_testbed sinfo -h -N -p "$1" -o '%N %T %E' | grep -v '^[^ ]* [a-z]*~ ' || true
}

slurmds() {
    "$TESTBED" status --dir "$TB_DIR" | grep -cE "^slurmd.n[2-5] .* running" || true
}

no_cloud_slurmd() {
    [[ $(slurmds) == 0 ]]
}

# salloc, other than batch jobs, sees at once that its nodes are up.
allocate() {
    as_user salloc --quiet --wait-all-nodes=1 "$@"
}

# reason_is CODE: so a node's state was set to down. (It is not for long.)
reason_is() { says "$TB_DIR/log/slurmctld.log" "reason set to: .Code:$1"; }

@test "a rigid job boots its nodes, and Slurm powers them down afterwards" {
    all_off # to begin with
    allocate -p spot -N2 sh -c 'scontrol show hostnames; until [ -e seen ]; do sleep 0.1; done' >"$TB_HOME/nodes" 3>&- &
    wait_for 60 says "$TB_HOME/nodes" .
    [ "$(wc -l <"$TB_HOME/nodes")" -eq 2 ]
    [ "$(slurmds)" -eq 2 ]
    as_user touch seen
    wait $!
    wait_for 20 all_off
    wait_for 30 no_cloud_slurmd
}

@test "a zone without room fails at once, with the reason of the cloud, and can be used again" {
    wait_for 40 all_off
    zone spot capacity=1
    id=$(submit -p spot -N2 --no-requeue --wrap true)
    wait_for 30 job_is "$id" NODE_FAIL
    wait_for 20 reason_is InsufficientInstanceCapacity
    zone spot capacity=2
    wait_for 30 all_off
    run -0 allocate -p spot -N2 true
}

@test "a node that never boots fails the job after ResumeTimeout" {
    zone slow capacity=0
    id=$(submit -p slow -N1 --no-requeue --wrap true)
    wait_for 30 job_is "$id" CONFIGURING RUNNING
    wait_for 60 job_is "$id" NODE_FAIL
    [ "$(slurmds)" -eq 0 ]
    zone slow capacity=1
}

@test "capacity that falls ends nodes, by hand and by a trace" {
    printf '{"metadata": {"gap_seconds": 300}, "data": [1, 1, 1]}' >"$TB_WORK/trace.json"
    wait_for 40 all_off
    id=$(submit -p spot -N3 --no-requeue --wrap 'sleep 1800')
    slurmds_are() { [[ $(slurmds) == "$1" ]]; }
    wait_for 20 slurmds_are 3
    zone spot capacity=2
    wait_for 30 reason_is InstanceReclaimed
    [[ $(grep -c '(InstanceReclaimed)' "$TB_DIR/log/cloud.out") == 1 ]]
    zone spot trace="$TB_WORK/trace.json" speed=100
    wait_for 30 job_ended "$id"
    submit -p spot -N2 --no-requeue --wrap true
    wait_for 20 says "$TB_DIR/log/cloud.out" 'no more than 1 nodes'
}

@test "down leaves nothing of nodes that boot, also if nobody is there any more who boots them" {
    other=$TB_HOME/other
    "$TESTBED" up ${ELASTIC_TESTBED:+"$ELASTIC_TESTBED"} --dir "$other" --stock --nodes 1 --cloud 2
    eval "$("$TESTBED" env --dir "$other")"
    salloc --quiet --no-shell -p cloud -N2 &
    wait_for 20 says "$other/log/cloud.out" 'n3 boots'
    daemon=$(sed -n 's/^cloud \([0-9]*\) .*/\1/p' "$other/run/pids")
    wait_for 20 says "$other/run/pids" '^slurmd.n2 '
    kill -KILL "$daemon"
    "$TESTBED" down --dir "$other"
    [ ! -e "$other" ]
    [ -z "$(processes_of "$other")" ]
}

@test "what makes no sense is refused" {
    for zones in 0 spot=x batch=1 spot=1,spot=2 ''; do
        run -1 "$TESTBED" up --dir "$TB_HOME/other" --cloud "$zones"
        [[ ${#lines[@]} -eq 1 && $output == "testbed: --cloud"* ]]
        [ ! -e "$TB_HOME/other" ]
    done
    run -1 "$TESTBED" zone --dir "$TB_DIR" nowhere
    [[ $output == *"want one of spot slow"* ]]
    run -1 "$TESTBED" zone --dir "$TB_DIR" spot capacity=many
    [[ $output == *"capacity=N"* ]]
    run -1 "$TESTBED" zone --dir "$TB_DIR" spot trace=/nonexistent
    [[ $output == *"not a file with gap_seconds"* ]]
}

extension_of() {
    on_testbed squeue -h -p spot -o %A | head -n 1
}

extends() {
    [[ -n $(extension_of) ]]
}

# has_begun JOB EXTENSION: it has had a node on which it could write.
has_begun() { [[ -e $TB_DIR/jobs/$TB_USER-$1/extension-$2.log ]]; }

@test "an elastic job grows onto a node that boots for long, and says so" {
    wait_for 40 all_off
    zone spot boot=600
    id=$(train 1:2 100000 0.2 -- -p batch --elastic-pool=spot)
    wait_for 20 says_of_growth "$id" 'extension job [0-9]+ \(1 node\) is powering up, [0-9]+ s'
    first=$(extension_of)
    zone spot boot=1
    wait_for 60 size_is "$id" 2
    [ "$(extension_of)" = "$first" ]
    has_begun "$id" "$first"
    enough "$id"
}

@test "an extension that is preempted while its node boots is cancelled at once" {
    wait_for 40 all_off
    zone spot boot=600
    id=$(train 1:2 100000 0.2 -- -p batch --elastic-pool=spot)
    wait_for 20 extends
    first=$(extension_of)
    wait_for 30 job_is "$first" CONFIGURING RUNNING
    high=$(submit -p owners -w "$(job_nodes "$first")" --exclusive --wrap true)
    wait_for 60 job_is "$first" CANCELLED # by its leader; Slurm itself would call it PREEMPTED or NODE_FAIL
    run ! has_begun "$id" "$first"
    [ -z "$(job_processes "$first")" ]
    zone spot boot=1
    as_user scancel "$high"
    enough "$id"
}

@test "the example with a deadline says how much of its work is done" {
    as_user python3 -c 'import torch' 2>/dev/null || skip "PyTorch is not installed"
    cp "$TREE"/examples/deadline/* "$TB_WORK/"
    # No node boots for it: the pool has the node of the base only.
    id=$(submit -p batch -t 5 --elastic-pool=elastic --chdir="$TB_WORK" "$TB_WORK/job.sh" --sample-time=0.001)
    wait_for 30 says_of_growth "$id" 'Progress +[0-9]+ of 320 steps'
    says_of_growth "$id" 'Deadline +[0-9]'
    wait_for 60 job_is "$id" COMPLETED
    says "$TB_WORK/$id.out" '^steps=320 weight='
    grep -q '"pool":"(base)"' "$TB_DIR"/jobs/*-"$id"/pools.json
}

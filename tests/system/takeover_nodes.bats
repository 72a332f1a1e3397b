#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The node of the leader is lost: another one of the base leads. While slurmctld is away:
# tests/sim/scenarios/takeover_without_controller.sim.
# Takes 25 s

load helpers
load elastic
load takeover

@test "the leading node is lost for good: output goes on in the job's file, and the job ends" {
    training 3:5
    wait_for 30 size_is "$job" 5
    trains_on
    as_user selastic resize "$job" 4
    wait_for 20 size_is "$job" 4
    crashed=n1
    "$TESTBED" crash --dir "$TB_DIR" n1
    trains_on
    wait_for 20 led_by "$job" n2
    # It knows what the one before was told to.
    knows_target() { [[ $(show_json "$job" | json_value 's["target"]') == 4 ]]; }
    wait_for 20 knows_target
    went_well
    wait_for 60 says "$TB_WORK/$job.out" "srun is lost with its node: output goes on in .*/$job.out"
    wait_for 20 says "$TB_WORK/$job.out" 'generation [0-9]+: 3 nodes, 3 workers \(fault: the leading node was lost\)'
    for node in n2 n3; do
        wait_for 20 says "$TB_WORK/$job.out" "^through on $node"
    done
    # Slurm waits for the lost node, or until it takes it for down.
    "$TESTBED" boot --dir "$TB_DIR" n1
    crashed=
    wait_for 60 job_is "$job" COMPLETED
    [[ $(job_field "$job" ExitCode) == 0:0 ]]
    # The next job on that node finds what is left there.
    as_user srun -w n1 true
    wait_for 20 nothing_is_left_of "$job"
}

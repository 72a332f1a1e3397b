#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Level 0: a Slurm without any plugin, prolog or epilog of ours; only programs in the user's hands.

# shellcheck disable=SC2034
BATS_TEST_TIMEOUT=120
load helpers
load elastic

setup_file() {
    testbed_up --nodes 4 --stock
    cp "$TREE/tests/system/steps.py" "$TB_WORK/"
}

teardown_file() { testbed_down; }

teardown() { cancel_all; }

@test "elasticrun --elastic=2:4 in a plain sbatch grows, finishes and leaves nothing" {
    run as_user sbatch --elastic=2:4 --wrap true
    ((status != 0)) # the plugin is really not there
    job=$(submit -N2 --exclusive -t 5 --wrap "srun elasticrun --elastic=2:4 --elastic-pool=elastic --elastic-grow-delay=2 \
        /usr/bin/python3 $TB_WORK/steps.py $TB_WORK/log-\$SLURM_JOB_ID 40 0.3")
    wait_for 60 size_is "$job" 4
    run as_user selastic list
    [[ $output == *"$job"* ]]
    wait_for 60 job_is "$job" COMPLETED
    sizes_are_among "$job" 2 3 4
    steps_were_made_once "$job"
    wait_for 10 nothing_is_left_of "$job"
}

@test "wrong sizes and places are refused with one line" {
    run as_user elasticrun --elastic=2:4 true
    ((status == 2))
    [[ $output == *"not inside a Slurm job"* && ${#lines[@]} == 1 ]]
    job=$(submit -N2 --exclusive -t 5 --wrap "srun elasticrun --elastic=4:2 true")
    wait_for 30 job_is "$job" FAILED
    says "$TB_WORK/$job.out" 'elasticrun: .*4:2.*MIN'
    [[ $(grep -c elasticrun: "$TB_WORK/$job.out") == 1 ]]
    job=$(submit -N2 --exclusive -t 5 --wrap "srun elasticrun --elastic=3:4 true")
    wait_for 30 job_is "$job" FAILED
    says "$TB_WORK/$job.out" 'elasticrun: .*3:4 needs 3 nodes to start, this step has 2'
    job=$(submit -N2 --exclusive -t 5 --wrap "elasticrun --elastic=2:4 true")
    wait_for 30 job_is "$job" FAILED
    says "$TB_WORK/$job.out" 'start it with srun'
}

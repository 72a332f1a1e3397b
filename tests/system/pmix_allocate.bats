#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Programs that change the size of their own job with PMIx_Allocation_request.

load helpers
load elastic

setup_file() {
    mpi_up --nodes 4
    patient
    compile mpicc.openmpi pmix/resizer.c "$TB_WORK/resizer" pmix
}

teardown_file() { testbed_down; }

teardown() { cancel_all; }

nodes_of() { as_user squeue -h -t R -o %N | tr '\n' ' '; }

slurm_says() { [[ $(as_user squeue -h -t R -o %D | awk '{ n += $1 } END { print n }') == "$1" ]]; }

@test "an MPI program asks for two nodes, goes on from its checkpoint on four, and gives one back by name" {
    job=$(submit --elastic=2:4 --elastic-grow=ask --elastic-grow-delay=1 -N2 --ntasks-per-node=1 --exclusive -t 30 --wrap "export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_tcp_if_include=$MPI_NETWORK
        srun elasticrun $TB_WORK/resizer $TB_WORK/checkpoint $TB_WORK/log n4")
    wait_for 60 says "$TB_WORK/log" '^more: SUCCESS'
    wait_for 60 says "$TB_WORK/log" '^4 nodes, step'
    slurm_says 4
    wait_for 60 says "$TB_WORK/log" '^less: SUCCESS'
    wait_for 60 says "$TB_WORK/log" '^3 nodes, step'
    wait_for 60 says "$TB_WORK/log" '^event ready of .* \(less\)'
    slurm_says 3
    [[ " $(nodes_of) " != *" n4 "* ]]
    wait_for 60 job_is "$job" COMPLETED
    cat "$TB_WORK/log" "$TB_WORK/$job.out"
    # What was saved is where the next one goes on, and each request ends with one event.
    awk '/^saved step/ { saved = $3 } / nodes, step / { if ($4 != saved + 0) { print "went on at " $4; bad = 1 } } END { exit bad }' \
        "$TB_WORK/log"
    [[ $(grep -c '^event' "$TB_WORK/log") == 2 ]]
    grep -qx "event ready of $job.0.1 (more)" "$TB_WORK/log"
    grep -qx "event ready of $job.0.2 (less)" "$TB_WORK/log"
    for line in 'many: BAD-PARAM' 'text: BAD-PARAM' 'new: NOT-SUPPORTED' 'base: BAD-PARAM' 'foreign: NOT-FOUND'; do
        grep -q "^$line" "$TB_WORK/log"
    done
    says "$TB_WORK/$job.out" "refused: 100 more nodes would make 102: the job may have 2:4"
    says "$TB_WORK/$job.out" "refused: n1 belongs to the base job, which keeps its nodes"
    [[ $(sizes_of "$job") == 2,?(3,)4,3 ]] # the two may have come one after the other
    wait_for 30 nothing_is_left_of "$job"
}

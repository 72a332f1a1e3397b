#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# Open MPI programs that know nothing of us, wired up by elasticrun's PMIx servers.
# Takes 25 s

load helpers
load elastic

setup_file() {
    mpi_up --nodes 4
    patient
    mkdir "$TB_WORK/mpi"
    cp "$TREE"/tests/system/mpi/*.py "$TB_WORK/mpi/"
    compile mpicc.openmpi mpi/collectives.c "$TB_WORK/mpi/collectives"
    chown -R "$TB_USER" "$TB_WORK/mpi"
}

teardown_file() { testbed_down; }

teardown() { cancel_all; }

# mpirun_on NODES COMMAND...: two processes on each. (More processes than cores, and each of them waits by looking.) srun is quiet: where it has to
# wait for nodes that the last job is just leaving, it would say so.
mpirun_on() {
    as_user OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_tcp_if_include="$MPI_NETWORK" timeout 300 srun --quiet -N"$1" --ntasks-per-node=2 --exclusive elasticrun \
        --elastic="$1:$1" "${@:2}"
}

@test "collectives are right on 2 and 4 nodes, two processes a node" {
    for nodes in 2 4; do
        run -0 mpirun_on "$nodes" "$TB_WORK/mpi/collectives" "$TB_WORK/log.$nodes" 3
        echo "$output"
        [[ $(cat "$TB_WORK/log.$nodes") == "1 $((2 * nodes))"$'\n'"2 $((2 * nodes))"$'\n'"3 $((2 * nodes))" ]]
    done
    # What is said is elasticrun's own line, and nothing of PMIx or MPI.
    [[ ${#lines[@]} == 2 && ${lines[0]} == *"4 nodes, 8 workers"* && ${lines[1]} == *" node hours" ]]
}

@test "a program that was built for nobody in particular: NetPIPE between two nodes" {
    run -0 as_user OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_tcp_if_include="$MPI_NETWORK" timeout 300 srun -N2 --ntasks-per-node=1 --exclusive elasticrun \
        --elastic=2:2 NPopenmpi -u 4096 -n 20 -o "$TB_WORK/np.out"
    echo "$output"
    [[ $output == *"4096 bytes"*"Mbps"* ]]
    [[ $(awk '$1 == 4096' "$TB_WORK/np.out" | wc -l) == 1 ]]
}

@test "mpi4py, by its import, on 2 and 4 nodes" {
    for nodes in 2 4; do
        run -0 mpirun_on "$nodes" /usr/bin/python3 "$TB_WORK/mpi/collectives.py"
        echo "$output"
        [[ $output == *"mpi4py $((2 * nodes)) ranks: right"* ]]
    done
}

@test "a running program is started again in the larger world and in the smaller one" {
    job=$(submit --elastic=2:4 --elastic-grow-delay=2 -N2 --ntasks-per-node=2 --exclusive -t 10 --wrap "export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_tcp_if_include=$MPI_NETWORK
        srun elasticrun $TB_WORK/mpi/collectives $TB_WORK/log.resize 100000 0.2")
    wait_for 60 says "$TB_WORK/log.resize" ' 8$'
    rival=$(submit -N1 --exclusive -t 30 --wrap 'sleep 1800')
    wait_for 60 job_is "$rival" RUNNING
    wait_for 60 says "$TB_WORK/log.resize" ' 6$'
    cat "$TB_WORK/$job.out"
    # Every round once, in one world after the other.
    awk '{ if ($1 != NR) { print "round " $1 " in line " NR; bad = 1 } } END { exit bad }' "$TB_WORK/log.resize"
    [[ $(awk '{ print $2 }' "$TB_WORK/log.resize" | uniq | xargs) == *"8 6" ]]
    # Slurm's SIGTERM ends the ranks of the preempted node before the others: Open MPI may tell, in frames, of its btl_tcp or of memory that it reads (errno 3), that these are gone.
    # Open MPI 5 may end the others itself then, and says so in lines with stars.
    run ! grep -v '^elasticrun: \|btl_tcp\|^\[n[0-9]*:[0-9]*\] \*\*\* \|Read -1, expected [0-9]*, errno = 3' <(sed '/^-\{60,\}$/,/^-\{60,\}$/d' "$TB_WORK/$job.out")
    [[ $(grep -c '^elasticrun: job .*: generation' "$TB_WORK/$job.out") == $(generation_count "$job") ]]
    as_user scancel "$job"
    wait_for 30 nothing_is_left_of "$job"
}

@test "MPI_Abort ends the job, with its status" {
    run mpirun_on 2 --max-restarts=0 bash -c "exec $TB_WORK/mpi/collectives /nonexistent/log 1"
    echo "$output"
    ((status == 3))
    [[ $output == *"wrong: log"* && $output == *"PMIx_Abort with status 3"* ]]
}

@test "--pmix=no: a process of its own" {
    run -0 mpirun_on 2 --pmix=no bash -c '! env | grep ^PMIX_'
    run -0 mpirun_on 2 --pmix=auto bash -c 'env | grep -q ^PMIX_NAMESPACE='
}

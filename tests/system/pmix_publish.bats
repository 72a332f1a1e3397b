#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# What processes publish for each other and log, through elasticrun's PMIx servers.

load helpers
load elastic

setup_file() {
    mpi_up --nodes 2 --cpus-per-node 64
    install -m 0755 "${top_builddir:-$TREE/build}/tests/system/pmix_publish" "$TB_WORK/"
    compile mpicc.openmpi mpi/names.c "$TB_WORK/names"
}

teardown_file() { testbed_down; }

teardown() { cancel_all; }

# run_on_both OPTION... COMMAND...: two processes on each of two nodes.
run_on_both() {
    as_user OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_tcp_if_include="$MPI_NETWORK" timeout 300 srun -N2 --ntasks-per-node=2 --exclusive elasticrun --elastic=2:2 "$@"
}

# Whether that line is there so many times.
lines_are() { [[ $(grep -cxF -- "$2" <<<"$output") == "$1" ]]; }

@test "publish, lookup, unpublish and log among four processes on two nodes" {
    run -0 run_on_both --label "$TB_WORK/pmix_publish" all
    echo "$output"
    for rank in 0 1 2 3; do
        lines_are 1 "$rank: right: $rank of all"
        lines_are 1 "$rank: logged by $rank"
        lines_are 1 "$rank: and"
        lines_are 1 "$rank: in stderr"
    done
    [[ $(grep -c 'has read it' <<<"$output") == 1 ]]
    lines_are 1 "0: only here"
    lines_are 1 "0: in part"
    [[ $output != *wrong* && $output != *nowhere* ]]
}

@test "a process is killed while it waits; what is kept for the job is found by the next world" {
    run -0 run_on_both --max-restarts=1 "$TB_WORK/pmix_publish" again
    echo "$output"
    for rank in 0 1 2 3; do
        lines_are 1 "right: $rank of again"
    done
    [[ $output == *"failed: SIGKILL"* && $output != *wrong* ]]
}

@test "a hundred processes look up a value of 1 MiB at the same moment" {
    run -0 as_user timeout 300 srun -N2 --ntasks-per-node=50 --exclusive elasticrun --elastic=2:2 --max-restarts=0 "$TB_WORK/pmix_publish" crowd
    echo "$output"
    [[ $(grep -c '^right: ' <<<"$output") == 100 && $output != *wrong* ]]
}

@test "MPI_Publish_name and MPI_Lookup_name" {
    run -0 run_on_both "$TB_WORK/names"
    echo "$output"
    lines_are 1 'the service is at "a port"'
}

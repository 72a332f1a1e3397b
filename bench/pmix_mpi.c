/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What bench/pmix measures with an MPI program: from the beginning of main to the end of the
 * first barrier, in milliseconds, of the rank that takes longest. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
    double took, longest, begin = now_ms();
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    took = now_ms() - begin;
    MPI_Reduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0)
        printf("{\"size\": %d, \"init\": [%.2f]}\n", size, longest);
    MPI_Finalize();
    return 0;
}

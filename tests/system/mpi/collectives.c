/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An MPI program that knows nothing of slurm-elastic: checks collectives of several sizes, again
 * and again.
 *
 * collectives LOG ROUNDS SECONDS: appends "ROUND SIZE" to LOG after each round, rank 0 of each
 * world; goes on after the last of LOG. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LENGTH 4096

static int rank, size;

static void must(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "rank %d of %d: wrong: %s\n", rank, size, what);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static void check_allreduce(int round)
{
    static double mine[LENGTH], sum[LENGTH];

    for (int i = 0; i < LENGTH; i++)
        mine[i] = rank + i + round;
    MPI_Allreduce(mine, sum, LENGTH, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < LENGTH; i++)
        must(sum[i] == size * (double)(i + round) + size * (size - 1) / 2.0, "allreduce");
}

static void check_alltoall(int round)
{
    int *out = malloc((size_t)size * LENGTH * sizeof(int)),
        *in = malloc((size_t)size * LENGTH * sizeof(int));

    for (int to = 0; to < size; to++)
        for (int i = 0; i < LENGTH; i++)
            out[to * LENGTH + i] = rank * 1000003 + to * 1009 + i + round;
    MPI_Alltoall(out, LENGTH, MPI_INT, in, LENGTH, MPI_INT, MPI_COMM_WORLD);
    for (int from = 0; from < size; from++)
        for (int i = 0; i < LENGTH; i++)
            must(in[from * LENGTH + i] == from * 1000003 + rank * 1009 + i + round, "alltoall");
    free(out);
    free(in);
}

/* A ring in which each sends to the next, and a communicator of those on this node. */
static void check_neighbours(int round)
{
    int token = rank + round, got = -1, local_rank, local_size;
    MPI_Comm node;
    const char *expected = getenv("LOCAL_WORLD_SIZE");

    MPI_Sendrecv(&token, 1, MPI_INT, (rank + 1) % size, 7, &got, 1, MPI_INT,
                 (rank + size - 1) % size, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    must(got == (rank + size - 1) % size + round, "ring");
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &local_rank);
    MPI_Comm_size(node, &local_size);
    must(expected == NULL || local_size == atoi(expected), "processes of the node");
    MPI_Bcast(&token, 1, MPI_INT, 0, node);
    must(token == rank - local_rank + round, "broadcast within the node");
    MPI_Comm_free(&node);
}

static int rounds_so_far(const char *log)
{
    FILE *file = fopen(log, "r");
    int round = 0, ignored;

    while (file != NULL && fscanf(file, "%d %d", &round, &ignored) == 2)
        ;
    if (file != NULL)
        fclose(file);
    return round;
}

int main(int argc, char **argv)
{
    int round = 0, last = argc > 2 ? atoi(argv[2]) : 1;
    FILE *log = NULL;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0) {
        round = rounds_so_far(argv[1]);
        log = fopen(argv[1], "a");
        must(log != NULL, "log");
    }
    MPI_Bcast(&round, 1, MPI_INT, 0, MPI_COMM_WORLD);
    while (round++ < last) {
        check_allreduce(round);
        check_alltoall(round);
        check_neighbours(round);
        MPI_Barrier(MPI_COMM_WORLD);
        if (log != NULL) {
            fprintf(log, "%d %d\n", round, size);
            fflush(log);
        }
        usleep((useconds_t)(argc > 3 ? atof(argv[3]) * 1e6 : 0));
    }
    MPI_Finalize();
    return 0;
}

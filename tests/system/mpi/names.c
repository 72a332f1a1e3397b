/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An MPI program that gives a service a name, which the others look up. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    char port[MPI_MAX_PORT_NAME] = "a port";
    int rank, good = 1;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        MPI_Publish_name("service", MPI_INFO_NULL, port);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        memset(port, 0, sizeof(port));
        MPI_Lookup_name("service", MPI_INFO_NULL, port);
        good = strcmp(port, "a port") == 0;
        printf("the service is at \"%s\"\n", port);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Unpublish_name("service", MPI_INFO_NULL, port);
    MPI_Finalize();
    return !good;
}

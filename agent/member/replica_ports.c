/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ports of the tasks of a replica on this node (replica_ports.h). */
#include "agent/member/replica_ports.h"

#include <stdlib.h>
#include <unistd.h>

#include "agent/port.h"

struct replica_ports {
    int names;
    int *numbers; /* of task 0, of task 1, … */
    int *fds;     /* each holds a port */
    int held;
};

/* Programs whose process i listens on the port of process 0 and i more find them in a row. */
static int hold_first(struct replica_ports *ports, int tasks, struct error *err)
{
    int first;

    if (port_hold_block(tasks, &first, ports->fds, err) != 0)
        return -1;
    ports->held = tasks;
    for (int task = 0; task < tasks; task++)
        ports->numbers[task * ports->names] = first + task;
    return 0;
}

static int hold_others(struct replica_ports *ports, int tasks, struct error *err)
{
    for (int i = 0; i < tasks * ports->names; i++) {
        int fd = i % ports->names > 0 ? port_hold(&ports->numbers[i], err) : 0;

        if (fd < 0)
            return -1;
        if (i % ports->names > 0)
            ports->fds[ports->held++] = fd;
    }
    return 0;
}

struct replica_ports *replica_ports_create(int tasks, int names, struct error *err)
{
    struct replica_ports *ports = calloc(1, sizeof(*ports));
    size_t count = (size_t)tasks * (size_t)names + 1;

    if (ports != NULL) {
        ports->names = names;
        ports->numbers = calloc(count, sizeof(*ports->numbers));
        ports->fds = calloc(count, sizeof(*ports->fds));
    }
    if (ports == NULL || ports->numbers == NULL || ports->fds == NULL)
        error_set(err, "out of memory");
    else if (names == 0 ||
             (hold_first(ports, tasks, err) == 0 && hold_others(ports, tasks, err) == 0))
        return ports;
    replica_ports_destroy(ports);
    return NULL;
}

void replica_ports_destroy(struct replica_ports *ports)
{
    if (ports == NULL)
        return;
    for (int i = 0; i < ports->held; i++)
        close(ports->fds[i]);
    free(ports->numbers);
    free(ports->fds);
    free(ports);
}

const int *replica_ports_of(const struct replica_ports *ports, int task)
{
    return &ports->numbers[task * ports->names];
}

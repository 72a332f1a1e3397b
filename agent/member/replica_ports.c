/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ports of the tasks of a replica on this node (replica_ports.h). */
#include "agent/member/replica_ports.h"

#include <stdlib.h>
#include <unistd.h>

#include <uv.h>

#include "agent/port.h"
#include "common/tcp_sockets.h"

#define ROW_MAX 256 /* ports */

struct replica_ports {
    int names;
    int *numbers;   /* of task 0, of task 1, … */
    int *fds;       /* each holds a port */
    bool *ours;     /* the task has been seen to listen there, at the address of the node */
    bool *withheld; /* a stranger listens there */
    int held;
};

/* Port k of task i is k times the number of tasks, and i, behind the first one. */
static int hold_row(struct replica_ports *ports, int tasks, struct error *err)
{
    int count = tasks * ports->names, first;

    if (port_hold_block(count, &first, ports->fds, err) != 0)
        return -1;
    ports->held = count;
    for (int i = 0; i < count; i++)
        ports->numbers[i] = first + i % ports->names * tasks + i / ports->names;
    return 0;
}

static int hold_any(struct replica_ports *ports, int tasks, struct error *err)
{
    for (int i = 0; i < tasks * ports->names; i++) {
        int fd = port_hold(&ports->numbers[i], err);

        if (fd < 0)
            return -1;
        ports->fds[ports->held++] = fd;
    }
    return 0;
}

static struct replica_ports *make(int tasks, int names, struct error *err)
{
    struct replica_ports *ports = calloc(1, sizeof(*ports));
    size_t count = (size_t)tasks * (size_t)names + 1;

    if (ports != NULL) {
        ports->names = names;
        ports->numbers = calloc(count, sizeof(*ports->numbers));
        ports->fds = calloc(count, sizeof(*ports->fds));
        ports->ours = calloc(count, sizeof(*ports->ours));
        ports->withheld = calloc(count, sizeof(*ports->withheld));
    }
    if (ports != NULL && ports->numbers != NULL && ports->fds != NULL && ports->ours != NULL &&
        ports->withheld != NULL)
        return ports;
    replica_ports_destroy(ports);
    error_set(err, "out of memory");
    return NULL;
}

struct replica_ports *replica_ports_create(int tasks, int names, struct error *err)
{
    struct replica_ports *ports = make(tasks, names, err);

    if (ports == NULL || names == 0 ||
        (tasks * names <= ROW_MAX && hold_row(ports, tasks, NULL) == 0) ||
        hold_any(ports, tasks, err) == 0)
        return ports;
    replica_ports_destroy(ports);
    return NULL;
}

struct replica_ports *replica_ports_fixed(int port, struct error *err)
{
    struct replica_ports *ports = NULL;

    if (port_is_strange(port, NULL))
        error_set(err, "a program of another user listens on port %d", port);
    else
        ports = make(1, 1, err);
    if (ports != NULL)
        ports->numbers[0] = port;
    return ports;
}

void replica_ports_destroy(struct replica_ports *ports)
{
    if (ports == NULL)
        return;
    for (int i = 0; i < ports->held; i++)
        close(ports->fds[i]);
    free(ports->numbers);
    free(ports->fds);
    free(ports->ours);
    free(ports->withheld);
    free(ports);
}

const int *replica_ports_of(const struct replica_ports *ports, int task)
{
    return &ports->numbers[task * ports->names];
}

json_object *replica_ports_json(const struct replica_ports *ports, int task)
{
    json_object *list = json_object_new_array();

    for (int i = 0; i < ports->names; i++)
        json_object_array_add(list, json_object_new_int(ports->withheld[task * ports->names + i]
                                                            ? 0
                                                            : replica_ports_of(ports, task)[i]));
    return list;
}

static enum tcp_listener listener_at(int port, const char *address)
{
    struct sockaddr_in6 at = {.sin6_family = AF_INET6};

    if (address == NULL || (uv_ip4_addr(address, port, (struct sockaddr_in *)&at) != 0 &&
                            uv_ip6_addr(address, port, &at) != 0))
        return tcp_listener(port);
    return tcp_to_ipv6(&at) ? tcp_listener_at(&at) : TCP_NOBODY;
}

bool port_is_strange(int port, const char *address)
{
    return listener_at(port, address) == TCP_STRANGER;
}

/* A socket that is bound, and does not listen, is in no list. It stands in the way of a server all
 * the same. */
int replica_ports_in_the_way(const struct replica_ports *ports, int task)
{
    const int *list = replica_ports_of(ports, task);

    for (int i = 0; i < ports->names; i++) {
        enum tcp_listener listener = tcp_listener(list[i]);

        if (listener == TCP_STRANGER || (listener == TCP_NOBODY && port_is_bound(list[i])))
            return list[i];
    }
    return 0;
}

int replica_ports_look(struct replica_ports *ports, int task, const char *address, int probed,
                       bool *changed)
{
    *changed = false;
    for (int i = task * ports->names; i < (task + 1) * ports->names; i++) {
        int port = ports->numbers[i];
        enum tcp_listener listener = listener_at(port, port == probed ? NULL : address);
        bool withheld = listener == TCP_STRANGER;

        if (withheld && (port == probed || ports->ours[i]))
            return port;
        if (listener == TCP_OURS && !ports->ours[i])
            ports->ours[i] = port != probed || listener_at(port, address) == TCP_OURS;
        *changed = *changed || withheld != ports->withheld[i];
        ports->withheld[i] = withheld;
    }
    return 0;
}

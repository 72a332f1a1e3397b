/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ports of the tasks of a replica on this node. Any user can bind one of them before its task
 * does. */
#ifndef ELASTIC_AGENT_MEMBER_REPLICA_PORTS_H
#define ELASTIC_AGENT_MEMBER_REPLICA_PORTS_H

#include <stdbool.h>

#include <json-c/json.h>

#include "lib/error.h"

struct replica_ports;

/* Each task has `names` ports. The first ports of all tasks are in a row, then their second ones,
 * and so on. Very many of them, or any where there is no such row, are where there is room: whoever
 * has bound every second port stops nobody. NULL with err. */
struct replica_ports *replica_ports_create(int tasks, int names, struct error *err);
/* One task has that port, as long as nobody else has. */
struct replica_ports *replica_ports_fixed(int port, struct error *err);
void replica_ports_destroy(struct replica_ports *ports); /* accepts NULL */
/* Those of a task, counted from 0 on this node: as many as there are names. */
const int *replica_ports_of(const struct replica_ports *ports, int task);

/* A new array; 0 for a port that is withheld. */
json_object *replica_ports_json(const struct replica_ports *ports, int task);

/* Does a program of another user get what is sent to that port of this address of the node (IPv4 or
 * IPv6; NULL: of any of its addresses)? */
bool port_is_strange(int port, const char *address);
/* The first port of a task that has ended at which a program of another user listens, at any
 * address, or which is bound only; 0: there is none. */
int replica_ports_in_the_way(const struct replica_ports *ports, int task);

/* Look at all ports of a task, at that address of the node. Returns the port for which the task has
 * to end, 0: there is none. probed: the port that a probe is going to ask, 0: none. A stranger
 * there would make the task ready. Else a task ends only for a port where it has been seen to
 * listen itself, at that address. At another port a stranger does no harm: it is withheld from
 * those who ask for addresses, as long as the stranger is there. *changed: a port is withheld, or
 * no longer. */
int replica_ports_look(struct replica_ports *ports, int task, const char *address, int probed,
                       bool *changed);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ports of the tasks of a replica on this node. */
#ifndef ELASTIC_AGENT_MEMBER_REPLICA_PORTS_H
#define ELASTIC_AGENT_MEMBER_REPLICA_PORTS_H

#include "lib/error.h"

struct replica_ports;

/* Each task has `names` ports. The first ports of all tasks are in a row, then their second ones,
 * and so on; very many of them are where there is room. NULL with err. */
struct replica_ports *replica_ports_create(int tasks, int names, struct error *err);
void replica_ports_destroy(struct replica_ports *ports); /* accepts NULL */
/* Those of a task, counted from 0 on this node: as many as there are names. */
const int *replica_ports_of(const struct replica_ports *ports, int task);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which nodes are there for replicas, when a leader begins. Replicas that another leader has
 * started go on where they are; so what comes back late must not be taken for lost. */
#ifndef AGENT_LEADER_ROLE_NODES_H
#define AGENT_LEADER_ROLE_NODES_H

#include <stdbool.h>

struct leader;

/* Have the nodes of the base joined, as far as they come at all? */
bool role_nodes_began(const struct leader *leader);

/* When replicas may be placed; joined is when role_nodes_began() was first true. */
double role_nodes_due(struct leader *leader, double joined);

#endif

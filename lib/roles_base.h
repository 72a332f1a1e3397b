/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the guaranteed replicas of a job need, and how many nodes hold them. Pure. */
#ifndef ELASTIC_ROLES_BASE_H
#define ELASTIC_ROLES_BASE_H

#include <stdint.h>

#include "lib/roles.h"

/* Nodes of a base beyond which nothing is planned: the search is for what users write. */
#define ROLES_BASE_MAX 4096

struct roles_need {
    int64_t tasks; /* without those of the world */
    int64_t cpus, gpus, memory;
    int world; /* nodes that it begins with; what each of them gives it is in the sums */
};

void roles_need(const struct roles *roles, struct roles_need *need);
/* The same without replicas that may be in a pool (base). */
void roles_need_of_base(const struct roles *roles, struct roles_need *need);

/* The fewest nodes of that size, those of a partition, that hold what is guaranteed, as one replica
 * after the other is placed. Replicas that may be in a pool (base) are left out. *taken: the most
 * that is taken of one of these nodes. -1 with err: something does not fit on such a node, or it
 * would be more than ROLES_BASE_MAX nodes. */
int roles_base_nodes(const struct roles *roles, const struct slots_size *node,
                     const char *partition, struct slots_size *taken, struct error *err);

/* So many replicas of one role fit on these nodes, which are as empty as they say; at most its max.
 * Of a world: so many nodes. -1: out of memory. */
int roles_fit(const struct role *role, const struct slots_node *nodes, int count);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The idle nodes that are nearest to the nodes of a job, and to each other. Pure.
 *
 * Of all sets of so many nodes the result has the least sum of distances (placement_distance)
 * between any two nodes of the job. This sum falls with the number of pairs of nodes below one
 * switch. The number of pairs is a convex function of the number of nodes below each switch. So the
 * best sets are uneven: whole leaf switches, and the rest of the nodes on one more. The set is
 * found by a knapsack over the tree of switches. */
#ifndef ELASTIC_NEAREST_H
#define ELASTIC_NEAREST_H

#include <stdbool.h>

#include "lib/placement.h"

/* Choose count (> 0) of the idle nodes for a job that has the nodes `own` and is to have `growth`
 * more later. Of sets that are equally near, the first of these rules that differs decides:
 *
 * 1. the fewest nodes that are not free (kept for other jobs);
 *
 * 2. begin on leaf switches where at least `growth` more nodes are free, and few beyond that;
 *
 * 3. the first switches.
 *
 * Sets `set` to the nodes chosen. Returns the number of leaf switches of these nodes. 0: fewer than
 * count nodes are idle, or the search would take too long (a hundred nodes of ten thousand do not).
 * -1: out of memory. */
int nearest_nodes(const struct placement_map *map, const bool *idle, const bool *free,
                  const bool *own, int count, int growth, bool *set);

#endif

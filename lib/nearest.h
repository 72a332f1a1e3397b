/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The nodes that are nearest to those that a job has, and to each other. Pure.
 *
 * Of all sets of so many free nodes it is one with the least sum of distances (placement_distance)
 * between two nodes of the job. That sum falls with the number of pairs below one switch, which is
 * a convex function of how many nodes are below each: so the best sets are uneven ones, with whole
 * leaf switches and the rest on one. It is found by a knapsack over the tree of switches. */
#ifndef ELASTIC_NEAREST_H
#define ELASTIC_NEAREST_H

#include <stdbool.h>

#include "lib/placement.h"

/* Choose count (> 0) of the nodes idle for a job that has nodes own and is to have growth more after
 * that. Of sets that are equally near: one with the fewest nodes that are not free (kept for others);
 * then one that begins on leaf switches where as many more as growth are free, and few beyond them;
 * then one on the first switches.
 *
 * Sets set to the nodes chosen. Returns on how many leaf switches they are; 0: so many are not idle,
 * or a search would take too long (a hundred nodes of ten thousand do not); -1: no memory. */
int nearest_nodes(const struct placement_map *map, const bool *idle, const bool *free,
                  const bool *own, int count, int growth, bool *set);

#endif

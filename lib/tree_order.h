/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The order of nodes along a tree of switches, so that neighbours in a ring are neighbours in the network. Pure. */
#ifndef ELASTIC_TREE_ORDER_H
#define ELASTIC_TREE_ORDER_H

#include <stddef.h>

#define TREE_PATH_MAX 1024 /* bytes of a path, with its end */

/* The switches above a node, from the top: "s0.s1", from Slurm's SLURM_TOPOLOGY_ADDR ("s0.s1.n1") and SLURM_TOPOLOGY_ADDR_PATTERN
 * ("switch.switch.node"). "" without a tree, and for whatever does not look like one; either may be NULL. Returns path. */
char *tree_path(const char *address, const char *pattern, char path[TREE_PATH_MAX]);

/* Fill order with the indices of the paths so that the way from `first` through all of them to `last` takes as few links as any can. Nodes of a
 * leaf stand together. The walk begins with what is nearest to `first`, ends with what is nearest to `last`, and takes the rest as people
 * count (s2 before s10). Nodes with the same path stay in the order given, those without one come late. NULL is "". */
void tree_order(const char *const *paths, int count, const char *first, const char *last,
                int *order);

/* Number of links between two nodes, up and down the tree: 0 below the same leaf switch. */
int tree_distance(const char *a, const char *b);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The order of nodes along a tree of switches: neighbours in a ring are neighbours in the network.
 *
 * Pure. */
#ifndef ELASTIC_TREE_ORDER_H
#define ELASTIC_TREE_ORDER_H

#include <stddef.h>

#define TREE_PATH_MAX 1024 /* bytes of a path, with its end */

/* The switches above a node, from the top: "s0.s1", from Slurm's SLURM_TOPOLOGY_ADDR ("s0.s1.n1")
 * and SLURM_TOPOLOGY_ADDR_PATTERN ("switch.switch.node"). "" without a tree, and for text that does
 * not look like a tree. Both arguments may be NULL. Returns path. */
char *tree_path(const char *address, const char *pattern, char path[TREE_PATH_MAX]);

/* Fill order with the indices of the paths. The way from `first` through all nodes to `last` then
 * takes as few links as possible. Nodes of a leaf switch stand together. The walk begins with the
 * nodes nearest to `first` and ends with the nodes nearest to `last`. The other nodes follow in
 * natural order (s2 before s10). Nodes with the same path stay in the order given, nodes without a
 * path come late. NULL counts as "". */
void tree_order(const char *const *paths, int count, const char *first, const char *last,
                int *order);

#endif

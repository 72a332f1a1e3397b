/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which node in a group of equal nodes differs. Pure. */
#ifndef SELASTIC_TOPOLOGY_CHECK_H
#define SELASTIC_TOPOLOGY_CHECK_H

#include <stdbool.h>

#include <json-c/json.h>

#include "cmd/topology_map.h"

/* A node as Slurm knows it. Texts are compared, not read. */
struct topology_peer {
    const char *node;
    const char *kind;       /* its CPUs, memory, features and GRES as configured */
    const char *partitions; /* comma list */
    const char *leaf;       /* its switch, "" if there is none */
};

/* Find nodes whose shape differs from the usual shape of their group. Nodes of one kind should have
 * one shape. A node belongs to up to three groups of its kind: the nodes with the same partitions
 * and the same leaf switch; the nodes with the same partitions; all nodes of the kind. A group of
 * three or more nodes decides for its nodes if more than half of them have one shape: that shape is
 * usual. The first group that decides counts. If no group decides although shapes differ, the nodes
 * are undecided.
 *
 * Returns a new object:
 *
 *     {"odd": [{"node", "shape", "usual", "group", "nodes", "alike", "differences": [...]}],
 *      "undecided": [{"shapes": [{"shape", "nodes"}], "differences": [...]}],
 *      "not_collected": "n[7-8]"}
 *
 * nodes is the number of nodes of the group, alike the number of these that have the usual shape.
 * The differences of an undecided group are those of its second shape to the first. */
json_object *topology_check(const struct topology_map *map, const struct topology_peer *peers,
                            int count, topology_compress *compress);

/* Is a node odd, or undecided? */
bool topology_check_odd(json_object *found);

/* The result in words. A new string. */
char *topology_check_text(json_object *found);

#endif

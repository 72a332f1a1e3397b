/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The odd node in a group that should be alike. Pure. */
#ifndef SELASTIC_TOPOLOGY_CHECK_H
#define SELASTIC_TOPOLOGY_CHECK_H

#include <stdbool.h>

#include <json-c/json.h>

#include "cmd/topology_map.h"

/* What Slurm says of a node. Texts are compared, not read. */
struct topology_peer {
    const char *node;
    const char *kind;       /* its CPUs, memory, features and GRES as configured */
    const char *partitions; /* comma list */
    const char *leaf;       /* its switch, "" if there is none */
};

/* Nodes of one kind should be alike: first of all those of the same partitions and the same leaf switch, then those of the same
 * partitions, then all. What more than half of a group of three or more have is usual there, and decides for the nodes in it; the
 * first such group does. Where none decides although there are different shapes nobody can say who is odd.
 *
 * {"odd": [{"node", "shape", "usual", "group", "nodes", "alike", "differences": [...]}],
 *  "undecided": [{"shapes": [{"shape", "nodes"}], "differences": [...]}], "not_collected": "n[7-8]"}: nodes is how many there are in
 * the group, alike how many of these have the usual shape; the differences of an undecided group are those of its second shape to the
 * first. New object. */
json_object *topology_check(const struct topology_map *map, const struct topology_peer *peers,
                            int count, topology_compress *compress);

/* Whether it found something odd, or could not decide. */
bool topology_check_odd(json_object *found);

/* The same in words. New string. */
char *topology_check_text(json_object *found);

#endif

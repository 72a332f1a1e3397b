/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the subcommands of `selastic topology` share: the shapes file, Slurm's nodes and
 * switches. */
#ifndef SELASTIC_TOPOLOGY_SITE_H
#define SELASTIC_TOPOLOGY_SITE_H

#include "cmd/arguments.h"
#include "cmd/command.h"
#include "cmd/topology_map.h"
#include "common/slurm_client.h"

struct topology_site {
    struct slurm_node *nodes;
    int node_count;
    struct slurm_switch *switches; /* none where Slurm has no tree, or does not tell */
    int switch_count;
    char *path; /* of the file of shapes */
    struct topology_map map;
};

/* Ask Slurm and read the file. With may_lack a missing file is an empty map. */
int topology_site_load(struct topology_site *site, const char *path, bool may_lack,
                       struct error *err);
/* Ask Slurm once more for the nodes. */
int topology_site_reload(struct topology_site *site, struct error *err);
void topology_site_clear(struct topology_site *site);

/* The name of the leaf switch of each node, in the order of nodes; borrowed from switches, "" if
 * there is none. The caller frees the array. */
const char **topology_site_leaves(const struct topology_site *site);

enum exit_status topology_collect(const struct arguments *arguments);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* slurmctld's nodes as lib/placement needs them: shapes from the shapes file, switches from Slurm. */
#ifndef ELASTIC_SELECT_CLUSTER_H
#define ELASTIC_SELECT_CLUSTER_H

#include "lib/placement.h"

/* Look at nodes and switches anew, after slurmctld has changed them; and read the shapes file as
 * well, after it has read its configuration. */
void cluster_update(void);
void cluster_read(void);
void cluster_forget(void);

/* The nodes, good until the next of those above. NULL: there is nothing to place by (no switches
 * and no shapes), or no memory. */
const struct placement_map *cluster_map(void);

/* For messages: "switch s1", "shape a100". Each gives one of its own few buffers. */
const char *cluster_switch_name(int at);
const char *cluster_shape_name(int shape);

#endif

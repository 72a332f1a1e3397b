/* SPDX-License-Identifier: GPL-2.0-or-later */
/* slurmctld's nodes as lib/placement needs them: shapes from the shapes file, switches from
 * Slurm. */
#ifndef ELASTIC_SELECT_CLUSTER_H
#define ELASTIC_SELECT_CLUSTER_H

#include "lib/placement.h"

/* Read nodes and switches again, after slurmctld has changed them. cluster_read() also reads
 * the shapes file, after slurmctld has read its configuration. */
void cluster_update(void);
void cluster_read(void);
void cluster_forget(void);

/* The nodes, valid until the next call of a function above. NULL: there are no switches and no
 * shapes to place by, or no memory. */
const struct placement_map *cluster_map(void);

/* For messages: "switch s1", "shape a100". Each function returns one of its own few buffers. */
const char *cluster_switch_name(int at);
const char *cluster_shape_name(int shape);

#endif

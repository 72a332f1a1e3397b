/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nodes that have to power up, and the extensions that must stay off them (lib/wake.h). */
#ifndef ELASTIC_SELECT_POWER_H
#define ELASTIC_SELECT_POWER_H

#include "plugins/select/compat.h"

struct job_record; /* slurmctld's */

/* Read elastic.conf, after slurmctld has read its configuration. A wrong file counts as one without
 * pools: then no extension powers a node up. job_submit/elastic reports the mistake. */
void power_read(void);
void power_forget(void);

/* Is the node powered down, or on its way down or up? */
bool power_is_asleep(const node_record_t *node);

/* Clear such nodes, unless the pool of this extension allows them. */
void power_keep_off(const struct job_record *extension, bitstr_t *nodes);

#endif

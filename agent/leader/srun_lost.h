/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Is the srun that has started the base's agents still there (doc/internals/takeover.md)? */
#ifndef ELASTIC_AGENT_LEADER_SRUN_LOST_H
#define ELASTIC_AGENT_LEADER_SRUN_LOST_H

#include <stdbool.h>

struct leader;
struct srun_lost;

/* NULL: out of memory. */
struct srun_lost *srun_lost_create(void);
void srun_lost_destroy(struct srun_lost *lost);

/* Is there still an srun? If not, all output goes to the job's file. output_only: there is one, but
 * this agent's own output does not reach it. */
void srun_lost_look(struct leader *leader, bool output_only);
/* Is such a look under way? */
bool srun_is_looked_for(const struct leader *leader);
/* Has the latest look found no srun? */
bool srun_is_lost(const struct leader *leader);

#endif

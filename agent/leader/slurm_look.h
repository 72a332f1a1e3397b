/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What Slurm says of the job's extensions and of the base job. */
#ifndef ELASTIC_AGENT_LEADER_SLURM_LOOK_H
#define ELASTIC_AGENT_LEADER_SLURM_LOOK_H

#include <stdbool.h>
#include <stdint.h>

struct job_info;
struct leader;
struct slurm_look;

/* NULL: out of memory. */
struct slurm_look *slurm_look_create(void);
void slurm_look_destroy(struct slurm_look *look);

/* Look at Slurm if it is time to; called every second. */
void slurm_look_poll(struct leader *leader);
/* Something has changed: the next poll looks, whenever the last one did. */
void slurm_look_soon(struct leader *leader);
/* Is a look under way? */
bool slurm_look_busy(const struct leader *leader);
/* Minutes that the partition of the pool lets a job have, UINT32_MAX: any. */
uint32_t slurm_look_pool_limit(const struct leader *leader);
/* The base job; NULL until Slurm has answered for the first time. */
const struct job_info *slurm_look_base(const struct leader *leader);

#endif

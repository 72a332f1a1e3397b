/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What Slurm says of the job's extensions and of the base job. */
#ifndef ELASTIC_AGENT_LEADER_SLURM_UPDATE_H
#define ELASTIC_AGENT_LEADER_SLURM_UPDATE_H

struct leader;

/* Look at Slurm if it is time to; called every second. */
void slurm_update_poll(struct leader *leader);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of the job: members, extensions, srun and Slurm are told, and the leader is over. */
#ifndef ELASTIC_AGENT_LEADER_END_H
#define ELASTIC_AGENT_LEADER_END_H

struct leader;

/* All is over, with that exit status (CHANGE_FINISH). */
void end_begin(struct leader *leader, int code);
/* The same, without touching anything that may be another leader's. */
void end_without(struct leader *leader, int code);
/* All agents may go. */
void end_dismiss(struct leader *leader);
/* Called whenever something that the end waits for is over; without effect before the end. */
void end_look(struct leader *leader);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of the job: members, extensions, srun and Slurm are told, and the leader is over. */
#ifndef ELASTIC_AGENT_LEADER_END_H
#define ELASTIC_AGENT_LEADER_END_H

#include <stdbool.h>

struct end;
struct leader;

/* NULL: out of memory. */
struct end *end_create(void);
void end_destroy(struct end *end);

/* All is over, with that exit status (CHANGE_FINISH). */
void end_begin(struct leader *leader, int code);
/* The same, without touching anything that may be another leader's (CHANGE_ABANDON). */
void end_without(struct leader *leader, int code);
/* What is left? The deadline of the end has come (leader_look_at_end()). */
void end_look(struct leader *leader);
/* Is nobody to find the job's state any more (`clean: all`)? Not if the job comes again. */
bool end_cleans(const struct leader *leader);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the srun that has started the base's agents does not hear by itself: lost nodes. */
#ifndef ELASTIC_AGENT_LEADER_SRUN_NOTIFY_H
#define ELASTIC_AGENT_LEADER_SRUN_NOTIFY_H

#include <stdbool.h>

#include <json-c/json.h>

struct leader;
struct leader_member;
struct leader_options;
struct srun;

/* NULL: out of memory. */
struct srun *srun_create(const struct leader_options *options);
void srun_destroy(struct srun *srun);

/* Tell srun of the nodes that have been away for long enough; called every second. */
void srun_watch(struct leader *leader);
/* The member is about to be lost for want of heartbeats. */
void srun_silent(struct leader *leader, const struct leader_member *m);
/* "unwatched": the agent has no slurmstepd any more. */
void srun_unwatched(struct leader *leader, struct leader_member *m, json_object *msg);
/* The member's output goes through the leader, if srun does not read it. */
void srun_forward(struct leader *leader, struct leader_member *m);
/* The job ends: srun need not wait for nodes that are not there. */
void srun_end(struct leader *leader);
/* A look for srun is over (srun_lost.c). there: it reads what this node writes. */
void srun_looked(struct leader *leader, bool there);
/* Is srun being told something? */
bool srun_busy(const struct leader *leader);
/* Would srun not end, or with a status that is not the training's? */
bool srun_misleads(const struct leader *leader);

#endif

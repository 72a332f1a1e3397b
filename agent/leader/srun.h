/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The srun that has started the base's agents: is it still there (srun_lost.c;
 * doc/internals/takeover.md), and what does it have to be told (srun_notify.c)? */
#ifndef ELASTIC_AGENT_LEADER_SRUN_H
#define ELASTIC_AGENT_LEADER_SRUN_H

#include <stdbool.h>

#include <json-c/json.h>

struct leader;
struct leader_member;
struct leader_options;

/* ---- srun_notify.c: lost nodes of the base, which srun does not hear of by itself ------------ */

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

/* ---- srun_lost.c: srun and the batch script are lost with the node that led ------------------ */

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

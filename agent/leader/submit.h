/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The leader submits extension jobs. */
#ifndef ELASTIC_AGENT_LEADER_SUBMIT_H
#define ELASTIC_AGENT_LEADER_SUBMIT_H

#include <stdbool.h>

struct leader;
struct plan_output;
struct pool;
struct slots_gang;
struct submit;

/* NULL: out of memory. */
struct submit *submit_create(void);
void submit_destroy(struct submit *submit);

/* Submit the extension that the plan asks for. One at a time. */
void submit_extension(struct leader *leader, const struct plan_output *plan);

/* … one for replicas of a role, on so many nodes; 0: on as many as Slurm takes, but no more than
 * nodes_most (0: any number). If none can be submitted now, extensions_refusal() says why. */
void submit_replicas(struct leader *leader, const struct pool *pool, int role,
                     const struct slots_gang *gang, int replicas, int nodes, int nodes_most);

/* Does an sbatch run? */
bool submit_submitting(const struct leader *leader);
/* Submissions so far: tells whether one fell into a look at Slurm. */
int submit_count(const struct leader *leader);
/* No sbatch before that time (leader_now), since one was refused or an extension could not join. */
double submit_after(const struct leader *leader);

#endif

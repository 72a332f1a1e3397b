/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The base job goes back into Slurm's queue instead of ending (--elastic-requeue). */
#ifndef ELASTIC_AGENT_LEADER_REQUEUE_H
#define ELASTIC_AGENT_LEADER_REQUEUE_H

#include <stdbool.h>

struct leader;
struct requeue;

/* NULL: out of memory. */
struct requeue *requeue_create(void);
void requeue_destroy(struct requeue *requeue);

/* Stop the job if its time limit is near. */
void requeue_watch(struct leader *leader);
/* The job is about to end because of a fault. */
void requeue_after_fault(struct leader *leader);
/* Nobody works any more. True: Slurm is being asked. then(leader) follows, and requeue_wanted()
 * says by then whether Slurm has done it. */
typedef void requeue_done(struct leader *leader);
bool requeue_instead(struct leader *leader, requeue_done *then);
/* Is the job to go back into the queue when it ends? */
bool requeue_wanted(const struct leader *leader);
/* Is Slurm being asked? */
bool requeue_asking(const struct leader *leader);

#endif

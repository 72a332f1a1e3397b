/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tells elastic jobs that Slurm takes one of their nodes out of service, or has it back.
 *
 * Slurm tells neither the job nor the node. So each job's leader would have to ask, and each
 * question costs slurmctld. This is inside slurmctld, and looks without a question: at nothing if
 * no node has changed, else once over the nodes, and over the jobs if a node is drained that was
 * not, or the other way round. Jobs that run there get DRAIN_NOTICES_SIGNAL;
 * lib/drain_notices.h says when.
 *
 * Each signal is sent under a lock of its own. Only steps of elastic jobs and of extensions get
 * it. */
#ifndef ELASTIC_JOB_SUBMIT_DRAINS_H
#define ELASTIC_JOB_SUBMIT_DRAINS_H

#include <stdint.h>

struct drains;

/* NULL: out of memory. */
struct drains *drains_create(void);
void drains_destroy(struct drains *drains);

/* Look, and tell those jobs that are to be told now. It waits for slurmctld's locks, so the caller
 * has none of them. now: seconds of a clock that is not set. */
void drains_look(struct drains *drains, double now);

#endif

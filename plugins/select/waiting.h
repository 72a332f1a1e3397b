/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nodes of jobs that preempt others and still wait for the last of these to leave.
 *
 * Some victims leave at once, some use all of their grace time. Meanwhile Slurm would start an
 * extension on the nodes that are free already, only to preempt it again.
 *
 * A job that could not start on free nodes either does not count: it is held, or waits for another
 * job, for its time or for a limit. */
#ifndef ELASTIC_SELECT_WAITING_H
#define ELASTIC_SELECT_WAITING_H

#include "plugins/select/compat.h"

struct job_record; /* slurmctld's */

/* The job is to start on these nodes when its victims have left. */
void waiting_note(const struct job_record *job, bitstr_t *nodes);

/* Clear the nodes that jobs of a higher priority than this extension wait for. */
void waiting_keep_off(const struct job_record *extension, bitstr_t *nodes);

void waiting_forget(void);

#endif

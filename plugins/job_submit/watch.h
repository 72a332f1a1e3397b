/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A thread of slurmctld, for what Slurm does not tell a job_submit plugin.
 *
 * That is a reconfiguration: slurmctld's log says what it makes of elastic.conf, so that no user of
 * an elastic job has to find a mistake. And that a node is drained: its jobs are told
 * (drains.h). */
#ifndef ELASTIC_JOB_SUBMIT_WATCH_H
#define ELASTIC_JOB_SUBMIT_WATCH_H

#include <time.h>

/* Log what is in the file now, and after each change of configured(); tell jobs of drained nodes.
 * Without memory for a thread only the first is done. */
void watch_start(time_t (*configured)(void));
void watch_stop(void);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* slurmctld's log says what it makes of elastic.conf.
 *
 * Slurm tells a job_submit plugin nothing about a reconfiguration. So that no user of an elastic
 * job has to find a mistake, a thread looks for that, and reads the file for itself. */
#ifndef ELASTIC_JOB_SUBMIT_WATCH_H
#define ELASTIC_JOB_SUBMIT_WATCH_H

#include <time.h>

/* Log what is in the file now, and after each change of configured(). Without memory for a thread
 * only the first is logged. */
void watch_start(time_t (*configured)(void));
void watch_stop(void);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes of a job that have outlived it. */
#ifndef ELASTIC_FLUSH_WORKERS_H
#define ELASTIC_FLUSH_WORKERS_H

/* Kill the processes of this process's user that have ELASTIC_RUN_DIR=RUN_DIR in their environment,
 * and a SLURM_JOB_ID that is their ELASTIC_JOB_ID: other jobs may have inherited the rest. Children
 * of a worker may have left the process group and session by which Slurm's simpler proctrack
 * plugins find them. */
void workers_kill(const char *run_dir);

#endif

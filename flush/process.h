/* SPDX-License-Identifier: GPL-2.0-or-later */
/* To which job a process belongs. */
#ifndef ELASTIC_FLUSH_PROCESS_H
#define ELASTIC_FLUSH_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Is it a worker of the run with that ELASTIC_RUN_DIR, or something that one has started in its
 * job? `process` is its open directory of /proc. */
bool process_is_of_run(int process, const char *run_dir);

enum process_job {
    PROCESS_OF_JOB,
    PROCESS_OF_OTHER, /* of another job or of none, or it has ended */
    PROCESS_UNKNOWN,  /* the process cannot be read */
};

/* Slurm's cgroup decides, which no user can choose. Where jobs have none, SLURM_JOB_ID does; but
 * root does not read that of a user's process. */
enum process_job process_job(pid_t pid, uint32_t job);

#endif

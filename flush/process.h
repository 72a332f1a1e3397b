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

/* For each process of the node: its id, and its open directory of /proc. Stops after a request to
 * (stop.h). */
void process_each(void (*found)(void *arg, pid_t pid, int process), void *arg);

enum process_job {
    PROCESS_OF_JOB,
    PROCESS_OF_OTHER, /* of another job or of none, or it has ended */
    PROCESS_UNKNOWN,  /* the process cannot be read */
    PROCESS_FLUSHES,  /* its guard lives (start.h). To root only */
};

#define PROCESS_GUARD "elastic-guard" /* the name of a guard */

/* Slurm's cgroup decides, which no user can choose. Where jobs have none, SLURM_JOB_ID does. But
 * root does not read that of a user's process: then it is one of the job if that is here. */
enum process_job process_job(pid_t pid, uint32_t job);

#define PROCESS_JOBS_MAX 4096

/* The jobs of which slurmd has a step on this node. */
struct process_jobs {
    uint32_t jobs[PROCESS_JOBS_MAX];
    int count;
};

/* What root sees now. */
void process_jobs(struct process_jobs *jobs);
bool process_has_job(const struct process_jobs *jobs, uint32_t job);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When job_submit/elastic tells a job that the state of one of its nodes has changed.
 *
 * Each notice costs slurmctld a signal to the job's nodes, and a question of the job's leader. So
 * changes that come together are one notice, a job gets one in DRAIN_NOTICES_PAUSE seconds at most,
 * and notices to many jobs are spread out. Pure: time is a parameter, in seconds. */
#ifndef ELASTIC_DRAIN_NOTICES_H
#define ELASTIC_DRAIN_NOTICES_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* What each step of the job gets. By default it is ignored, so it harms no program of the job, nor
 * an elasticrun of an older version. Programs that handle it look how large their terminal is.
 * SIGURG, which is ignored as well, may tell a training something: elasticrun hands it on. */
#define DRAIN_NOTICES_SIGNAL SIGWINCH

#define DRAIN_NOTICES_PAUSE  5.0 /* seconds between two to one job */
#define DRAIN_NOTICES_MOST   40  /* to all jobs, in … */
#define DRAIN_NOTICES_WINDOW 1.0 /* seconds */

struct drain_notice {
    uint32_t job;
    bool due;
    double since; /* when it has become due */
    double told;  /* the last one; < 0: none */
};

/* All zero at the beginning. */
struct drain_notices {
    struct drain_notice *list;
    int count, room;
    double window; /* its begin */
    int sent;      /* in it */
};

/* A node of this job has changed. Without memory the job is not told; its leader finds out when it
 * asks. */
void drain_notices_add(struct drain_notices *notices, uint32_t job, double now);
/* A job that is to be told now, and counts as told; 0: none. */
uint32_t drain_notices_next(struct drain_notices *notices, double now);
void drain_notices_clear(struct drain_notices *notices);

#endif

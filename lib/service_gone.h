/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Has the job that runs a service ended, though its files do not say so? A leader that dies with
 * its node writes nothing any more. Slurm may know: when it is asked, and what its answer is worth.
 * Pure. */
#ifndef ELASTIC_SERVICE_GONE_H
#define ELASTIC_SERVICE_GONE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/retry.h"

/* Seconds. */
#define SERVICE_GONE_LATE  15.0 /* a job writes its file more often */
#define SERVICE_GONE_FIRST 5.0  /* pause between two questions, which doubles up to … */
#define SERVICE_GONE_PAUSE 60.0 /* … that */

/* All 0: no job so far. */
struct service_gone {
    uint32_t job; /* the other one */
    bool asked;
    struct retry retry;
    double since; /* when the question was asked whose answer was that it has ended; 0: none was */
};

/* What Slurm says. */
struct service_gone_answer {
    uint32_t job;
    double asked;  /* when it was asked … */
    double silent; /* … how many seconds before that the job had written last … */
    bool ended;    /* … and whether it had ended … */
    double ago;    /* … how many seconds before */
};

/* That job has not written for so long: is Slurm to be asked now? True counts as a question. The
 * first one is asked at once, for a job that starts because the other one was lost. All others wait
 * until the file is late. */
bool service_gone_ask(struct service_gone *gone, uint32_t job, double silent, double now);
/* True: it has ended, and that was not known. A job that has ended before it has written is another
 * one of that number: of another cluster with the same home directories. */
bool service_gone_answered(struct service_gone *gone, const struct service_gone_answer *answer);
/* It has ended, and has not written since Slurm said so. */
bool service_gone_is(const struct service_gone *gone, uint32_t job, double silent, double now);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which workers are slower than the others of their world?
 *
 * Workers that train together make their steps at the same moments, since the fast ones wait for
 * the slow one. So what counts is a worker's own time for a step: without what it waits for others.
 * Workers report it. At each look, the mean own times since the look before are compared. A worker
 * is slow in a look if its time is more than STRAGGLER_FACTOR times the median of all, and if it is
 * beyond what the others differ by (the median of absolute deviations, MAD). It is a straggler if
 * it was slow in STRAGGLER_ENTER of the last STRAGGLER_WINDOW looks, which takes STRAGGLER_SECONDS
 * at least, and stays one until only STRAGGLER_LEAVE of them were.
 *
 * If all workers are slow, none is a straggler. A new world begins anew, with STRAGGLER_WARM
 * seconds that do not count.
 *
 * Pure. Times are seconds on the caller's clock. */
#ifndef ELASTIC_STRAGGLER_H
#define ELASTIC_STRAGGLER_H

#include <stdbool.h>
#include <stdint.h>

#define STRAGGLER_FACTOR  1.4
#define STRAGGLER_MADS    3.0   /* in standard deviations that the MAD stands for */
#define STRAGGLER_LEAST   0.002 /* seconds that a worker needs more than the others */
#define STRAGGLER_RANKS   3     /* fewer cannot be compared: which of two is the slow one? */
#define STRAGGLER_WINDOW  32    /* looks */
#define STRAGGLER_ENTER   26
#define STRAGGLER_LEAVE   6
#define STRAGGLER_SECONDS 60.0
#define STRAGGLER_WARM    20.0

struct straggler;

struct straggler_finding {
    int rank;
    double factor; /* its own time by the median of all, over the window */
    double since;  /* when it was found */
};

/* NULL: out of memory. */
struct straggler *straggler_create(void);
void straggler_destroy(struct straggler *straggler); /* accepts NULL */

/* A world of so many ranks has begun: nothing is known of it. -1: out of memory. */
int straggler_world(struct straggler *straggler, int ranks, double now);
/* What a rank has reported since its world began: steps, and its own time for all of them. Numbers
 * that are smaller than before begin anew. */
void straggler_heard(struct straggler *straggler, int rank, uint64_t steps, double seconds);

/* Look, if each rank has made a step since the last look that counted. True: there are other
 * findings than before. */
bool straggler_look(struct straggler *straggler, double now);
/* The k-th finding, by rank. NULL: there are fewer. */
const struct straggler_finding *straggler_found(const struct straggler *straggler, int k);

#endif

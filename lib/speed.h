/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How fast a job works with so many nodes: what has been measured, made monotone, and what is
 * estimated between and beyond.
 *
 * Pure. A unit of work is whatever the training reports (steps, samples). */
#ifndef ELASTIC_SPEED_H
#define ELASTIC_SPEED_H

#include <stdbool.h>

#define SPEED_POINTS_MAX 64
/* What has been measured for longer than this counts no more: later measurements replace it. */
#define SPEED_MEMORY 3600.0

struct speed_point {
    int nodes;
    double rate;    /* measured, units of work per second */
    double seconds; /* measured for so long, at most SPEED_MEMORY */
    double fitted;  /* the nearest rate that never falls with more nodes */
};

/* All zero: nothing has been measured. Plain, so that it can be kept in a file. */
struct speed {
    int count;
    struct speed_point points[SPEED_POINTS_MAX]; /* by nodes, ascending */
};

/* So many nodes have made `units` of work in `seconds`. A measurement of nothing is ignored. */
void speed_add(struct speed *speed, int nodes, double units, double seconds);

bool speed_known(const struct speed *speed);

/* Units of work per second, 0 if nothing has been measured. Linear below the smallest measured
 * number of nodes and between two of them. Beyond the largest as between the last two, but never
 * better than in proportion to the nodes. */
double speed_at(const struct speed *speed, int nodes);

#endif

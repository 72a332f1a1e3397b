/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the time of a training is used for, how long its changes take, and what work is made again.
 *
 * Time is productive unless a world is changed, nodes are waited for, or work is made again that
 * had been done before a failure. The last is known only of programs that report their progress.
 *
 * Pure. Times are seconds on the caller's clock. The struct is plain; all zeros at first. */
#ifndef ELASTIC_GOODPUT_H
#define ELASTIC_GOODPUT_H

#include <stdbool.h>
#include <stdint.h>

enum goodput_use {
    GOODPUT_WAITING,    /* there is no world: nodes are missing */
    GOODPUT_CHANGING,   /* from one world to the next, and to its first step */
    GOODPUT_PRODUCTIVE, /* steps are made */
    GOODPUT_REPEATED,   /* … which have been made before */
    GOODPUT_USES
};

/* Bounds of the histogram of pauses, in seconds. */
#define GOODPUT_BUCKETS 12
extern const double goodput_bounds[GOODPUT_BUCKETS];
/* "waiting", … */
extern const char *const goodput_names[GOODPUT_USES];

struct goodput {
    double at; /* all is accounted for until then; 0: it has not begun */
    enum goodput_use use;
    double seconds[GOODPUT_USES];
    /* Pauses of at most goodput_bounds[i], of any length, and their sum. */
    int64_t pauses[GOODPUT_BUCKETS];
    int64_t pause_count;
    double pause_sum;
    /* Reported work. */
    int world;      /* generation of the newest report; 0: there is none */
    int64_t last;   /* the newest report */
    int64_t most;   /* that has ever been done */
    int64_t lost;   /* that was done, and has to be done again, in all */
    bool repeating; /* less than `most` is done */
};

/* Account for the time until now; from now on it is used so. WAITING, CHANGING or PRODUCTIVE. */
void goodput_enter(struct goodput *goodput, double now, enum goodput_use use);
/* The first step of a world has come so long after the world before was held. */
void goodput_paused(struct goodput *goodput, double seconds);
/* The program says how much work is done, in a world of that generation, at least 1. A report that
 * is smaller than the one before in the same world is a new count, as of a second phase. */
void goodput_report(struct goodput *goodput, double now, int generation, int64_t done);

#endif

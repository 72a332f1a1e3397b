/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Does a training hang (doc/admin/faults.md, "A training that hangs")?
 *
 * All ranks wait for a rank that hangs, so it is enough to look at the newest step that any rank
 * has made. A step may take several times as long as usual, whatever limit the user has set. The
 * usual time is the mean of about ten steps and is kept from world to world. The first step of each
 * world does not count: the rank that makes it may have had to start before.
 *
 * Pure. Times are seconds on the caller's clock. */
#ifndef ELASTIC_HANG_H
#define ELASTIC_HANG_H

#include <stdbool.h>
#include <stdint.h>

/* The state of a world at one moment. */
struct hang_view {
    double now;
    int generation;
    uint64_t step; /* the newest step that any rank has made in this world */
    bool running;  /* false: the world is being formed or left, and need not make steps */
    /* A rank has made a step in its life. Before the first step any time is allowed. */
    bool has_begun;
};

/* What is remembered between two looks; all zeros at first. */
struct hang {
    int generation;
    uint64_t step;
    double since; /* when `step` became the newest step */
    double usual; /* seconds for a step, 0: not known */
    int counted;  /* steps that `usual` is the mean of, up to a limit */
    bool shown;
};

enum hang_state {
    HANG_NO,
    HANG_SHOW, /* the training hangs; the workers should show where they are. Returned once */
    HANG_YES,  /* the training hangs, and the workers have had the time to show where they are */
};

/* limit: seconds without a step that count as a hang, 0: a training never hangs. *silent: seconds
 * since the last step, 0 unless the training hangs. */
enum hang_state hang_look(struct hang *hang, const struct hang_view *view, double limit,
                          double *silent);

#endif

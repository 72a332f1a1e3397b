/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Does a training hang (doc/faults.md, "A training that hangs")?
 *
 * All ranks wait for the one that hangs, so it is enough to look at the newest step of any. A step may take several times as long as is usual, whatever limit
 * the user has set. What is usual is the mean of the latest ten or so, and is kept from world to world. Without the first of each: who makes it may have had to start before.
 *
 * Pure. Times are seconds on the caller's clock. */
#ifndef ELASTIC_HANG_H
#define ELASTIC_HANG_H

#include <stdbool.h>
#include <stdint.h>

/* What is seen of a world at one moment. */
struct hang_view {
    double now;
    int generation;
    uint64_t step;  /* the newest that any rank has made in this world */
    bool running;   /* else it is being formed or left: it need not make steps */
    bool has_begun; /* a rank has made a step in its life. Before that anything may take its time */
};

/* What is remembered of it; zeros at first. */
struct hang {
    int generation;
    uint64_t step;
    double since; /* … it has been the newest */
    double usual; /* seconds for a step, 0: not known */
    int counted;  /* steps in that, up to some */
    bool shown;
};

enum hang_state {
    HANG_NO,
    HANG_SHOW, /* it does, said once: the workers should show where they are */
    HANG_YES,  /* … and they have had the time to */
};

/* limit: seconds, 0: never hangs. *silent: seconds since a step was made, 0 unless it hangs. */
enum hang_state hang_look(struct hang *hang, const struct hang_view *view, double limit,
                          double *silent);

#endif

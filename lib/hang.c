/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether a training makes steps (hang.h). */
#include "lib/hang.h"

#define FACTOR 10  /* a step may take this many times as long as usual */
#define LATEST 10  /* steps of which `usual` is the mean */
#define STACKS 2.0 /* seconds for the workers to show where they are */

static void count(struct hang *hang, double seconds, uint64_t steps)
{
    hang->counted = steps < (uint64_t)(LATEST - hang->counted) ? hang->counted + (int)steps
                                                               : LATEST;
    if (steps >= (uint64_t)hang->counted)
        hang->usual = seconds / (double)steps;
    else
        hang->usual += (seconds - (double)steps * hang->usual) / hang->counted;
}

enum hang_state hang_look(struct hang *hang, const struct hang_view *view, double limit,
                          double *silent)
{
    bool same = view->running && hang->generation == view->generation;

    *silent = 0;
    if (!same || view->step != hang->step) {
        if (same && hang->step > 0 && view->step > hang->step)
            count(hang, view->now - hang->since, view->step - hang->step);
        hang->generation = view->generation;
        hang->step = view->step;
        hang->since = view->now;
        hang->shown = false;
        return HANG_NO;
    }
    if (limit > 0 && limit < FACTOR * hang->usual)
        limit = FACTOR * hang->usual;
    if (limit <= 0 || !view->has_begun || view->now - hang->since < limit)
        return HANG_NO;
    *silent = view->now - hang->since;
    if (hang->shown)
        return *silent < limit + STACKS ? HANG_NO : HANG_YES;
    hang->shown = true;
    return HANG_SHOW;
}

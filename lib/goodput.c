/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the time of a training is used for (goodput.h). */
#include "lib/goodput.h"

const double goodput_bounds[GOODPUT_BUCKETS] = {0.1, 0.25, 0.5, 1,  2.5, 5,
                                                10,  20,   30,  60, 120, 300};

const char *const goodput_names[GOODPUT_USES] = {
    [GOODPUT_WAITING] = "waiting",
    [GOODPUT_CHANGING] = "changing",
    [GOODPUT_PRODUCTIVE] = "productive",
    [GOODPUT_REPEATED] = "repeated",
};

static void account(struct goodput *g, double now)
{
    enum goodput_use use = g->use == GOODPUT_PRODUCTIVE && g->repeating ? GOODPUT_REPEATED : g->use;

    if (g->at > 0 && now > g->at)
        g->seconds[use] += now - g->at;
    if (now > g->at)
        g->at = now;
}

void goodput_enter(struct goodput *goodput, double now, enum goodput_use use)
{
    account(goodput, now);
    goodput->use = use;
}

void goodput_paused(struct goodput *goodput, double seconds)
{
    if (seconds < 0)
        return;
    for (int i = 0; i < GOODPUT_BUCKETS; i++)
        goodput->pauses[i] += seconds <= goodput_bounds[i];
    goodput->pause_count++;
    goodput->pause_sum += seconds;
}

void goodput_report(struct goodput *goodput, double now, int generation, int64_t done)
{
    account(goodput, now);
    if (generation == goodput->world && done < goodput->last)
        goodput->most = done; /* a new count */
    else if (goodput->world > 0 && done < goodput->last)
        goodput->lost += goodput->last - done;
    goodput->world = generation;
    goodput->last = done;
    if (done >= goodput->most)
        goodput->most = done;
    goodput->repeating = done < goodput->most;
}

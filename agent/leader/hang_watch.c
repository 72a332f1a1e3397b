/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A training that makes no steps any more (--elastic-hang-wait): a rank never enters a collective,
 * or a file system does not answer.
 *
 * All ranks wait for the one that hangs, so no rank makes a step. The workers show where they are,
 * and then the world ends as if a worker had failed. In live mode workers that come out of it live
 * on, and the worker that does not is killed. */
#include <stdio.h>
#include <stdlib.h>

#include "agent/leader/hang_watch.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/post.h"
#include "agent/leader/roster.h"
#include "common/log.h"
#include "lib/hang.h"

struct hang_watch {
    struct hang hang;
};

struct hang_watch *hang_watch_create(void)
{
    return calloc(1, sizeof(struct hang_watch));
}

void hang_watch_destroy(struct hang_watch *watch)
{
    free(watch);
}

/* The newest of any rank. began: one of them has made a step in its life. */
static uint64_t newest_step(const struct leader *leader, bool *began)
{
    uint64_t step = 0;

    *began = false;
    for (int i = 0; i < roster_count(leader); i++) {
        const struct leader_member *m = roster_at(leader, i);

        if (m->part->place < 0)
            continue;
        *began = *began || m->step > 0 || m->part->slowest > 0;
        if (m->step > step)
            step = m->step;
    }
    return step;
}

static void show_stacks(struct leader *leader, double silent)
{
    char usual[32] = "";

    if (leader->watches.hang->hang.usual > 0)
        snprintf(usual, sizeof(usual), " (usual are %.1f s)", leader->watches.hang->hang.usual);
    log_error(
        "job %u: no rank has made a step for %.0f s%s: it hangs; these are the workers' stacks",
        leader->options->job, silent, usual);
    for (int i = 0; i < roster_count(leader); i++)
        if (roster_at(leader, i)->part->place >= 0)
            leader_send(roster_at(leader, i),
                        leader_message("stacks", change_generation(leader->change)));
}

void hang_watch(struct leader *leader)
{
    const int limit = leader->options->policy->hang_wait;
    struct hang_view view = {.now = leader_now(leader),
                             .generation = change_generation(leader->change),
                             .running = change_phase(leader->change) == CHANGE_RUNNING};
    double silent;
    char why[128];

    view.step = newest_step(leader, &view.has_begun);
    switch (hang_look(&leader->watches.hang->hang, &view, limit, &silent)) {
    case HANG_NO:
        break;
    case HANG_SHOW:
        show_stacks(leader, silent);
        break;
    case HANG_YES:
        snprintf(why, sizeof(why), "no rank has made a step for %.0f s (--elastic-hang-wait=%d)",
                 silent, limit);
        post_fail(leader, why);
        break;
    }
}

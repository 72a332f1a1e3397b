/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A training that makes no steps any more (--elastic-hang-wait): a collective that one rank never enters, a file system that does not answer.
 *
 * All ranks wait for the one that hangs, so no rank has made a step. Its workers show where they are, and then the world ends as if one had
 * failed. In live mode those that come out of it live on, and the one that does not is killed. */
#include <stdio.h>

#include "agent/leader_internal.h"
#include "common/log.h"

#define STEPS  10  /* a step may take so many times as long as usual, whatever hang_wait is */
#define WEIGHT 0.1 /* of the latest steps in what is usual */
#define STACKS 2.0 /* seconds for the workers to show them */

/* The newest of any rank. began: one of them has made a step in its life. */
static uint64_t newest_step(const struct leader *leader, bool *began)
{
    uint64_t step = 0;

    *began = false;
    for (int i = 0; i < leader->member_count; i++) {
        const struct leader_member *m = leader->members[i];

        if (m->position < 0)
            continue;
        *began = *began || m->step > 0 || m->slowest > 0;
        if (m->step > step)
            step = m->step;
    }
    return step;
}

static void note_step(struct leader *leader, uint64_t step, double now)
{
    double seconds = now - leader->hang.since;

    if (leader->hang.generation != leader->generation) {
        leader->hang.usual = 0;
    } else if (step > leader->hang.step && leader->phase == PHASE_RUNNING) {
        seconds /= (double)(step - leader->hang.step);
        leader->hang.usual += leader->hang.usual == 0 ? seconds
                                                      : WEIGHT * (seconds - leader->hang.usual);
    }
    leader->hang.generation = leader->generation;
    leader->hang.step = step;
    leader->hang.since = now;
    leader->hang.shown = false;
}

static void show_stacks(struct leader *leader, double silent)
{
    char usual[32] = "";

    if (leader->hang.usual > 0)
        snprintf(usual, sizeof(usual), " (usual are %.1f s)", leader->hang.usual);
    log_error(
        "job %u: no rank has made a step for %.0f s%s: it hangs; these are the workers' stacks",
        leader->options->job, silent, usual);
    for (int i = 0; i < leader->member_count; i++)
        if (leader->members[i]->position >= 0)
            leader_send(leader->members[i], leader_message("stacks", leader->generation));
    leader->hang.shown = true;
}

void hang_watch(struct leader *leader)
{
    double now = leader_now(leader), limit = leader->options->policy->hang_wait, silent;
    bool began;
    uint64_t step = newest_step(leader, &began);
    char why[128];

    if (leader->phase != PHASE_RUNNING || leader->hang.generation != leader->generation ||
        step != leader->hang.step) {
        note_step(leader, step, now);
        return;
    }
    silent = now - leader->hang.since;
    if (limit < STEPS * leader->hang.usual)
        limit = STEPS * leader->hang.usual;
    /* Before the first step anything may take its time, and a program that never makes one does something else. */
    if (leader->options->policy->hang_wait == 0 || !began || silent < limit)
        return;
    if (!leader->hang.shown) {
        show_stacks(leader, silent);
    } else if (silent >= limit + STACKS) {
        snprintf(why, sizeof(why), "no rank has made a step for %.0f s (--elastic-hang-wait=%d)",
                 silent, leader->options->policy->hang_wait);
        change_fail(leader, why);
    }
}

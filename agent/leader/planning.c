/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When the next plan is made, and what it has to know of growth so far (planning.h). */
#include "agent/leader/planning.h"

#include <stdlib.h>

#include "agent/leader/leader_internal.h"
#include "agent/leader/roster.h"

#define MANY_MEMBERS 64
#define MEMBER_PAUSE 1e-4 /* seconds for each member, between two plans for many */

struct planning {
    double made_at; /* when the last plan was begun */
    struct setbacks setbacks;
    int last_increments; /* of the last extension that was asked for */
};

/* A plan looks at all members. When each of very many says something, not each is followed by a
 * plan of its own. */
static double pause_after_plan(const struct leader *leader)
{
    int count = roster_count(leader);

    return count > MANY_MEMBERS ? count * MEMBER_PAUSE : 0;
}

void planning_later(struct leader *leader, double seconds)
{
    double least = leader->planning->made_at + pause_after_plan(leader) - leader_now(leader);
    uint64_t ms;

    seconds = seconds > least ? seconds : least;
    ms = seconds <= 0 ? 0 : (uint64_t)(seconds * 1000) + 1;
    if (uv_is_closing((uv_handle_t *)&leader->timers.plan))
        return;
    if (uv_is_active((uv_handle_t *)&leader->timers.plan) &&
        uv_timer_get_due_in(&leader->timers.plan) <= ms)
        return;
    uv_timer_start(&leader->timers.plan, leader->above->plan, ms, 0);
}

void planning_taken_back(struct leader *leader, double asked)
{
    setbacks_add(&leader->planning->setbacks, leader_now(leader),
                 leader->options->policy->grow_delay, asked);
    leader->planning->last_increments = 0;
}

void planning_setback(struct leader *leader)
{
    planning_taken_back(leader, -1);
}

void planning_forget_setback(struct leader *leader)
{
    leader->planning->setbacks = (struct setbacks){.last = -1};
}

void planning_note_increments(struct leader *leader, int increments)
{
    leader->planning->last_increments = increments;
}

struct setbacks planning_setbacks(const struct leader *leader)
{
    return leader->planning->setbacks;
}

int planning_last_increments(const struct leader *leader)
{
    return leader->planning->last_increments;
}

void planning_begins(struct leader *leader)
{
    leader->planning->made_at = leader_now(leader);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct planning *planning_create(void)
{
    struct planning *planning = calloc(1, sizeof(*planning));

    if (planning != NULL)
        planning->setbacks.last = -1;
    return planning;
}

void planning_destroy(struct planning *planning)
{
    free(planning);
}

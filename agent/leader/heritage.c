/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What only the leader knows is told to the base for the leader after this one (heritage.h). */
#include "agent/leader/heritage.h"

#include <stdlib.h>

#include "agent/leader/allocation.h"
#include "agent/leader/exclude.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/report.h"
#include "agent/leader/roster.h"

#define STEPS_PAUSE 5.0 /* seconds in which nothing is told but steps */

struct heritage {
    struct handover told; /* what the members of the base know */
    double when;
};

static struct handover handover_of(const struct leader *leader)
{
    return (struct handover){
        .target = allocation_user_target(leader),
        .faults = change_faults(leader->change),
        .counted = exclude_counted(leader),
        .steps = report_steps(leader),
    };
}

void heritage_tell(struct leader *leader, struct leader_member *m)
{
    struct handover handover = handover_of(leader);
    json_object *msg = leader_message("heritage", -1);

    json_object_object_add(msg, "target", json_object_new_int(handover.target));
    json_object_object_add(msg, "faults", json_object_new_int(handover.faults));
    json_object_object_add(msg, "counted", json_object_new_int(handover.counted));
    json_object_object_add(msg, "steps", json_object_new_int64(handover.steps));
    leader_send(m, msg);
}

void heritage_watch(struct leader *leader)
{
    struct handover now = handover_of(leader), told = leader->heritage->told;

    if (now.target == told.target && now.faults == told.faults && now.counted == told.counted &&
        (now.steps == told.steps || leader_now(leader) - leader->heritage->when < STEPS_PAUSE))
        return;
    leader->heritage->told = now;
    leader->heritage->when = leader_now(leader);
    for (int i = 0; i < roster_count(leader); i++)
        if (roster_at(leader, i)->part->base)
            heritage_tell(leader, roster_at(leader, i));
}

/* ---- life ------------------------------------------------------------------------------------ */

struct heritage *heritage_create(void)
{
    return calloc(1, sizeof(struct heritage));
}

void heritage_destroy(struct heritage *heritage)
{
    free(heritage);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of the job (end.h):
 *
 *   the base is requeued, if it is to be ──► agents are dismissed ──► links, srun, extensions end
 *   ──► Slurm is told, where srun does not ──► everything is closed
 *
 * Each has a limit, so that the end comes in any case. */
#include "agent/leader/end.h"

#include "agent/leader/act.h"
#include "agent/leader/extensions.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/pmix_publish.h"
#include "agent/leader/report.h"
#include "agent/leader/requeue.h"
#include "agent/leader/roster.h"
#include "agent/leader/slurm_look.h"
#include "agent/leader/srun.h"
#include "agent/leader/submit.h"
#include "agent/leader/world_store.h"
#include "common/log.h"

#define CLOSE_LIMIT 3.0 /* seconds for members to end when the job has ended */
#define END_POLL_MS 200 /* between looks at what the end still waits for */

static void on_look(uv_timer_t *timer)
{
    end_look(timer->data);
}

static void look_after(struct leader *leader, int ms)
{
    uv_timer_start(&leader->deadline, on_look, (uint64_t)ms, 0);
}

void end_begin(struct leader *leader, int code)
{
    leader->exit_code = code;
    leader->end_since = leader_now(leader);
    srun_end(leader);
    look_after(leader, (int)(CLOSE_LIMIT * 1000) + 1);
    report_end(leader);
    extensions_cancel_all(leader);
    if (!requeue_instead(leader))
        end_dismiss(leader);
}

void end_without(struct leader *leader, int code)
{
    submit_disown(leader);
    leader->exit_code = code;
    leader->end_since = leader_now(leader);
    act_post(leader, (struct change_fact){.kind = CHANGE_FACT_DEPOSED});
    look_after(leader, 1000);
    for (int i = 0; i < roster_count(leader); i++)
        if (roster_at(leader, i)->link != NULL)
            link_close(roster_at(leader, i)->link, "this node does not lead the job any more");
    end_look(leader);
}

void end_dismiss(struct leader *leader)
{
    for (int i = 0; i < roster_count(leader); i++) {
        struct leader_member *m = roster_at(leader, i);
        json_object *msg = leader_message("finish", -1);

        json_object_object_add(msg, "code", json_object_new_int(m->base ? leader->exit_code : 0));
        json_object_object_add(msg, "well", json_object_new_boolean(leader->exit_code == 0));
        leader_send(m, msg);
    }
    end_look(leader);
}

static bool any_linked(const struct leader *leader)
{
    for (int i = 0; i < roster_count(leader); i++)
        if (roster_at(leader, i)->link != NULL)
            return true;
    return false;
}

/* What the end of the job still waits for, in words. NULL: nothing is left, or it has been waited
 * for as long as it may be. */
static const char *what_is_left(const struct leader *leader)
{
    double since = leader_now(leader) - leader->end_since;

    if (requeue_asking(leader))
        return "Slurm to put the job back into the queue";
    if (any_linked(leader) && since < CLOSE_LIMIT)
        return "the agents to leave";
    if (srun_is_looked_for(leader))
        return "an answer of srun";
    if (srun_busy(leader) && since < 2 * CLOSE_LIMIT)
        return "srun to be told of lost nodes";
    if ((!submit_cleaned(leader) || submit_busy(leader) || slurm_look_busy(leader)) &&
        since < 4 * CLOSE_LIMIT)
        return "Slurm to answer about extensions";
    return NULL;
}

void end_look(struct leader *leader)
{
    const char *left;

    if (leader->server == NULL || !leader_has_ended(leader))
        return;
    left = what_is_left(leader);
    if (left != NULL && left != leader->end_waits_for)
        log_debug("job %u: the end waits for %s", leader->options->job, left);
    leader->end_waits_for = left;
    if (left != NULL)
        look_after(leader, END_POLL_MS);
    else if (!srun_lost_ends(leader))
        leader_close(leader);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What should be, and how the job gets there.
 *
 * Everything that happens (a member joins, leaves, is lost; Slurm says something new; a user
 * asks; time passes) ends in planning_later(). A little later lib/plan is asked once what should
 * be. What it says of extensions is carried out here, what it says of the world in lib/change. */
#include "agent/leader/decide.h"

#include <stdio.h>
#include <stdlib.h>

#include "agent/leader/allocation.h"
#include "agent/leader/exclude.h"
#include "agent/leader/extensions.h"
#include "agent/leader/heritage.h"
#include "agent/leader/job_pools.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/leader_roles.h"
#include "agent/leader/lease.h"
#include "agent/leader/market.h"
#include "agent/leader/mlflow_run.h"
#include "agent/leader/planning.h"
#include "agent/leader/post.h"
#include "agent/leader/requeue.h"
#include "agent/leader/roster.h"
#include "agent/leader/scancel.h"
#include "agent/leader/slurm_look.h"
#include "agent/leader/submit.h"

/* ---- the description ------------------------------------------------------------------------- */

static struct plan_member describe_member(struct leader *leader, const struct leader_member *m,
                                          bool only_warm, bool any_stateful)
{
    const struct change_member *part = m->part;
    bool excluded = exclude_member(leader, m), pressed = part->place < 0 || part->reclaimed;
    bool ready = part->place >= 0 || part->state == CHANGE_WARM;

    return (struct plan_member){
        .id = m->id,
        .job = m->part->job,
        .base = m->part->base,
        .usable = change_is_usable(part, leader_now(leader)) && !(excluded && pressed) &&
                  (!only_warm || ready),
        .going = excluded && !pressed,
        .has_state = change_has_state(leader->change, part, any_stateful),
        .position = part->place,
        .nodeid = m->part->nodeid,
        .switches = m->switches,
        .joined = m->joined,
    };
}

static struct plan_extension describe_extension(const struct leader *leader,
                                                const struct extension *ext)
{
    return (struct plan_extension){
        .job = ext->job,
        .nodes = ext->nodes,
        .state = ext->state,
        .since = ext->since,
        .begin = ext->begin,
        .leaves = ext->leaves,
        .unwanted = ext->unwanted || ext->returns,
        .withdrawn = ext->withdrawn,
        .boot_limit = job_pools_boot_limit(leader, ext->pool),
        .lead = job_pools_lead(leader, ext->pool),
        .counted = !extensions_excused(leader, ext),
        .excludes = ext->excludes_until > 0,
        .pool = ext->pool != NULL ? ext->pool->name : NULL,
        .reason = ext->reason[0] != '\0' ? ext->reason : NULL,
    };
}

/* Two extensions that share nodes with other jobs could start on the same node: one after the
 * other. */
static int max_pending(struct leader *leader)
{
    const struct job_info *base = slurm_look_base(leader);

    return base != NULL && !base->exclusive ? 1 : leader->options->conf->max_pending;
}

static struct plan_input describe(struct leader *leader, const struct plan_member *members,
                                  int member_count, const struct plan_extension *extensions,
                                  int extension_count)
{
    const struct policy *policy = leader->options->policy;
    const int target = allocation_user_target(leader), base_nodes = leader->options->world_nodes;
    struct plan_input in = {
        .now = leader_now(leader),
        .sizes = &policy->sizes,
        .replica = policy->replica,
        .base_nodes = base_nodes,
        .base_lost = exclude_world_lost(leader),
        .target = allocation_target(leader),
        .asks = policy->grow == POLICY_GROW_ASK && target == base_nodes,
        .max_pending = max_pending(leader),
        .grow_delay = policy->grow_delay,
        .snooze = policy->snooze,
        .generation_since = change_since(leader->change),
        .setbacks = planning_setbacks(leader),
        .stands_since = change_stands_since(leader->change),
        .taken = policy->reclaim != POLICY_RECLAIM_SHRINK ? exclude_taken(leader) : 0,
        .last_increments = planning_last_increments(leader),
        .no_pool = job_pools_count(leader) == 0,
        .submit_error = extensions_refusal(leader)[0] != '\0' ? extensions_refusal(leader) : NULL,
        .failure = extensions_failure(leader),
        .retry_at = submit_after(leader),
        .members = members,
        .member_count = member_count,
        .extensions = extensions,
        .extension_count = extension_count,
    };

    market_describe(leader, &in);
    in.before_loss = change_nodes_before_loss(leader->change, &in.replace_until);
    return in;
}

/* Nodes of other roles, and extensions for them, are none of the world's. */
int decide_plan(void *arg, bool only_warm, struct plan_output *out)
{
    struct leader *leader = arg;
    struct plan_member *members = calloc((size_t)roster_count(leader) + 1, sizeof(*members));
    struct plan_extension *extensions = calloc((size_t)extensions_count(leader) + 1,
                                               sizeof(*extensions));
    bool any = change_any_stateful(leader->change);
    int rc = -1, nodes = 0, jobs = 0;

    if (members != NULL && extensions != NULL) {
        struct plan_input in;

        for (int i = 0; i < roster_count(leader); i++)
            if (!roster_at(leader, i)->part->apart)
                members[nodes++] = describe_member(leader, roster_at(leader, i), only_warm, any);
        for (int i = 0; i < extensions_count(leader); i++)
            if (extensions_at(leader, i)->role < 0)
                extensions[jobs++] = describe_extension(leader, extensions_at(leader, i));
        in = describe(leader, members, nodes, extensions, jobs);
        rc = plan_decide(&in, out);
    }
    free(members);
    free(extensions);
    return rc;
}

bool decide_may_act(void *leader)
{
    return lease_may_act(leader);
}

/* ---- carrying out ---------------------------------------------------------------------------- */

/* Is another pool to be asked since this one has not given its nodes in time? */
static bool fails_its_pool(const struct leader *leader, const struct extension *ext)
{
    return ext != NULL && (ext->state == PLAN_BOOTING || ext->state == PLAN_STARTING) &&
           job_pools_has_other(leader, ext->pool);
}

static void cancel_failed(struct leader *leader, uint32_t job)
{
    const struct extension *ext = extensions_find(leader, job);
    bool counts = !fails_its_pool(leader, ext);

    if (!counts)
        extensions_never_joined(leader, ext);
    extensions_cancel(leader, job, counts, "no longer needed");
}

static void change_extensions(struct leader *leader, const struct plan_output *out)
{
    double now = leader_now(leader);

    for (int i = 0; i < out->cancel_count; i++) {
        const struct extension *ext = extensions_find(leader, out->cancel[i]);

        if (ext != NULL && ext->returns)
            post_reason(leader, "extension job %u is given back: %s", ext->job,
                        market_why(leader, ext->pool));
        if (out->cancel_failed[i])
            cancel_failed(leader, out->cancel[i]);
        else
            extensions_cancel(leader, out->cancel[i], false, "no longer needed");
    }
    if (out->submit == 0 || submit_submitting(leader) || scancel_busy(leader) ||
        slurm_look_base(leader) == NULL || change_generation(leader->change) == 0 ||
        change_begins_again(leader->change) || change_stopping(leader->change))
        return;
    if (now >= submit_after(leader)) {
        submit_extension(leader, out);
        if (submit_submitting(leader))
            exclude_replaced(leader, out->submit);
    } else {
        planning_later(leader, submit_after(leader) - now);
    }
}

/* Workers are to know their run of MLflow. */
static bool waits_for_run(struct leader *leader)
{
    double left = change_generation(leader->change) == 0 ? mlflow_run_awaited(leader) : 0;

    if (left > 0)
        planning_later(leader, left);
    return left > 0;
}

void decide_now(uv_timer_t *timer)
{
    struct leader *leader = timer->data;
    struct plan_output out;

    planning_begins(leader);
    if (change_is_ending(leader->change) || !lease_may_act(leader) ||
        change_phase(leader->change) == CHANGE_TAKING_OVER)
        return;
    heritage_watch(leader);
    allocation_update(leader);
    exclude_watch(leader);
    requeue_watch(leader);
    leader_roles_look(leader);
    if (leader->options->world_nodes == 0 || change_phase(leader->change) == CHANGE_RESTING)
        return; /* there is no world to plan */
    if (waits_for_run(leader))
        return;
    market_decide(leader);
    if (change_is_ending(leader->change) || decide_plan(leader, false, &out) != 0)
        return;
    snprintf(leader->why.size, sizeof(leader->why.size), "%s", out.why_size);
    snprintf(leader->why.not_more, sizeof(leader->why.not_more), "%s", out.why_not_more);
    if (out.wake > 0)
        planning_later(leader, out.wake);
    change_extensions(leader, &out);
    post_fact(leader, (struct change_fact){.kind = CHANGE_FACT_PLAN,
                                           .plan = &out,
                                           .time_is_over = extensions_time_is_over(leader)});
    plan_clear(&out);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What should be, and how one gets there.
 *
 * Everything that happens (a member joins, leaves, is lost; Slurm says something new; a user asks; time passes) ends in
 * decide_later: a little later lib/plan is asked once what should be, and the difference to what is gets carried out. */
#include <stdio.h>
#include <stdlib.h>

#include "agent/leader/allocation.h"
#include "agent/leader/exclude.h"
#include "agent/leader/extensions.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/lease.h"
#include "agent/leader/requeue.h"
#include "agent/leader/roster.h"
#include "agent/leader/slurm_look.h"
#include "agent/leader/submit.h"

#define STEP_WAIT 60.0 /* growth waits until the current world has made a step, at most so long */
#define FORM_WAIT 10.0 /* and any change, until live workers have met */

/* Has a worker made a step that others would have to make again? */
static bool any_stateful(const struct leader *leader)
{
    for (int i = 0; i < roster_count(leader); i++)
        if (roster_at(leader, i)->position >= 0 && roster_at(leader, i)->stateful)
            return true;
    return false;
}

/* Of a world that has just begun, with a checkpoint or without, none has made a step, and all will have what others can get. */
static bool has_state(const struct leader *leader, const struct leader_member *m, bool begun)
{
    return leader->options->mode != MODE_RESTART && m->position >= 0 && m->link != NULL &&
           !m->failed && !m->drained && (begun ? m->live && m->stateful : !m->stepping);
}

static int fill_plan_input(struct leader *leader, struct plan_input *in,
                           struct plan_member **members, struct plan_extension **extensions)
{
    bool begun = any_stateful(leader);

    *members = calloc((size_t)roster_count(leader) + 1, sizeof(**members));
    *extensions = calloc((size_t)extensions_count(leader) + 1, sizeof(**extensions));
    if (*members == NULL || *extensions == NULL)
        return -1;
    for (int i = 0; i < roster_count(leader); i++) {
        const struct leader_member *m = roster_at(leader, i);
        bool avoided = exclude_member(leader, m), pressed = m->position < 0 || m->reclaimed;

        (*members)[i] = (struct plan_member){
            .id = m->id,
            .job = m->job,
            .base = m->base,
            .usable = m->link != NULL && !m->leaving && !m->released && m->departing == 0 &&
                      leader_now(leader) >= m->shunned_until && !(avoided && pressed) &&
                      (!leader->only_warm || m->position >= 0 || m->warm),
            .going = avoided && !pressed,
            .has_state = has_state(leader, m, begun),
            .position = m->position,
            .nodeid = m->nodeid,
            .switches = m->switches,
            .joined = m->joined,
        };
    }
    for (int i = 0; i < extensions_count(leader); i++) {
        const struct extension *ext = extensions_at(leader, i);

        (*extensions)[i] = (struct plan_extension){
            .job = ext->job,
            .nodes = ext->nodes,
            .state = ext->state,
            .since = ext->since,
            .begin = ext->begin,
            .leaves = ext->leaves,
            .unwanted = ext->unwanted,
            .pool = ext->pool != NULL ? ext->pool->name : NULL,
            .reason = ext->reason[0] != '\0' ? ext->reason : NULL,
        };
    }
    *in = (struct plan_input){
        .now = leader_now(leader),
        .sizes = &leader->options->policy->sizes,
        .base_nodes = leader->options->base_nodes,
        .base_lost = roster_base_lost(leader),
        .target = allocation_target(leader),
        .asks = leader->options->policy->grow == POLICY_GROW_ASK &&
                allocation_user_target(leader) == leader->options->base_nodes,
        /* Two that share nodes with others could start on the same node: one after the other. */
        .max_pending = slurm_look_base(leader) != NULL && !slurm_look_base(leader)->exclusive
                           ? 1
                           : leader->options->conf->max_pending,
        .grow_delay = leader->options->policy->grow_delay,
        .snooze = leader->options->policy->snooze,
        .before_loss = leader->torn ? 0 : leader->before_loss,
        .replace_until = leader->replace_until,
        .generation_since = leader->generation_since,
        .last_setback = leader->last_setback,
        .last_increments = leader->last_increments,
        .no_pool = extensions_pool(leader) == NULL,
        .submit_error = submit_error(leader)[0] != '\0' ? submit_error(leader) : NULL,
        .members = *members,
        .member_count = roster_count(leader),
        .extensions = *extensions,
        .extension_count = extensions_count(leader),
    };
    return 0;
}

static int decide(struct leader *leader, struct plan_output *out)
{
    struct plan_input in;
    struct plan_member *members = NULL;
    struct plan_extension *extensions = NULL;
    int rc = -1;

    if (fill_plan_input(leader, &in, &members, &extensions) == 0)
        rc = plan_decide(&in, out);
    free(members);
    free(extensions);
    return rc;
}

int decide_plan(struct leader *leader, int **order, int *size)
{
    struct plan_output out;

    if (decide(leader, &out) != 0)
        return -1;
    *order = out.order;
    *size = out.size;
    leader->next_size = out.size;
    leader->replaces = out.replaces;
    return 0;
}

bool decide_drops(const struct leader_member *m, const int *order, int size)
{
    bool drops = m->position >= 0;

    for (int i = 0; i < size && drops; i++)
        drops = order[i] != m->id;
    return drops;
}

/* Has the base come together for the first time? Before that nothing is formed, even if MIN would be met without some. */
static bool assembled(const struct leader *leader)
{
    int base = 0;

    for (int i = 0; i < roster_count(leader); i++)
        base += roster_at(leader, i)->base;
    return base >= leader->options->base_nodes || lease_term(leader) > 0;
}

/* A world that ends need not grow any more. */
static bool any_completed(const struct leader *leader)
{
    for (int i = 0; i < roster_count(leader); i++)
        if (roster_at(leader, i)->position >= 0 && roster_at(leader, i)->completed > 0)
            return true;
    return false;
}

/* A world of live workers that have not met yet. Left alone they will have in a moment, even if some are to leave; told of the next world now, those
 * that have read it are missed by those that wait for them, who find out only when their patience is over. */
static bool is_forming(const struct leader *leader)
{
    return leader_now(leader) < leader->generation_since + FORM_WAIT && live_possible(leader) &&
           !change_all_stepping(leader);
}

/* Does somebody else wait for a node of this world? We do not, for one that we give back, and Slurm does not, for one that it drains. */
static bool is_pressed(const struct leader *leader)
{
    for (int i = 0; i < roster_count(leader); i++) {
        const struct leader_member *m = roster_at(leader, i);

        if (m->position >= 0 && (m->link == NULL || m->reclaimed || (m->leaving && !m->unneeded)))
            return true;
    }
    return false;
}

/* Those that stay train on until newcomers are warm, if without these they would have to be started anew. */
static bool is_urgent(struct leader *leader, const struct plan_output *out)
{
    return out->urgent &&
           (is_pressed(leader) || !live_possible(leader) || prepare_warm_suffice(leader));
}

/* Would that world do without nodes only whose workers have all ended with 0? */
static bool only_done_go(const struct leader *leader, const struct plan_output *out)
{
    for (int i = 0; i < roster_count(leader); i++) {
        const struct leader_member *m = roster_at(leader, i);

        if (decide_drops(m, out->order, out->size) && (!m->drained || m->completed < m->slots))
            return false;
    }
    return true;
}

static void change_when_prepared(struct leader *leader, const struct plan_output *out)
{
    double wait = leader->generation_since + STEP_WAIT - leader_now(leader);
    bool urgent = is_urgent(leader, out);

    if (is_forming(leader)) {
        decide_later(leader, 0.5);
        return;
    }
    if (out->size == 0 && !is_pressed(leader) && !extensions_time_is_over(leader))
        return; /* better the world that there is */
    if (leader_now(leader) < leader->leave_at) {
        decide_later(leader, leader->leave_at - leader_now(leader));
        return;
    }
    if (any_completed(leader) && (!urgent || only_done_go(leader, out)))
        return;
    if (!urgent && !change_all_stepping(leader) && wait > 0) {
        decide_later(leader, 0.5);
        return;
    }
    /* More nodes than were planned for come with the next change, unless that costs nobody its start. */
    prepare_widen(leader, out->size);
    if (!prepare_usable(leader) || leader->next.world->node_count > out->size)
        prepare_discard(leader);
    if (!urgent && leader->next.world == NULL && prepare_early(leader))
        prepare_begin(leader);
    if (urgent || leader->next.world == NULL)
        change_begin(leader);
    else if (!prepare_done(leader, &wait))
        decide_later(leader, wait);
    else if (leader->next.live && !prepare_ready(leader))
        live_give_up(leader);
    else
        change_begin(leader);
}

static void carry_out(struct leader *leader, struct plan_output *out)
{
    double now = leader_now(leader);

    leader->next_size = out->size;
    for (int i = 0; i < out->cancel_count; i++)
        extensions_cancel(leader, out->cancel[i], out->cancel_failed[i], "no longer needed");
    if (out->submit > 0 && !submit_busy(leader) && slurm_look_base(leader) != NULL &&
        leader->generation > 0 && !leader->stopping) {
        if (now >= submit_after(leader))
            submit_extension(leader, out->submit, out->submit_increments, out->submit_delay);
        else
            decide_later(leader, submit_after(leader) - now);
    }
    if (leader->torn) {
        abort_form(leader);
        return;
    }
    /* Below MIN there is all of that time again, if more are lost meanwhile. */
    if (leader->phase == PHASE_WAITING && out->replaces)
        leader_restart_deadline(leader, leader->replace_until - now +
                                            leader->options->policy->fault_wait + 0.1);
    if (!out->change) {
        if (leader->phase == PHASE_RUNNING)
            prepare_discard(leader); /* what it was for has passed */
        return;
    }
    if (leader->phase == PHASE_WAITING && out->size > 0 &&
        (leader->generation > 0 || assembled(leader))) {
        change_form(leader);
    } else if (leader->phase == PHASE_RUNNING) {
        change_when_prepared(leader, out);
    }
}

static void on_evaluate(uv_timer_t *timer)
{
    struct leader *leader = timer->data;
    struct plan_output out;

    if (leader->phase == PHASE_ENDING || !lease_may_act(leader) || takeover_assembles(leader))
        return;
    if (leader->finish_due)
        change_finish(leader, leader->finish_code);
    lease_watch_handover(leader);
    allocation_update(leader);
    exclude_watch(leader);
    requeue_watch(leader);
    if (leader->phase == PHASE_ENDING)
        return;
    if (decide(leader, &out) != 0)
        return;
    snprintf(leader->why_size, sizeof(leader->why_size), "%s", out.why_size);
    snprintf(leader->why_not_more, sizeof(leader->why_not_more), "%s", out.why_not_more);
    if (out.wake > 0)
        decide_later(leader, out.wake);
    carry_out(leader, &out);
    plan_clear(&out);
}

void decide_later(struct leader *leader, double seconds)
{
    uint64_t ms = seconds <= 0 ? 0 : (uint64_t)(seconds * 1000) + 1;

    if (uv_is_closing((uv_handle_t *)&leader->evaluate))
        return;
    if (uv_is_active((uv_handle_t *)&leader->evaluate) &&
        uv_timer_get_due_in(&leader->evaluate) <= ms)
        return;
    uv_timer_start(&leader->evaluate, on_evaluate, ms, 0);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The change of worlds: what the plan says (lib/plan.h) is carried out, now or when it costs
 * less. */
#include "lib/change_private.h"

#include <stdio.h>

#define STEP_WAIT  60.0 /* growth waits until the present world has made a step, at most so long */
#define FORM_WAIT  10.0 /* any change waits until live workers have met, at most so long */
#define LOOK_AGAIN 0.5

static void note_plan(struct change *c, const struct plan_output *plan)
{
    c->next_size = plan->size;
    snprintf(c->why_size, sizeof(c->why_size), "%s", plan->why_size);
}

/* ---- without a world ------------------------------------------------------------------------- */

bool has_roles(const struct change *c)
{
    return c->options->no_world || c->options->world_nodes > 0;
}

bool base_is_there(const struct change *c)
{
    int base = 0;

    FOR_MEMBERS (c, m)
        base += m->base;
    return base >= c->options->base_nodes;
}

/* Which nodes of the base are the world's is said when all of them are there. */
static bool world_is_there(const struct change *c)
{
    int nodes = 0;

    FOR_MEMBERS (c, m)
        nodes += m->base && !m->apart;
    return nodes >= c->options->world_nodes;
}

bool has_assembled(const struct change *c)
{
    return c->generation > 0 || c->options->term > 0 ||
           (c->options->world_nodes > 0 ? world_is_there(c) : base_is_there(c));
}

void decide_without_world(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    const struct plan_output *plan = fact->plan;

    (void)m;
    note_plan(c, plan);
    if (plan->replaces && c->phase != CHANGE_ASSEMBLING) {
        /* Below MIN there is all of that time again, if more nodes are lost meanwhile. */
        c->phase = CHANGE_REPLACING;
        set_deadline(c, c->replace.until - c->now + fault_wait(c));
    } else if (c->phase == CHANGE_REPLACING) {
        c->phase = CHANGE_WAITING;
    }
    if (plan->change && plan->size > 0 && has_assembled(c))
        form(c);
}

void time_without_world(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    (void)m;
    (void)fact;
    gave_up(c, "no member has joined");
    finish(c, 1);
}

void decide_aborted(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    (void)m;
    note_plan(c, fact->plan);
    abort_form(c);
}

/* ---- a world that runs ----------------------------------------------------------------------- */

/* A world that ends need not grow any more. */
static bool any_completed(const struct change *c)
{
    FOR_MEMBERS (c, m)
        if (m->place >= 0 && m->completed > 0)
            return true;
    return false;
}

/* Is it a world of live workers that have not met yet? Left alone they will have met in a moment,
 * even if some of them are to leave. Told of the next world now, workers that have read it would be
 * missed by workers that wait for them, and that find out only when their patience is over. */
static bool is_forming(const struct change *c)
{
    return c->now < c->since + FORM_WAIT && live_possible(c) && !change_all_stepping(c);
}

/* Does somebody else wait for a node of this world? We do not wait for a node that we give back,
 * and Slurm does not wait for a node that it drains. */
static bool is_pressed(const struct change *c)
{
    FOR_MEMBERS (c, m)
        if (m->place >= 0 && (!m->there || m->reclaimed || m->notice == CHANGE_CALLED))
            return true;
    return false;
}

/* All workers train on until newcomers are warm, if nobody waits for a node and the world would be
 * smaller without them, or would have to be started anew. */
static bool is_urgent(struct change *c, const struct change_fact *fact)
{
    const struct plan_output *plan = fact->plan;

    return plan->urgent && (is_pressed(c) || fact->time_is_over || !live_possible(c) ||
                            next_warm_suffice(c, plan->size));
}

/* Would that world leave out only nodes whose workers have all ended with 0? */
static bool only_done_go(const struct change *c, const struct plan_output *plan)
{
    FOR_MEMBERS (c, m)
        if (drops(m, plan->order, plan->size) &&
            (m->state == CHANGE_IN_WORLD || m->completed < m->slots))
            return false;
    return true;
}

/* Has the change to wait for something that is not its preparation? */
static bool has_to_wait(struct change *c, const struct change_fact *fact, bool urgent)
{
    const struct plan_output *plan = fact->plan;

    if (is_forming(c)) {
        decide(c, LOOK_AGAIN);
        return true;
    }
    if (plan->size == 0 && !is_pressed(c) && !fact->time_is_over)
        return true; /* better the world that there is */
    if (c->now < c->due.settled) {
        decide(c, c->due.settled - c->now);
        return true;
    }
    if (any_completed(c) && (!urgent || only_done_go(c, plan)))
        return true;
    if (!urgent && !change_all_stepping(c) && c->now < c->since + STEP_WAIT) {
        decide(c, LOOK_AGAIN);
        return true;
    }
    return false;
}

static void change_when_prepared(struct change *c, const struct change_fact *fact)
{
    const int size = fact->plan->size;
    bool urgent = is_urgent(c, fact);
    double wait;

    c->next_size = size; /* which a question about warm members has changed */
    if (has_to_wait(c, fact, urgent))
        return;
    /* More nodes than were planned for come with the next change, unless that costs no worker its
     * start. */
    next_widen(c, size);
    if (!next_is_usable(c) || c->next.world->node_count > size)
        next_discard(c);
    if (!urgent && c->next.world == NULL && next_is_early(c))
        next_begin(c);
    if (urgent || c->next.world == NULL)
        begin_change(c);
    else if (!next_is_done(c, &wait))
        decide(c, wait);
    else if (c->next.live && !next_is_ready(c))
        give_up_newcomers(c);
    else
        begin_change(c);
}

void decide_running(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    (void)m;
    note_plan(c, fact->plan);
    if (fact->plan->change)
        change_when_prepared(c, fact);
    else
        next_discard(c); /* what it was for has passed */
}

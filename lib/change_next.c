/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The change of worlds: the next world, made ready beside the one that trains.
 *
 * Importing a framework takes seconds, a change of worlds a tenth of a second. So the workers of
 * the next world are started early, with their final environment, and wait at a gate
 * (client/elastic.h) until the old world has saved and left:
 *
 *   chosen ──► reserved ──► prepare sent ──► all parked ──► hold, drain, start    if it can wait
 *   hold   ──► chosen, reserved, prepare sent, while the old workers save         if a node leaves
 *
 * Only a script that is known to wait at a gate is started early: another script might read its
 * checkpoint too early. Nothing depends on a preparation. It is given up when a member of it
 * goes, when a member says that it cannot, or when something else is planned. Then workers start
 * when the old workers have left. */
#include "lib/change_private.h"

#include <stdlib.h>
#include <string.h>

#define TOGETHER 3.0 /* seconds in which nodes that join one after the other are one change */

/* ---- choosing -------------------------------------------------------------------------------- */

static struct world *build_world(struct change *c, const int *order, int size)
{
    /* A leader that follows another one may know of fewer generations than the file. */
    int last = c->generation > c->options->last_generation ? c->generation
                                                           : c->options->last_generation;
    struct world *world = world_create(last + 1, size);
    const struct change_member *first = find_member(c, order[0]);

    if (world == NULL)
        return NULL;
    for (int i = 0; i < size; i++) {
        const struct change_member *m = find_member(c, order[i]);

        if (world_set_node(world, i, m->node, m->slots) != 0) {
            world_destroy(world);
            return NULL;
        }
    }
    /* The leader's own node: its address is the one that members came by. */
    world->master_addr = strdup(
        first->base && first->nodeid == c->options->nodeid ? c->options->address : first->address);
    world->kind = strdup(c->kind);
    world->reason = strdup(c->reason);
    world->restarts = c->faults;
    if (c->options->policy->replica > 1)
        world->replica = c->options->policy->replica;
    world_fold(world);
    return world;
}

/* The members' places in the next world; -1 for the others. */
static void give_places(struct change *c, const int *order, int size)
{
    FOR_MEMBERS (c, m) {
        m->parked = false;
        m->next_place = -1;
    }
    for (int k = 0; k < size; k++)
        find_member(c, order[k])->next_place = k;
}

/* The members of the next world. -1: there is none. */
static int choose(struct change *c, bool only_warm, struct plan_output *plan)
{
    const struct change_questions *ask = &c->options->ask;

    if (ask->plan(ask->arg, only_warm, plan) != 0)
        return -1;
    c->next_size = plan->size;
    c->replace.wanted = plan->replaces;
    if (plan->size > 0)
        return 0;
    plan_clear(plan);
    return -1;
}

bool drops(const struct change_member *m, const int *order, int size)
{
    if (m->place < 0)
        return false;
    for (int i = 0; i < size; i++)
        if (order[i] == m->id)
            return false;
    return true;
}

/* Can there be a live world of that size at once, of members that have workers, without some that
 * leave? */
bool next_warm_suffice(struct change *c, int size)
{
    const struct change_questions *ask = &c->options->ask;
    struct plan_output plan;
    bool suffice = false;

    if (ask->plan(ask->arg, true, &plan) != 0)
        return false;
    FOR_MEMBERS (c, m)
        suffice = suffice ||
                  (plan.size >= size && plan.size > 0 && drops(m, plan.order, plan.size));
    plan_clear(&plan);
    return suffice;
}

int next_begin(struct change *c)
{
    const bool aborted = c->phase == CHANGE_ABORTED, live = live_possible(c) || aborted;
    struct plan_output plan;

    /* Workers that wait with their state do not wait for newcomers, unless they have to. */
    if (choose(c, live && (c->phase == CHANGE_HOLDING || aborted), &plan) != 0 &&
        (!aborted || choose(c, false, &plan) != 0))
        return -1;
    describe(c, plan.size);
    c->next = (struct change_next){.world = build_world(c, plan.order, plan.size),
                                   .attempt = ++c->attempts,
                                   .since = c->now,
                                   .live = live};
    give_places(c, plan.order, c->next.world != NULL ? plan.size : 0);
    plan_clear(&plan);
    if (c->next.world == NULL)
        return -2;
    act(c, CHANGE_RELAY, NULL)->number = c->next.attempt;
    if (live) {
        live_prepare(c);
        return 0;
    }
    FOR_MEMBERS (c, m)
        if (m->next_place == 0) {
            struct change_action *reserve = act(c, CHANGE_RESERVE, m);

            reserve->number = c->next.attempt;
            reserve->generation = c->next.world->generation;
        }
    return 0;
}

void next_discard(struct change *c)
{
    if (c->next.world == NULL)
        return;
    FOR_MEMBERS (c, m) {
        if (m->next_place >= 0 && c->next.reserved && !c->next.live) {
            struct change_action *discard = act(c, CHANGE_DISCARD, m);

            discard->number = c->next.attempt;
            discard->generation = c->next.world->generation;
        }
        m->next_place = -1;
    }
    world_destroy(c->next.world);
    c->next.world = NULL;
    act(c, CHANGE_RELAY_END, NULL);
}

/* ---- is it ready? ---------------------------------------------------------------------------- */

bool next_is_early(const struct change *c)
{
    return live_possible(c) ||
           (c->script.waits && !c->script.unprepared && c->options->early_start);
}

bool next_is_usable(const struct change *c)
{
    int usable = 0;

    if (c->next.world == NULL)
        return false;
    FOR_MEMBERS (c, m)
        usable += m->next_place >= 0 && m->there && m->notice == CHANGE_STAYS && !m->released &&
                  c->now >= m->shunned;
    return usable == c->next.world->node_count;
}

/* In live mode the workers that stay are not started. */
bool next_has_ready(const struct change *c, const struct change_member *m)
{
    return c->next.live ? m->place >= 0 || m->state == CHANGE_WARM : m->parked;
}

bool next_is_ready(const struct change *c)
{
    if (!c->next.reserved)
        return false;
    FOR_MEMBERS (c, m)
        if (m->next_place >= 0 && !next_has_ready(c, m))
            return false;
    return true;
}

bool next_is_done(const struct change *c, double *wait)
{
    *wait = c->next.since + c->options->newcomer_timeout - c->now;
    return next_is_ready(c) || *wait <= 0;
}

/* ---- it is planned anew ---------------------------------------------------------------------- */

/* In a live world, nodes that join soon after the others are taken in with them. */
void next_widen(struct change *c, int size)
{
    double since = c->next.since;

    if (c->next.world == NULL || !c->next.live || size <= c->next.world->node_count ||
        c->now > since + TOGETHER)
        return;
    next_discard(c); /* workers that are starting start on */
    if (next_begin(c) == 0)
        c->next.since = since;
}

void next_again(struct change *c)
{
    if (c->next.world == NULL || next_is_usable(c))
        return;
    next_discard(c);
    if (is_in_phase(c, PHASE(HOLDING) | PHASES_EMPTYING) && !c->stop.wanted && next_is_early(c))
        next_begin(c);
}

/* ---- what members say ------------------------------------------------------------------------ */

static bool is_of_next(const struct change *c, const struct change_member *m,
                       const struct change_fact *fact)
{
    return c->next.world != NULL && m->next_place >= 0 && fact->attempt == c->next.attempt;
}

void next_on_reserved(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    if (!is_of_next(c, m, fact) || c->next.reserved || m->next_place != 0)
        return;
    c->next.world->master_port = fact->port;
    c->next.reserved = true;
    if (is_in_phase(c, PHASES_RESERVING)) {
        form(c);
        return;
    }
    FOR_MEMBERS (c, each) {
        if (each->next_place < 0)
            continue;
        forget_newcomer(each); /* its agent ends those workers for these */
        act(c, CHANGE_PREPARE, each)->number = c->next.attempt;
    }
}

void next_on_parked(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    if (live_on_newcomer(c, m, fact) || !is_of_next(c, m, fact))
        return;
    m->parked = true;
    decide(c, 0);
}

void next_on_unprepared(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    if (live_on_newcomer(c, m, fact) || !is_of_next(c, m, fact))
        return;
    if (!c->script.cold_said)
        act_text(c, CHANGE_SAY, NULL, "the next workers are not started early on %s: %s", m->node,
                 fact->text != NULL ? fact->text : "?");
    c->script.cold_said = c->script.unprepared = true;
    next_discard(c);
    decide(c, 0);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The change of worlds in live mode: workers that stay go from one world to the next without an
 * end.
 *
 *   newcomers:     prepare ──► WARMING ──► WARM ──────────────────────┐
 *   other workers: HOLDING ──► run_to S and then to the next world ───┴──► SWITCHING ──► RUNNING
 *
 * A newcomer's workers are started once, wait at their gates, and are told their place when
 * their world begins: a change of plans does not cost them their start. All other workers learn
 * of the next world together with the step after which it begins. */
#include "lib/change_private.h"

#include <stdio.h>

#define SHUN 10.0 /* seconds until workers are started again on a base node */
/* Seconds for workers to leave a world that goes on, from when they last had something to give to
 * others. Slurm's grace time ends that in any case. */
#define DEPART_LIMIT 10.0

bool live_world(const struct change *c)
{
    int there = 0;

    if (c->options->mode == CHANGE_RESTART || c->world == NULL || c->fault || c->failure.known ||
        !is_in_phase(c, PHASE(RUNNING) | PHASE(HOLDING)))
        return false;
    FOR_MEMBERS (c, m) {
        if (m->place < 0)
            continue;
        if (!has_workers_left(m) || !m->live)
            return false;
        there++;
    }
    return there == c->world->node_count;
}

bool live_possible(const struct change *c)
{
    return live_world(c) && !c->stop.wanted;
}

/* What a member says of its workers when they have come to their gates, and with their first
 * step. */
void live_note(struct change_member *m, const struct change_fact *fact)
{
    m->live = fact->live;
    m->signature = fact->signature;
}

/* With --mode=live the job ends if the workers of this member cannot go from world to world. */
void live_require(struct change *c, const struct change_member *m)
{
    char why[256];

    if (c->options->mode != CHANGE_LIVE || m->live)
        return;
    snprintf(why, sizeof(why),
             "--mode=live: workers on %s have begun without slurm_elastic.live or "
             "elastic_live(), and would be started anew at each change; --mode=auto allows that",
             m->node);
    c->failure.fatal = true;
    fail(c, why);
}

/* ---- newcomers ------------------------------------------------------------------------------- */

/* Would the first step of its workers be that of another model? Then they would end while the world
 * forms, and the world with them. */
static bool fits(const struct change *c, const struct change_member *newcomer)
{
    FOR_MEMBERS (c, m)
        if (m->place >= 0 && m->signature != 0 && m->signature != newcomer->signature)
            return false;
    return true;
}

/* The next world has been chosen: workers are started on the nodes that are new in it. */
void live_prepare(struct change *c)
{
    /* No worker meets the others at a port: the agents serve a store. */
    c->next.world->master_port = c->world->master_port;
    c->next.reserved = true;
    FOR_MEMBERS (c, m) {
        struct change_action *prepare;

        if (m->next_place < 0 || m->place >= 0 || is_newcomer(m))
            continue;
        m->state = CHANGE_WARMING;
        m->warming = c->next.attempt;
        prepare = act(c, CHANGE_PREPARE, m);
        prepare->number = c->next.attempt;
        prepare->flag = true;
    }
}

/* Its agent has no workers any more that wait for a live world to begin. */
void forget_newcomer(struct change_member *m)
{
    if (is_newcomer(m))
        m->state = CHANGE_OUTSIDE;
    m->warming = 0;
}

/* That has cost the world nothing, and is not to be tried again at once. */
static void refuse_newcomer(struct change *c, struct change_member *m, const char *why)
{
    snprintf(c->newcomer_error, sizeof(c->newcomer_error), "%s: its workers were not let in: %s",
             m->node, why);
    act_text(c, CHANGE_SAY_ERROR, NULL, "%s", c->newcomer_error);
    forget_newcomer(m);
    act(c, CHANGE_SETBACK, NULL);
    if (!m->base) {
        release(c, m, why);
        return;
    }
    m->shunned = c->now + SHUN;
    decide(c, SHUN);
}

/* Some newcomers are not ready after too long a time: without them. */
void give_up_newcomers(struct change *c)
{
    char why[96];

    snprintf(why, sizeof(why), "they did not come to their gates in %.0f s (newcomer_timeout)",
             c->options->newcomer_timeout);
    FOR_MEMBERS (c, m)
        if (m->next_place >= 0 && m->place < 0 && m->state != CHANGE_WARM)
            refuse_newcomer(c, m, why);
    next_discard(c);
    decide(c, 0);
}

bool live_on_newcomer(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    const char *why = fact->text != NULL ? fact->text : "?";

    if (m->warming == 0 || fact->attempt != m->warming)
        return false;
    if (fact->kind == CHANGE_FACT_PARKED) {
        live_note(m, fact);
        if (m->live && fits(c, m)) {
            m->state = CHANGE_WARM;
            decide(c, 0);
            return true;
        }
        why = m->live ? "what they train is not what the others train: other parameters, buffers, "
                        "optimizers, data or global batch (which must not depend on WORLD_SIZE)"
                      : "they are not live, as the others are";
    }
    refuse_newcomer(c, m, why);
    next_again(c);
    decide(c, 0);
    return true;
}

/* ---- the switch ------------------------------------------------------------------------------ */

void begin_departure(struct change *c, struct change_member *m)
{
    m->state = CHANGE_DEPARTING;
    m->depart_by = c->now + DEPART_LIMIT;
}

/* Workers that leave give away what the others lack of their state, which may be many gigabytes. */
void live_note_moved(struct change *c, struct change_member *m, int64_t moved)
{
    if (m->state == CHANGE_DEPARTING && moved != m->moved && m->depart_by < c->now + DEPART_LIMIT)
        m->depart_by = c->now + DEPART_LIMIT;
    m->moved = moved;
}

/* The workers of newcomers take their places. */
static void enter_newcomers(struct change *c)
{
    FOR_MEMBERS (c, m) {
        struct change_action *enter;

        if (m->next_place < 0 || m->place >= 0)
            continue;
        enter = act(c, CHANGE_ENTER, m);
        enter->number = c->next.attempt;
        enter->started = m->started = m->warming;
        m->stateful = m->failed = false;
        forget_newcomer(m);
    }
}

/* The prepared world begins with workers that go on in it, and with newcomers. Each of the
 * former is told so by that kind of action, for RUN_TO_NEXT with the step that the workers
 * run to before. */
void live_enter(struct change *c, enum change_action_kind kind, uint64_t step, double seconds)
{
    update_reason(c);
    FOR_MEMBERS (c, m) {
        struct change_action *next;

        if (m->place < 0)
            continue;
        next = act(c, kind, m);
        next->number = c->next.attempt;
        next->step = step;
        if (m->next_place >= 0)
            continue;
        begin_departure(c, m);
        if (kind == CHANGE_RUN_TO_NEXT)
            m->state = CHANGE_AWAITED;
    }
    enter_newcomers(c);
    enter_world(c, CHANGE_SWITCHING, seconds);
    c->due.entered = c->deadline;
}

/* All are held, the highest step is known: the next world begins after it. False: it cannot. */
bool live_switch(struct change *c, uint64_t step)
{
    if (!live_possible(c) || c->next.world == NULL || !c->next.live || !next_is_usable(c) ||
        !next_is_ready(c))
        return false;
    live_enter(c, CHANGE_RUN_TO_NEXT, step, switch_limit(c));
    return true;
}

/* ---- workers that leave a world that goes on ------------------------------------------------- */

static void departed(struct change *c, struct change_member *m)
{
    m->state = CHANGE_OUTSIDE;
    release_idle(c);
    decide(c, 0);
}

/* exited, drained: true if it was about such workers. */
bool live_on_departing(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    if (!change_is_on_its_way(m) || m->place >= 0)
        return false;
    takeover_note_end(c, m, fact);
    if (m->former.world != NULL) {
        /* It is still being seen who is left. The other workers of its node end, too. */
        act_text(c, CHANGE_SAY, NULL, "a worker on %s has ended meanwhile", m->node);
        world_destroy(m->former.world);
        m->former.world = NULL;
        m->live = m->stateful = false;
        if (!m->former.ends_well)
            kill_workers(c, m);
    }
    if (fact->kind == CHANGE_FACT_DRAINED)
        departed(c, m);
    else if (!fact->told || fact->signal != 0)
        abort_leaver_gone(c, m); /* it has not come to that step */
    return true;
}

void live_watch(struct change *c)
{
    FOR_MEMBERS (c, m)
        if (m->state == CHANGE_DEPARTING && c->now >= m->depart_by)
            departed(c, m);
}

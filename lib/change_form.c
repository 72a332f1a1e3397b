/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The change of worlds: the next world becomes the present one, or the job waits, or ends. */
#include "lib/change_private.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESERVE_LIMIT 5.0
#define START_LIMIT   60.0 /* seconds to execute all workers' commands (slow file systems) */
#define FINISH_LOOK   0.2  /* seconds between two looks at the lease, when all is over */

/* ---- what the change is called --------------------------------------------------------------- */

/* Why nodes leave may have been said while an earlier change was under way, and gone with it. */
static bool describe_leavers(struct change *c)
{
    FOR_MEMBERS (c, m) {
        if (m->place < 0)
            continue;
        if (m->reclaimed)
            snprintf(c->reason, sizeof(c->reason), "%s is about to be taken away", m->node);
        else if (m->notice == CHANGE_CALLED)
            snprintf(c->reason, sizeof(c->reason), "extension job %u has to leave", m->job);
        else if (!m->there)
            snprintf(c->reason, sizeof(c->reason), "node %s lost", m->node);
        else
            continue;
        return true;
    }
    return false;
}

void describe(struct change *c, int size)
{
    int newcomers = 0, current = c->world != NULL ? c->world->node_count : 0;
    const char *kind = size > current ? "grow" : "shrink";

    FOR_MEMBERS (c, m)
        newcomers += m->place < 0 && m->there;
    if (c->stop.wanted)
        kind = "stop";
    else if (c->generation == 0 || c->again)
        kind = "start";
    else if (c->fault || current == 0)
        kind = "fault";
    snprintf(c->kind, sizeof(c->kind), "%s", kind);
    if (c->stop.wanted)
        snprintf(c->reason, sizeof(c->reason), "%s", c->stop.reason);
    else if (c->generation == 0 && !c->again)
        snprintf(c->reason, sizeof(c->reason), "the job starts");
    else if (c->next_reason[0] != '\0')
        snprintf(c->reason, sizeof(c->reason), "%s", c->next_reason);
    else if (size <= current && describe_leavers(c))
        return;
    else if (size < current)
        snprintf(c->reason, sizeof(c->reason), "%d node%s left out", current - size,
                 current - size == 1 ? "" : "s");
    else
        snprintf(c->reason, sizeof(c->reason), "%d node%s joined", newcomers,
                 newcomers == 1 ? "" : "s");
}

/* What has been learnt since the world was planned, such as why Slurm wanted a node. */
void update_reason(struct change *c)
{
    char *text;

    describe(c, c->next.world->node_count);
    text = strdup(c->reason);
    if (text == NULL)
        return;
    free(c->next.world->reason);
    c->next.world->reason = text;
}

/* ---- waiting and ending ---------------------------------------------------------------------- */

/* A node that Slurm has been promised is given back as soon as nothing of ours needs it. */
void release_idle(struct change *c)
{
    FOR_MEMBERS (c, m)
        if (m->notice != CHANGE_STAYS && !m->base && !m->released && m->there && !m->busy &&
            !change_is_on_its_way(m) && (m->place < 0 || m->state == CHANGE_DRAINED))
            release(c, m,
                    c->options->no_world || m->apart ? "no replica runs there" : "left the world");
}

void form_on_busy(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    m->busy = fact->code != 0;
    release_idle(c);
}

static void leave_place(struct change_member *m)
{
    m->place = -1;
    if (m->state == CHANGE_IN_WORLD || m->state == CHANGE_DRAINED || m->state == CHANGE_LOST)
        m->state = CHANGE_OUTSIDE;
}

static void end_world(struct change *c)
{
    c->promotion.done = false;
    next_discard(c);
    world_destroy(c->world);
    c->world = NULL;
    FOR_MEMBERS (c, m)
        leave_place(m);
    release_idle(c);
}

static void wait_for_members(struct change *c, const char *why)
{
    double wait = c->options->policy->fault_wait;

    end_world(c);
    act_text(c, CHANGE_SAY, NULL, "%s: waiting up to %.0f s for nodes", why, wait);
    set_phase(c, CHANGE_WAITING, fault_wait(c));
    decide(c, 0);
}

/* The world is over. The job is not before its other roles are. */
static void rest(struct change *c, int code)
{
    end_world(c);
    c->again = false;
    if (c->stop.world) {
        c->stop.wanted = c->stop.world = false;
        c->stop.code = 128 + SIGTERM;
    }
    set_phase(c, CHANGE_RESTING, 0);
    act(c, CHANGE_WORLD_OVER, NULL)->number = code;
}

/* Nobody knows so far which nodes of the base it gets: they are ADMITTED, as before the first
 * one. */
void form_on_again(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    (void)m;
    (void)fact;
    FOR_MEMBERS (c, each)
        each->apart = each->apart || each->base;
    c->again = true;
    c->fault = c->failure.known = false;
    c->replace.wanted = false;
    c->replace.nodes = 0;
    set_next_reason(c, "a fit begins");
    set_phase(c, CHANGE_WAITING, 0);
    decide(c, 0);
}

void finish(struct change *c, int code)
{
    if (c->phase == CHANGE_ENDING || (c->phase == CHANGE_RESTING && !c->over))
        return;
    c->finish_code = code;
    if (!c->stop.told && !may_act(c)) {
        if (c->phase != CHANGE_FINISHING)
            set_phase(c, CHANGE_FINISHING, FINISH_LOOK);
        set_deadline(c, FINISH_LOOK);
        return;
    }
    /* If its base has never been there, neither have the other roles. */
    if (c->options->world_nodes > 0 && !c->over && (change_has_begun(c) || c->options->term > 0)) {
        rest(c, code);
        return;
    }
    next_discard(c);
    set_phase(c, CHANGE_ENDING, 0);
    act(c, CHANGE_FINISH, NULL)->number = code;
}

/* A job with other roles: what it runs has ended, and so has its world. */
void form_on_over(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    (void)m;
    c->over = true;
    finish(c, fact->code);
}

/* ---- a world begins -------------------------------------------------------------------------- */

static void take_places(struct change *c)
{
    FOR_MEMBERS (c, m) {
        int place = m->next_place;

        leave_place(m);
        m->place = place;
        m->next_place = -1;
        if (place >= 0) {
            m->generation = c->generation;
            m->state = CHANGE_IN_WORLD;
        }
        m->parked = m->begun = m->stepping = m->asks = false;
        m->told = m->completed = m->early = 0;
        m->held = (struct change_held){0};
    }
}

/* The prepared world becomes the present one. */
void enter_world(struct change *c, enum change_phase phase, double seconds)
{
    struct change_action *begin;

    world_destroy(c->world);
    c->world = c->next.world;
    c->next.world = NULL;
    c->attempt = c->next.attempt;
    c->generation = c->world->generation;
    c->next_reason[0] = '\0';
    c->again = false;
    c->leaving_job = 0;
    take_places(c);
    c->failure.known = c->settled = c->fault = c->script.unprepared = c->saved_only = false;
    c->replace.nodes = 0;
    release_idle(c);
    begin = act(c, CHANGE_BEGIN_WORLD, NULL);
    begin->number = c->attempt;
    begin->seconds = c->pause_from;
    c->pause_from = -1;
    set_phase(c, phase, seconds);
    c->since = c->now;
}

/* … with workers that are started for it. */
static void start_world(struct change *c)
{
    update_reason(c);
    enter_world(c, CHANGE_STARTING, START_LIMIT);
    FOR_MEMBERS (c, m) {
        struct change_action *start;

        if (!takes_part(m))
            continue;
        forget_newcomer(m);
        m->started = c->attempt;
        /* They have not said yet what they are. */
        m->stateful = m->failed = m->live = false;
        start = act(c, CHANGE_START, m);
        start->number = c->attempt;
        /* Workers that start only now wait at their gates, too, for rank 0 to pass first. */
        start->flag = c->script.waits && c->options->early_start;
    }
}

/* A world is about to start from the newest checkpoint. True: flushed snapshots are looked for
 * first, and form() follows. */
static bool promotes_first(struct change *c)
{
    if (c->promotion.done) {
        c->promotion.done = false;
        return false;
    }
    if (!c->promotion.begun)
        act(c, CHANGE_PROMOTE, NULL);
    c->promotion.begun = true;
    set_phase(c, CHANGE_PROMOTING, 0);
    return true;
}

void form(struct change *c)
{
    if (c->stop.wanted) {
        finish(c, c->stop.code);
        return;
    }
    if (!may_act(c)) {
        if (!is_in_phase(c, PHASES_WITHOUT_WORLD))
            wait_for_members(c, "another node may lead now");
        return;
    }
    if (takeover_ends(c)) {
        if (!is_in_phase(c, PHASES_WITHOUT_WORLD))
            wait_for_members(c, "the training may be over");
        decide(c, TAKEOVER_MAX);
        return;
    }
    if (!next_is_usable(c)) {
        int rc;

        next_discard(c);
        rc = next_begin(c);
        if (rc == -1)
            wait_for_members(c, c->replace.wanted ? "lost nodes are replaced first" : "below MIN");
        if (rc == -2) {
            act_text(c, CHANGE_SAY_ERROR, NULL, "out of memory");
            finish(c, 1);
        }
        if (rc < 0)
            return;
    }
    if (!c->next.reserved)
        set_phase(c, CHANGE_RESERVING, RESERVE_LIMIT);
    else if (!promotes_first(c))
        start_world(c);
}

void form_on_promoted(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    (void)m;
    (void)fact;
    c->promotion.begun = false;
    c->promotion.done = true;
    form(c);
}

/* ---- what members say of it ------------------------------------------------------------------ */

static bool is_of_world(const struct change *c, const struct change_member *m,
                        const struct change_fact *fact)
{
    return m->place >= 0 && fact->generation == c->generation;
}

void form_on_ready(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    if (!is_of_world(c, m, fact))
        return;
    m->answered = true;
    if (!all_have_answered(c, true))
        return;
    /* No worker waits for a last step of these any more. */
    FOR_MEMBERS (c, each)
        if (each->state == CHANGE_AWAITED)
            begin_departure(c, each);
    set_phase(c, CHANGE_RUNNING, 0);
    c->ready_at = c->now;
    decide(c, 0);
    if (c->stop.wanted)
        begin_change(c);
}

/* Rank 0 listens, or is not waited for any longer: the other workers may connect. */
void form_on_listening(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    if (!is_of_world(c, m, fact))
        return;
    FOR_MEMBERS (c, each)
        if (takes_part(each) && each != m)
            act(c, CHANGE_OPEN, each)->generation = c->generation;
}

void form_on_begun(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    if (!is_of_world(c, m, fact))
        return;
    m->begun = true;
    decide(c, 0);
}

/* A script that imports for long is taken for one that does not know our library. */
static void say_unheard(struct change *c, int seconds)
{
    if (seconds == 0 || c->script.unheard_said || c->options->mode != CHANGE_AUTO)
        return;
    c->script.unheard_said = true;
    act_text(
        c, CHANGE_SAY, NULL,
        "no worker has used slurm_elastic within %d s: workers are started anew at each change "
        "(restart mode); a script that uses it imports slurm_elastic before what takes long",
        seconds);
}

void form_on_stepping(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    if (!is_of_world(c, m, fact))
        return;
    m->begun = m->stepping = m->stateful = true;
    c->stolen = 0;
    live_note(m, fact);
    live_require(c, m);
    say_unheard(c, fact->unheard);
    c->script.waits = fact->gate;
    act(c, CHANGE_STEPPED, NULL)->flag = fact->aware;
    decide(c, 0);
}

/* A program that asks for nodes is at work, also where it makes no steps that our library sees. */
void form_on_at_work(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    (void)c;
    (void)fact;
    m->begun = m->stepping = m->stepping || m->place >= 0;
}

/* Whatever has kept the leader until now is not the workers' time. */
void form_on_written(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    double late = c->now - c->phase_since;

    (void)m;
    (void)fact;
    c->phase_since += late;
    c->due.entered += late;
    if (c->deadline > 0)
        c->deadline += late;
}

/* ---- deadlines ------------------------------------------------------------------------------- */

/* Does the phase last because of this member? */
static bool is_waited_for(const struct change *c, const struct change_member *m)
{
    if (is_in_phase(c, PHASES_RESERVING))
        return m->next_place == 0 && m->there;
    return has_workers_left(m) && (is_in_phase(c, PHASES_EMPTYING) || !m->answered);
}

void lose_silent(struct change *c, const char *why)
{
    for (int i = c->member_count - 1; i >= 0; i--) {
        if (!is_waited_for(c, c->members[i]))
            continue;
        act_text(c, CHANGE_LOSE, c->members[i], "%s", why);
        return; /* what follows is a fact of its own */
    }
}

void time_reserving(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    (void)m;
    (void)fact;
    set_deadline(c, RESERVE_LIMIT);
    if (c->next.world == NULL)
        form(c); /* it has been given up meanwhile: no member is waited for */
    else
        lose_silent(c, "no port for MASTER_PORT");
}

void time_starting(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    (void)m;
    (void)fact;
    set_deadline(c, RESERVE_LIMIT);
    lose_silent(c, "workers could not be started in time");
}

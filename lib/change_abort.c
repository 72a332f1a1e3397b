/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The change of worlds in live mode: a worker or a node is lost, and the others live on
 * (doc/internals/live.md, "Faults").
 *
 *   RUNNING, HOLDING, STARTING ──► ABORTED ──► SWITCHING ──► RUNNING
 *                                   │   ▲          │ another worker is lost, or does not come out
 *                                   │   └──────────┘
 *                                   └──► SAVING: the job ends, or has waited for too long
 *
 * All workers are told at once that their world is aborted, so that they come out of whatever
 * they wait for in it. The next world is made of the members that are left, and of newcomers
 * that are ready. Below MIN workers wait, with their state, for newcomers. Where a worker has
 * failed the other workers of its node end, too: a node takes part with all its workers or not
 * at all. Its agent starts them anew as those of any newcomer. Workers without a state are no
 * reason to give up, unless all are: then the newest checkpoint is what there is, and workers
 * are started anew. */
#include "lib/change_private.h"

#include <stdio.h>
#include <string.h>

#include "lib/text.h"

#define OUT_LIMIT    5.0 /* seconds to come out of an aborted world … */
#define OUT_FACTOR   1.5 /* … and so many times the longest step: a worker computes, is not stuck */
#define OUT_MAX      60.0 /* so long is waited for the only workers that have the state */
#define OUT_LATE     0.5  /* seconds by which a timer of ours is late when the loop was kept */
#define SWITCH_LIMIT 60.0 /* seconds beyond a step for a planned change */
#define LEAVE_LIMIT  30.0 /* seconds to leave when the job ends meanwhile */
#define LOOK_AGAIN   1.0  /* seconds, while newcomers start, which have a limit of their own */

static double longer(double a, double b)
{
    return a > b ? a : b;
}

static bool is_left(const struct change_member *m)
{
    return has_workers_left(m) && !m->failed;
}

/* The workers run to a step, and are to save after it. */
static bool is_ending(const struct change *c)
{
    return c->stop.wanted && c->phase == CHANGE_DRAINING;
}

static bool can_live_on(const struct change *c)
{
    int left = 0;

    if (c->options->mode == CHANGE_RESTART || c->world == NULL ||
        (!is_in_phase(c, PHASE(ABORTED) | PHASES_TRAINING) && !is_ending(c)))
        return false;
    FOR_MEMBERS (c, m) {
        if (m->place >= 0 && m->completed > m->early)
            return false; /* the training is over where that worker was */
        if (is_left(m) && !m->live)
            return false;
        /* When the job ends all are leaving. */
        left += is_left(m) && (c->stop.wanted || (m->notice == CHANGE_STAYS && !m->released));
    }
    return left > 0;
}

static void tell_leave(struct change *c, const struct change_member *m, bool save)
{
    act(c, CHANGE_LEAVE, m)->flag = save;
}

/* It is not part of the aborted world any more. */
static void drop(struct change *c, struct change_member *m)
{
    m->place = -1;
    if (m->there && m->state == CHANGE_IN_WORLD)
        begin_departure(c, m);
    else
        m->state = CHANGE_OUTSIDE;
}

void abort_awaited(struct change *c)
{
    FOR_MEMBERS (c, m) {
        if (m->state != CHANGE_AWAITED)
            continue;
        kill_workers(c, m);
        begin_departure(c, m);
    }
}

static void part_members(struct change *c)
{
    FOR_MEMBERS (c, m) {
        if (m->place < 0)
            continue;
        if (is_left(m)) {
            act(c, CHANGE_ABORT, m);
            continue;
        }
        if (m->there && !m->former.ends_well)
            kill_workers(c, m);
        drop(c, m);
    }
    abort_awaited(c);
}

bool abort_world(struct change *c)
{
    bool ends = c->stop.wanted;
    int code = c->stop.code;

    FOR_MEMBERS (c, m)
        m->failed = m->failed || (m->place >= 0 && m->early > 0);
    if (!can_live_on(c))
        return false;
    if (c->failure.known && !ends) {
        set_next_reason(c, "%.255s", c->failure.text);
        ends = !count_failure(c);
        code = c->failure.code;
    }
    if (c->pause_from < 0)
        c->pause_from = c->now;
    c->failure.known = false;
    c->fault = true;
    next_discard(c); /* what was planned did not know of this */
    describe(c, 0);
    act_text(c, CHANGE_SAY_DEBUG, NULL, "aborted: %s", c->reason);
    part_members(c);
    act(c, CHANGE_STORE_END, NULL);
    set_phase(c, CHANGE_ABORTED, fault_wait(c));
    if (ends)
        abort_end(c, code); /* what the workers that are left have is not lost */
    else
        abort_form(c);
    return true;
}

bool abort_ending(struct change *c)
{
    return is_ending(c) && abort_world(c);
}

/* ---- a worker that ends with 0 before the others --------------------------------------------- */

void abort_note_early(struct change *c, const struct change_member *m)
{
    c->failure.known = true;
    c->failure.code = 1;
    c->failure.fatal = false;
    snprintf(c->failure.text, sizeof(c->failure.text),
             "a worker on %s has ended with status 0 while others still train", m->node);
    recovery_failed(c->options->recovery, m->node, c->world->node_count, c->now);
}

/* It may be the end of the training: a program may end in the midst of the last step, as long as
 * all of it does. It is a failure if another worker has failed of an exchange with it. */
void abort_if_early(struct change *c)
{
    const struct change_member *early = NULL;
    bool asked = false;

    FOR_MEMBERS (c, m) {
        if (m->place >= 0 && m->early > 0)
            early = m;
        asked = asked || (is_left(m) && m->asks);
    }
    if (early == NULL || !asked || c->failure.known || !is_in_phase(c, PHASES_TRAINING))
        return;
    abort_note_early(c, early);
    abort_or_kill(c);
}

void abort_on_beat(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    m->slowest = fact->slowest;
    live_note_moved(c, m, fact->moved);
    m->asks = fact->asks && fact->generation == c->generation;
    if (m->asks)
        abort_if_early(c);
}

/* ---- what follows ---------------------------------------------------------------------------- */

static bool others_have_state(const struct change *c, const struct change_member *m)
{
    FOR_MEMBERS (c, each)
        if (each != m && is_left(each) && each->stateful)
            return true;
    return false;
}

/* Slurm wants these nodes back, whether or not there will be another world. */
static void let_leave(struct change *c)
{
    FOR_MEMBERS (c, m) {
        bool save;

        if (!is_left(m) || m->notice == CHANGE_STAYS)
            continue;
        save = m->stateful && !others_have_state(c, m);
        tell_leave(c, m, save);
        drop(c, m);
        if (save)
            m->depart_by += longer(LEAVE_LIMIT, grace_of(c));
    }
}

/* Seconds that the longest step may still take. */
static double rest_of_step(const struct change *c)
{
    uint32_t slowest = 0;

    FOR_MEMBERS (c, m)
        if (is_left(m) && m->slowest > slowest)
            slowest = m->slowest;
    return OUT_FACTOR * slowest / 1000.0;
}

/* Seconds for workers that may be in the midst of something longer than any step before (an
 * evaluation, say), where no worker is known to be lost, or no other worker has the state: as
 * long as they would have to reach a step and save. Shorter if the user wants to hear of hangs. */
static double patience(const struct change *c)
{
    const struct policy *policy = c->options->policy;

    return policy->hang_wait > 0 ? policy->hang_wait : policy->grace;
}

/* Seconds for a planned change. The next world begins when all workers have reached the step that
 * they run to: that may take them one step more. */
double switch_limit(const struct change *c)
{
    return longer(SWITCH_LIMIT + rest_of_step(c), patience(c));
}

static void await_all(struct change *c, double seconds)
{
    set_deadline(c, seconds);
    c->due.entered = c->deadline;
}

/* The next world begins, as soon as there can be one. */
void abort_form(struct change *c)
{
    double wait, limit = OUT_LIMIT + rest_of_step(c);

    if (c->phase != CHANGE_ABORTED || !may_act(c))
        return;
    if (takeover_ends(c)) {
        decide(c, TAKEOVER_MAX);
        return;
    }
    if (c->next.world != NULL && !next_is_usable(c))
        next_discard(c);
    if (c->next.world == NULL && next_begin(c) != 0) {
        let_leave(c);
        return; /* whatever changes that is followed by another decision */
    }
    if (next_is_ready(c)) {
        live_enter(c, CHANGE_NEXT, 0, limit < OUT_MAX ? limit : OUT_MAX);
        return;
    }
    let_leave(c);
    if (next_is_done(c, &wait))
        give_up_newcomers(c);
    else
        decide(c, wait);
}

/* One that leaves a world has ended, or is lost: the other workers wait for it in vain if it has
 * not reached its last step there. */
void abort_leaver_gone(struct change *c, struct change_member *m)
{
    if (m->state != CHANGE_AWAITED || !is_in_phase(c, PHASES_STARTING))
        return;
    begin_departure(c, m);
    set_next_reason(c, "node %s was lost before its last step", m->node);
    break_off(c);
}

/* ---- workers that do not come out ------------------------------------------------------------ */

/* Members that the world still waits for have failed. Returns how many, and names them. */
static int fail_missing(struct change *c, char *names, size_t size)
{
    int missing = 0;

    names[0] = '\0';
    FOR_MEMBERS (c, m) {
        if (!is_left(m) || m->answered)
            continue;
        m->failed = true;
        text_append(names, size, "%s%s", missing > 0 ? ", " : "", m->node);
        missing++;
    }
    return missing;
}

static struct change_member *find_awaited(const struct change *c)
{
    FOR_MEMBERS (c, m)
        if (m->state == CHANGE_AWAITED)
            return m;
    return NULL;
}

/* Is there a worker in the new world already that has the state? */
static bool is_state_safe(const struct change *c)
{
    FOR_MEMBERS (c, m)
        if (is_left(m) && m->answered && m->stateful)
            return true;
    return false;
}

/* SWITCHING has lasted as long as it may: workers that have not come out are given up. */
void time_switching(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    double limit = longer(longer(OUT_LIMIT + rest_of_step(c), OUT_MAX), patience(c));
    char why[200], names[128];
    struct change_member *awaited;

    (void)m;
    /* Were we asleep ourselves? Then what the members have said is still to be read. */
    if (c->now - c->due.entered > OUT_LATE) {
        await_all(c, OUT_LATE);
        return;
    }
    if (!is_state_safe(c) && c->now - c->phase_since < limit) {
        await_all(c, OUT_LIMIT);
        return;
    }
    c->phase = CHANGE_STARTING; /* what comes now cannot go on for ever */
    awaited = find_awaited(c);
    if (awaited != NULL) {
        abort_leaver_gone(c, awaited); /* the others wait for it */
    } else if (fail_missing(c, names, sizeof(names)) > 0) {
        snprintf(why, sizeof(why), "workers on %s did not come out of the world before", names);
        fail(c, why);
    } else {
        time_starting(c, NULL, fact);
    }
}

/* ---- the job ends while they wait ------------------------------------------------------------ */

/* With that exit status: one worker saves. */
bool abort_end(struct change *c, int code)
{
    bool saves = false;

    if (c->phase != CHANGE_ABORTED)
        return false;
    c->stop.wanted = c->saved_only = true;
    c->stop.code = code;
    next_discard(c);
    FOR_MEMBERS (c, m) {
        if (!is_left(m))
            continue;
        tell_leave(c, m, m->stateful && !saves);
        saves = saves || m->stateful;
    }
    set_phase(c, CHANGE_SAVING, saves ? rest_of_step(c) + grace_of(c) : LEAVE_LIMIT);
    check_drained(c); /* nobody may be left to leave */
    return true;
}

void time_aborted(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    (void)m;
    (void)fact;
    if (c->next.world != NULL) {
        set_deadline(c, LOOK_AGAIN);
        return;
    }
    gave_up(c, "too few nodes");
    abort_end(c, 1);
}

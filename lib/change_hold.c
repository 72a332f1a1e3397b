/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The change of worlds: workers are held, run to a step that all reach, save and leave.
 *
 *   RUNNING ──► HOLDING ──► DRAINING ──► form()
 *      │            │ a member is lost, a worker fails
 *      └────────────┴──► KILLING ──► form()
 *
 * HOLDING: every worker's next step boundary is barred, and the step that the worker is
 * committed to is reported. Once all members have answered, the highest step becomes the step to
 * run to. All workers park there, save and leave (DRAINING). Each phase has a deadline: a worker
 * that does not leave is killed, and a member that does not answer counts as lost. What happens
 * meanwhile counts when the next world is formed, not before. */
#include "lib/change_private.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define HOLD_LIMIT   5.0  /* seconds for the answer to hold: memory operations only */
#define FAULT_GRACE  3.0  /* for survivors of a fault: they are stuck, SIGTERM is a courtesy */
#define KILL_LIMIT   10.0 /* seconds to reap what has been killed */
#define GRACE_MARGIN 2.0  /* seconds of Slurm's grace time that are kept for leaving */
#define ASK_AGAIN    0.2  /* seconds until a leader that may not act asks again */
#define STOLEN_MAX   20   /* ports that others take, one after the other */
#define TERM_SETTLE  1.0  /* seconds for the reason of a SIGTERM that no agent has sent */

/* ---- stopping workers ------------------------------------------------------------------------ */

static void stop_member(struct change *c, const struct change_member *m, int signal, double grace,
                        bool notice)
{
    struct change_action *stop = act(c, CHANGE_SIGNAL, m);

    stop->number = signal;
    stop->seconds = grace;
    stop->flag = notice;
}

/* notice: there is something worth saving, and programs are told in the way that they know. */
static void send_stop(struct change *c, int signal, double grace, bool notice)
{
    FOR_MEMBERS (c, m)
        if (has_workers_left(m))
            stop_member(c, m, signal, grace, notice);
}

void kill_workers(struct change *c, const struct change_member *m)
{
    stop_member(c, m, SIGKILL, 0, false);
}

/* Workers that are left have nothing to save: the members kill them after the grace themselves. */
void kill_rest(struct change *c)
{
    set_phase(c, CHANGE_KILLING, FAULT_GRACE + KILL_LIMIT);
    send_stop(c, SIGTERM, FAULT_GRACE, false);
    act(c, CHANGE_STORE_END, NULL);
}

/* Seconds that workers have to reach a step, save and leave: less where Slurm or a
 * cloud takes a node sooner. */
double grace_of(const struct change *c)
{
    double grace = c->options->policy->grace;

    FOR_MEMBERS (c, m)
        if (m->notice != CHANGE_STAYS && m->grace > 0 && m->grace - GRACE_MARGIN < grace)
            grace = m->grace - GRACE_MARGIN;
    FOR_MEMBERS (c, m)
        if (m->place >= 0 && m->taken > c->now && m->taken - GRACE_MARGIN - c->now < grace)
            grace = m->taken - GRACE_MARGIN - c->now;
    return grace < 1 ? 1 : grace;
}

/* ---- failures -------------------------------------------------------------------------------- */

void abort_or_kill(struct change *c)
{
    if (abort_world(c))
        return;
    if (c->pause_from < 0)
        c->pause_from = c->now;
    next_discard(c); /* what was planned did not know of this */
    abort_awaited(c);
    kill_rest(c);
}

void break_off(struct change *c)
{
    c->fault = true;
    abort_or_kill(c);
    check_drained(c);
}

/* Any user of a node can take its ports. That is no failure of the program, unless nothing else
 * ever happens. */
bool count_failure(struct change *c)
{
    const struct budget *budget = &c->options->policy->restarts;
    char text[32];

    act_text(c, CHANGE_CAUSE, NULL, "%s", c->failure.text);
    if (c->failure.stolen && ++c->stolen <= STOLEN_MAX)
        return true;
    c->faults++;
    if (c->failure.fatal)
        return false;
    if (recovery_count(c->options->recovery, c->now))
        return true;
    if (budget->restarts > 0)
        act_text(c, CHANGE_SAY_ERROR, NULL, "%d failures: giving up (--max-restarts=%s)", c->faults,
                 budget_format(budget, text, sizeof(text)));
    requeue(c);
    return false;
}

void requeue(struct change *c)
{
    if (!c->failure.fatal && !c->stop.wanted)
        act(c, CHANGE_REQUEUE, NULL);
}

void fail(struct change *c, const char *why)
{
    if (c->failure.known || !is_in_phase(c, PHASES_TRAINING))
        return;
    c->failure.known = true;
    c->failure.stolen = false;
    c->failure.code = 1;
    snprintf(c->failure.text, sizeof(c->failure.text), "%s", why);
    abort_or_kill(c);
}

/* ---- drained: no worker is left -------------------------------------------------------------- */

static bool lost_some(const struct change *c)
{
    FOR_MEMBERS (c, m)
        if (m->place >= 0 && (!m->there || m->notice != CHANGE_STAYS))
            return true;
    return false;
}

/* Has the world ended because of a fault, or was a node lost while it ended? */
static bool is_faulty(const struct change *c)
{
    FOR_MEMBERS (c, m)
        if (m->place >= 0 && m->state == CHANGE_LOST && m->notice == CHANGE_STAYS && !m->released)
            return true;
    return c->fault;
}

/* The world that has ended because of a fault is to be as large again, but for nodes that Slurm
 * or a cloud takes. */
static void replace_lost(struct change *c)
{
    c->replace.nodes = 0;
    FOR_MEMBERS (c, m)
        c->replace.nodes += m->place >= 0 && m->notice == CHANGE_STAYS && !m->released &&
                            !m->reclaimed;
    if (c->pause_from < 0)
        c->pause_from = c->now;
    c->replace.until = c->pause_from + c->options->policy->fault_wait;
    if (c->next.world != NULL && c->next.world->node_count < c->replace.nodes)
        next_discard(c); /* it was planned without that */
}

/* All workers of the world are gone. What now? */
static void drained(struct change *c)
{
    int told = 0, completed = 0;

    if (c->saved_only && c->stop.wanted) {
        finish(c, c->stop.code); /* what they have left behind is a checkpoint, not a result */
        return;
    }
    FOR_MEMBERS (c, m) {
        if (m->place < 0)
            continue;
        told += m->told;
        completed += m->completed;
    }
    if (c->failure.known && c->failure.code == 128 + SIGTERM && !c->settled && !c->stop.wanted) {
        /* Slurm signals workers and agents at the same moment; ours may just be behind. */
        c->settled = true;
        set_phase(c, CHANGE_SETTLING, TERM_SETTLE);
        return;
    }
    if (c->failure.known && !c->stop.wanted && !lost_some(c)) {
        if (!count_failure(c)) {
            finish(c, c->failure.code);
            return;
        }
        c->fault = true;
        set_next_reason(c, "%.255s", c->failure.text);
    } else if (completed == world_size(c->world) ||
               (completed > 0 && told == 0 && !c->failure.known && !lost_some(c))) {
        finish(c, 0);
        return;
    }
    if (is_faulty(c))
        replace_lost(c);
    form(c);
}

void check_drained(struct change *c)
{
    if (c->phase == CHANGE_ABORTED || c->world == NULL || is_in_phase(c, PHASES_OVER))
        return; /* its workers live on, or it has ended before */
    for (; c->first.drained < c->member_count; c->first.drained++)
        if (has_workers_left(c->members[c->first.drained]))
            return;
    c->first.drained = 0; /* it may be looked at again */
    drained(c);
}

/* A worker has ended with 0 in a world that is aborted, or has been. If it had passed its last
 * boundary before it was told, that is no failure. The other workers go on without it. */
static void finished_when_aborted(struct change *c, struct change_member *m,
                                  const struct change_fact *fact)
{
    m->failed = true; /* so far as there is nothing left of it */
    takeover_note_end(c, m, fact);
    if (fact->early && !c->failure.known)
        abort_note_early(c, m);
    set_next_reason(c, "rank %d on %s has ended", fact->rank, m->node);
    abort_or_kill(c);
}

static void note_failure(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    m->failed = true;
    if (c->failure.known)
        return; /* the first one is the cause */
    c->failure.known = true;
    c->failure.code = fact->code != 0 ? fact->code : 128 + fact->signal;
    c->failure.fatal = fact->signal == 0 && recovery_is_final(fact->code);
    c->failure.stolen = fact->stolen;
    recovery_failed(c->options->recovery, m->node, c->world->node_count, c->now);
    snprintf(c->failure.text, sizeof(c->failure.text), "%s", fact->text != NULL ? fact->text : "?");
    if (is_in_phase(c, PHASES_TRAINING | PHASE(ABORTED)))
        abort_or_kill(c);
    else
        abort_ending(c);
}

void hold_on_exited(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    bool well = fact->code == 0 && fact->signal == 0;

    if (live_on_departing(c, m, fact) || m->place < 0 || fact->started != m->started)
        return;
    if (well && !fact->told &&
        (c->phase == CHANGE_ABORTED || (c->phase == CHANGE_SWITCHING && !m->answered))) {
        finished_when_aborted(c, m, fact);
        return;
    }
    m->told += fact->told;
    if (well) {
        m->completed += !fact->told;
        m->early += fact->early;
        abort_if_early(c);
    } else if (!fact->told ||
               (c->phase != CHANGE_KILLING && fact->signal == 0 && fact->code != 128 + SIGTERM)) {
        note_failure(c, m, fact); /* else: ended by us */
    }
}

static void note_held(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    m->answered = true;
    m->held = fact->held;
    agree_if_answered(c);
}

void hold_on_drained(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    if (live_on_departing(c, m, fact) || m->place < 0 || fact->started != m->started)
        return;
    m->state = CHANGE_DRAINED;
    decide(c, 0);
    release_idle(c);
    if (is_in_phase(c, PHASE(RUNNING) | PHASES_EMPTYING | PHASES_STARTING))
        check_drained(c);
    else if (c->phase == CHANGE_HOLDING && !m->answered)
        note_held(c, m, fact); /* it ended before the hold reached it */
}

/* ---- holding --------------------------------------------------------------------------------- */

static void run_to(struct change *c, uint64_t step)
{
    FOR_MEMBERS (c, m) {
        struct change_action *run;

        if (!takes_part(m))
            continue;
        run = act(c, CHANGE_RUN_TO, m);
        run->generation = c->generation;
        run->step = step;
    }
}

static void send_hold(struct change *c, double grace)
{
    FOR_MEMBERS (c, m) {
        struct change_action *hold;

        if (!has_workers_left(m))
            continue;
        hold = act(c, CHANGE_HOLD, m);
        hold->generation = c->generation;
        hold->number = c->stop.wanted ? 0 : c->next_size;
        hold->seconds = grace;
    }
}

void begin_change(struct change *c)
{
    double grace = grace_of(c);

    if (c->stop.wanted)
        act(c, CHANGE_END_REQUESTS, NULL); /* before workers are told: they may wait for that */
    FOR_MEMBERS (c, m)
        c->fault = c->fault || (m->place >= 0 && m->state == CHANGE_LOST);
    /* Workers do not look at their pages while they form a world, and to abort that loses
     * nothing. If the job ends, a worker that has a state saves it. */
    c->fault = c->fault || (live_world(c) && !change_all_stepping(c) &&
                            (!c->stop.wanted || change_any_stateful(c)));
    if (next_is_usable(c))
        c->next_size = c->next.world->node_count;
    describe(c, c->next_size);
    act_text(c, CHANGE_SAY_DEBUG, NULL, "change: %s: %s", c->kind, c->reason);
    c->pause_from = -1;
    if (c->fault) {
        break_off(c);
        return;
    }
    set_phase(c, CHANGE_HOLDING, HOLD_LIMIT);
    c->due.grace = c->now + grace;
    send_hold(c, grace);
    if (c->stop.wanted || (c->next.live && !next_is_ready(c)))
        next_discard(c);
    if (!c->stop.wanted && c->next.world == NULL && next_is_early(c))
        next_begin(c); /* there was no time for it before */
}

/* What the members have said, together; finished: workers that have ended or are about to. */
static struct change_held sum_held(const struct change *c, int *finished)
{
    struct change_held sum = {0};

    *finished = 0;
    FOR_MEMBERS (c, m) {
        if (m->place >= 0)
            *finished += m->completed;
        if (!takes_part(m))
            continue;
        sum.attached += m->held.attached;
        sum.training += m->held.training;
        sum.running += m->held.running;
        *finished += m->held.through;
        if (m->held.running > 0 && m->held.step > sum.step)
            sum.step = m->held.step;
    }
    return sum;
}

/* Every member has said where its workers are. */
static void agree(struct change *c)
{
    int finished, signal = c->options->policy->signal > 0 ? c->options->policy->signal : SIGTERM;
    struct change_held sum = sum_held(c, &finished);
    double left = c->due.grace - c->now;

    left = left > 1 ? left : 1;
    c->pause_from = c->now;
    if (finished == 0 && sum.running > 0 && live_switch(c, sum.step))
        return;
    set_phase(c, CHANGE_DRAINING, left);
    if (sum.running == 0) {
        /* There is nobody to tell. */
    } else if (finished > 0) {
        /* Some workers are through, and so the others are about to be: a world that ends is not
         * changed any more. */
        run_to(c, c->options->step_end);
    } else if (sum.training == 0 || (sum.step == 0 && sum.attached < sum.running)) {
        /* No worker has finished a step that our library knows of (while some are still starting,
         * none can have), or knows our library at all: the next world starts from the script's own
         * checkpoint. */
        send_stop(c, signal, left, true);
    } else {
        run_to(c, sum.step);
    }
    check_drained(c); /* workers that have answered may have ended since */
}

/* A leader that was stopped while workers were held may have been followed by another one. */
void agree_if_answered(struct change *c)
{
    if (!all_have_answered(c, false))
        return;
    if (may_act(c))
        agree(c);
    else
        set_deadline(c, ASK_AGAIN);
}

void hold_on_held(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    if (m->place >= 0 && fact->generation == c->generation && !m->answered)
        note_held(c, m, fact);
}

/* ---- deadlines ------------------------------------------------------------------------------- */

void time_holding(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    (void)m;
    (void)fact;
    if (all_have_answered(c, false)) {
        agree(c);
        return;
    }
    set_deadline(c, HOLD_LIMIT);
    lose_silent(c, "no answer to hold");
}

void time_draining(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    (void)m;
    (void)fact;
    act_text(c, CHANGE_SAY, NULL, "workers did not leave within the grace time: killed");
    set_phase(c, CHANGE_KILLING, KILL_LIMIT);
    send_stop(c, SIGKILL, 0, false);
}

void time_killing(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    (void)m;
    (void)fact;
    set_deadline(c, KILL_LIMIT);
    check_drained(c);
    if (c->phase == CHANGE_KILLING)
        lose_silent(c, "its workers could not be killed");
}

void time_settling(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    (void)m;
    (void)fact;
    check_drained(c);
}

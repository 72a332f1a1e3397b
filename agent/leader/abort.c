/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Live mode: a worker or a node is lost, and the others live on (doc/live.md, "Faults").
 *
 *   RUNNING, HOLDING, STARTING ──► torn: WAITING ──► the next world: STARTING ──► RUNNING
 *                                       │  ▲                 │ (another one is lost, or does not come out)
 *                                       │  └─────────────────┘
 *                                       └──► DRAINING, in which one saves: the job ends, or it has waited for too long
 *
 * All workers are told at once that their world is torn, so that they come out of whatever they wait for in it. The next world is made of those that
 * are left, and of newcomers that are ready; below MIN they wait, with their state, for newcomers. Where a worker has failed the others of its
 * node end, too: a node takes part with all its workers or not at all. Its agent starts them anew as those of any newcomer.
 * Workers without a state are no reason to give up, unless all are: then the newest checkpoint is what there is, and workers are started anew. */
#include <stdio.h>
#include <string.h>

#include "agent/leader/leader_internal.h"
#include "common/log.h"
#include "lib/json_get.h"

#define OUT_LIMIT  5.0 /* seconds to come out of a torn world … */
#define OUT_FACTOR 1.5 /* … and so many times the longest step: what computes is not stuck */
/* Seconds after which not even those are waited for that alone have the state, unless a step takes longer. */
#define OUT_MAX      60.0
#define OUT_LATE     0.5  /* seconds by which a timer of ours is late when the loop was kept */
#define SWITCH_LIMIT 60.0 /* seconds beyond a step for a planned change */
#define LEAVE_LIMIT  30.0 /* seconds to leave, when the job ends meanwhile */

static double longer(double a, double b)
{
    return a > b ? a : b;
}

static bool is_left(const struct leader_member *m)
{
    return m->position >= 0 && m->link != NULL && !m->failed && !m->drained;
}

/* They run to a step, and are to save after it. */
static bool is_ending(const struct leader *leader)
{
    return leader->stopping && leader->phase == PHASE_DRAINING && !leader->torn && !leader->killed;
}

static bool can_live_on(const struct leader *leader)
{
    int left = 0;

    if (leader->options->mode == MODE_RESTART || leader->world == NULL ||
        (!leader->torn && leader->phase != PHASE_RUNNING && leader->phase != PHASE_HOLDING &&
         leader->phase != PHASE_STARTING && !is_ending(leader)))
        return false;
    for (int i = 0; i < leader->member_count; i++) {
        const struct leader_member *m = leader->members[i];

        if (m->position >= 0 && m->completed > m->early)
            return false; /* the training is over where that one was */
        if (is_left(m) && !m->live)
            return false;
        /* When the job ends all are leaving. */
        left += is_left(m) && (leader->stopping || (!m->leaving && !m->released));
    }
    return left > 0;
}

static void tell_torn(struct leader *leader, struct leader_member *m)
{
    json_object *msg = leader_message("torn", m->generation);

    json_object_object_add(msg, "reason", json_object_new_string(leader->change_reason));
    leader_send(m, msg);
}

static void tell_leave(struct leader_member *m, bool save)
{
    json_object *msg = leader_message("next", m->generation);
    json_object *next = json_object_new_object();

    json_object_object_add(next, "leave", json_object_new_boolean(true));
    json_object_object_add(next, "save", json_object_new_boolean(save));
    json_object_object_add(msg, "next", next);
    leader_send(m, msg);
}

/* It is not part of the torn world any more. */
static void drop(struct leader *leader, struct leader_member *m)
{
    m->position = -1;
    if (m->link != NULL && !m->drained)
        m->departing = leader_now(leader);
}

bool abort_world(struct leader *leader)
{
    bool ends = leader->stopping;
    int code = leader->stop_code;

    for (int i = 0; i < leader->member_count; i++)
        leader->members[i]->failed |= leader->members[i]->position >= 0 &&
                                      leader->members[i]->early > 0;
    if (!can_live_on(leader)) {
        leader->torn = false;
        return false;
    }
    if (leader->failed && !ends) {
        snprintf(leader->next_reason, sizeof(leader->next_reason), "%.255s", leader->failure);
        ends = !change_count_failure(leader);
        code = leader->failure_code;
    }
    if (leader->pause_from < 0)
        leader->pause_from = leader_now(leader);
    leader->failed = false;
    leader->fault = leader->torn = true;
    prepare_discard(leader); /* what was planned did not know of this */
    change_describe(leader, 0);
    log_debug("torn: %s", leader->change_reason);
    for (int i = 0; i < leader->member_count; i++) {
        struct leader_member *m = leader->members[i];

        m->awaited = false; /* nobody goes on to that step */
        if (m->position < 0)
            continue;
        if (is_left(m)) {
            tell_torn(leader, m);
            continue;
        }
        if (m->link != NULL)
            change_kill(leader, m);
        drop(leader, m);
    }
    store_end_world(leader, &leader->relay);
    leader_set_phase(leader, PHASE_WAITING, leader->options->policy->fault_wait + 0.1);
    if (ends)
        abort_end(leader, code); /* what those that are left have is not lost */
    else
        abort_form(leader);
    return true;
}

/* ---- a worker that ends with 0 before the others ------------------------------------------------------------------------ */

void abort_note_early(struct leader *leader, const struct leader_member *m)
{
    leader->failed = true;
    leader->failure_code = 1;
    leader->fatal = false;
    snprintf(leader->failure, sizeof(leader->failure),
             "a worker on %s has ended with status 0 while others still train", m->node);
    recovery_failed(leader->recovery, m->node, leader->world->node_count, leader_now(leader));
}

/* It may be the end of the training: a program may end in the midst of the last step, as long as all of it does. It is not if another has failed of an exchange
 * with it. */
void abort_if_early(struct leader *leader)
{
    const struct leader_member *early = NULL;
    bool asked = false;

    for (int i = 0; i < leader->member_count; i++) {
        const struct leader_member *m = leader->members[i];

        if (m->position >= 0 && m->early > 0)
            early = m;
        asked = asked || (is_left(m) && m->asks);
    }
    if (early == NULL || !asked || leader->failed ||
        (leader->phase != PHASE_RUNNING && leader->phase != PHASE_HOLDING &&
         leader->phase != PHASE_STARTING))
        return;
    abort_note_early(leader, early);
    change_torn(leader);
}

void abort_hear(struct leader *leader, struct leader_member *m, json_object *beat)
{
    int64_t generation;

    m->asks = json_get_bool(beat, "asks", false) &&
              json_get_int(beat, "gen", 0, INT32_MAX, &generation) &&
              generation == leader->generation;
    if (m->asks)
        abort_if_early(leader);
}

bool abort_ending(struct leader *leader)
{
    return is_ending(leader) && abort_world(leader);
}

/* ---- what follows ------------------------------------------------------------------------------------------------------ */

static bool others_have_state(const struct leader *leader, const struct leader_member *m)
{
    for (int i = 0; i < leader->member_count; i++)
        if (leader->members[i] != m && is_left(leader->members[i]) && leader->members[i]->stateful)
            return true;
    return false;
}

/* Slurm wants these nodes back, whether or not there will be another world. */
static void let_leave(struct leader *leader)
{
    for (int i = 0; i < leader->member_count; i++) {
        struct leader_member *m = leader->members[i];
        bool save;

        if (!is_left(m) || !m->leaving)
            continue;
        save = m->stateful && !others_have_state(leader, m);
        tell_leave(m, save);
        drop(leader, m);
        if (save)
            m->departing += longer(LEAVE_LIMIT, change_grace(leader));
    }
}

/* Seconds that the longest step may still take. */
static double rest_of_step(const struct leader *leader)
{
    uint32_t slowest = 0;

    for (int i = 0; i < leader->member_count; i++)
        if (is_left(leader->members[i]) && leader->members[i]->slowest > slowest)
            slowest = leader->members[i]->slowest;
    return OUT_FACTOR * slowest / 1000.0;
}

/* Seconds for workers that may be in the midst of something longer than any step before (an evaluation, say), where nobody is known to be lost, or nobody else
 * has the state: as long as they would have to reach a step and save. Shorter if the user wants to hear of hangs. */
static double patience(const struct leader *leader)
{
    const struct policy *policy = leader->options->policy;

    return policy->hang_wait > 0 ? policy->hang_wait : policy->grace;
}

/* Whatever has kept the loop until now (files are written before a world begins) is not the workers' time. */
static void await_all(struct leader *leader, double limit)
{
    uv_update_time(leader->loop);
    leader->out_due = leader_now(leader) + limit;
    leader_restart_deadline(leader, limit);
}

void abort_await_switch(struct leader *leader)
{
    if (leader->phase != PHASE_STARTING)
        return;
    leader->coming_out = true;
    await_all(leader, longer(SWITCH_LIMIT + rest_of_step(leader), patience(leader)));
}

static void enter(struct leader *leader)
{
    double limit = OUT_LIMIT + rest_of_step(leader);

    live_enter(leader, "next", 0);
    if (leader->phase != PHASE_STARTING)
        return;
    leader->coming_out = true;
    await_all(leader, limit < OUT_MAX ? limit : OUT_MAX);
}

void abort_form(struct leader *leader)
{
    double wait;

    if (!leader->torn || leader->phase != PHASE_WAITING || leader->assembling > 0 ||
        !lease_may_act(leader))
        return;
    if (leader->next.world != NULL && !prepare_usable(leader))
        prepare_discard(leader);
    if (leader->next.world == NULL && prepare_begin(leader) != 0) {
        let_leave(leader);
        return; /* whatever changes that is followed by another decision */
    }
    if (prepare_ready(leader)) {
        enter(leader);
        return;
    }
    let_leave(leader);
    if (prepare_done(leader, &wait))
        live_give_up(leader);
    else
        decide_later(leader, wait);
}

/* Those that the world still waits for have failed. Returns how many there are, and names them. */
static int fail_missing(struct leader *leader, char *names, size_t size)
{
    int missing = 0;
    size_t used = 0;

    names[0] = '\0';
    for (int i = 0; i < leader->member_count; i++) {
        struct leader_member *m = leader->members[i];

        if (!is_left(m) || m->answered)
            continue;
        m->failed = true;
        if (used < size)
            used += (size_t)snprintf(names + used, size - used, "%s%s", missing > 0 ? ", " : "",
                                     m->node);
        missing++;
    }
    return missing;
}

bool abort_late(struct leader *leader)
{
    double limit = OUT_LIMIT + rest_of_step(leader);
    char why[200], names[128];
    bool safe = false;

    if (!leader->coming_out)
        return false;
    /* Were we asleep ourselves? Then what they have said is still to be read. */
    if (leader_now(leader) - leader->out_due > OUT_LATE) {
        await_all(leader, OUT_LATE);
        return true;
    }
    for (int i = 0; i < leader->member_count; i++)
        safe = safe || (is_left(leader->members[i]) && leader->members[i]->answered &&
                        leader->members[i]->stateful);
    if (!safe && leader_now(leader) - leader->phase_since <
                     longer(longer(limit, OUT_MAX), patience(leader))) {
        await_all(leader, OUT_LIMIT);
        return true;
    }
    leader->coming_out = false;
    for (int i = 0; i < leader->member_count; i++) {
        if (!leader->members[i]->awaited)
            continue;
        change_leaver_gone(leader, leader->members[i]); /* what all others wait for */
        return true;
    }
    if (fail_missing(leader, names, sizeof(names)) == 0)
        return false;
    snprintf(why, sizeof(why), "workers on %s did not come out of the world before", names);
    change_fail(leader, why); /* so that it cannot go on for ever */
    return true;
}

bool abort_end(struct leader *leader, int code)
{
    bool saves = false;

    if (!leader->torn || leader->phase != PHASE_WAITING)
        return false;
    leader->stopping = true;
    leader->stop_code = code;
    prepare_discard(leader);
    for (int i = 0; i < leader->member_count; i++) {
        struct leader_member *m = leader->members[i];

        if (!is_left(m))
            continue;
        tell_leave(m, m->stateful && !saves);
        saves = saves || m->stateful;
    }
    change_drain(leader, saves ? rest_of_step(leader) + change_grace(leader) : LEAVE_LIMIT);
    return true;
}

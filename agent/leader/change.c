/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From one generation to the next, in restart mode.
 *
 *   RUNNING ──► HOLDING ──► DRAINING ──► RESERVING ──► STARTING ──► RUNNING
 *      │            (a member is lost, a worker fails)      ▲
 *      └────────────────────► DRAINING ─────────────────────┘        DRAINING ──► ENDING, WAITING
 *
 * HOLDING: every worker's next step boundary is barred and the step that it is committed to is reported. Once all have answered, the
 * highest becomes the step to run to; all park there with the event, save and leave (DRAINING). Each phase has a deadline: who does
 * not answer is killed or counts as lost, so that no phase can last. What happens meanwhile is taken into account when the next
 * world is formed, not before. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/leader/allocation.h"
#include "agent/leader/exclude.h"
#include "agent/leader/extensions.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/lease.h"
#include "agent/leader/pmix_publish.h"
#include "agent/leader/pmix_relay.h"
#include "agent/leader/report.h"
#include "agent/leader/requeue.h"
#include "agent/leader/roster.h"
#include "agent/leader/slurm_look.h"
#include "agent/leader/srun.h"
#include "agent/leader/world_store.h"
#include "client/event_page.h"
#include "common/log.h"
#include "lib/json_get.h"

#define HOLD_LIMIT    5.0 /* seconds for the answer to hold: memory operations only */
#define RESERVE_LIMIT 5.0
#define START_LIMIT   60.0 /* to execute all workers' commands (slow file systems) */
/* For survivors of a fault: they are stuck in a collective, SIGTERM is a courtesy. */
#define FAULT_GRACE  3.0
#define KILL_LIMIT   10.0 /* to reap what has been killed */
#define GRACE_MARGIN 2.0  /* seconds kept of Slurm's grace time for leaving */
#define FINISH_LIMIT 3.0
#define TERM_SETTLE  1.0 /* for the reason of a SIGTERM that nobody here has sent */

static bool takes_part(const struct leader_member *m)
{
    return m->position >= 0 && m->link != NULL;
}

/* notice: there is something worth saving, and workers who want to be told in their own way are. */
static void stop_member(struct leader *leader, struct leader_member *m, int signal, double grace,
                        bool notice)
{
    json_object *msg = leader_message("stop", m->generation);

    json_object_object_add(msg, "signal", json_object_new_int(signal));
    json_object_object_add(msg, "grace", json_object_new_double(grace));
    json_object_object_add(msg, "notice", json_object_new_boolean(notice));
    if (notice) {
        json_object_object_add(msg, "kind", json_object_new_string(leader->change_kind));
        json_object_object_add(msg, "reason", json_object_new_string(leader->change_reason));
    }
    leader_send(m, msg);
}

static void send_stop(struct leader *leader, int signal, double grace, bool notice)
{
    for (int i = 0; i < roster_count(leader); i++)
        if (takes_part(roster_at(leader, i)) && !roster_at(leader, i)->drained)
            stop_member(leader, roster_at(leader, i), signal, grace, notice);
}

void change_kill(struct leader *leader, struct leader_member *m)
{
    stop_member(leader, m, SIGKILL, 0, false);
}

double change_grace(struct leader *leader)
{
    double grace = leader->options->policy->grace;

    for (int i = 0; i < roster_count(leader); i++) {
        const struct leader_member *m = roster_at(leader, i);
        const struct extension *ext = m->leaving ? extensions_find(leader, m->job) : NULL;

        if (ext != NULL && ext->pool != NULL && ext->pool->grace > 0 &&
            ext->pool->grace - GRACE_MARGIN < grace)
            grace = ext->pool->grace - GRACE_MARGIN;
    }
    return grace < 1 ? 1 : grace;
}

/* A node that Slurm has been promised is given back as soon as nothing of ours needs it. */
void change_release_idle(struct leader *leader)
{
    for (int i = 0; i < roster_count(leader); i++) {
        struct leader_member *m = roster_at(leader, i);

        if (m->leaving && !m->base && !m->released && m->link != NULL && m->departing == 0 &&
            (m->position < 0 || m->drained))
            roster_release(leader, m, "left the world");
    }
}

/* ---- forming ----------------------------------------------------------------------------------------------------------- */

static void wait_for_members(struct leader *leader, const char *why)
{
    leader->promoted = false;
    prepare_discard(leader);
    world_destroy(leader->world);
    leader->world = NULL;
    for (int i = 0; i < roster_count(leader); i++)
        roster_at(leader, i)->position = -1;
    change_release_idle(leader);
    log_info("job %u: %s: waiting up to %d s for nodes", leader->options->job, why,
             leader->options->policy->fault_wait);
    leader_set_phase(leader, PHASE_WAITING, leader->options->policy->fault_wait + 0.1);
    decide_later(leader, 0);
}

/* The world that has ended because of a fault is to be as large again, but for nodes that Slurm or a cloud takes. */
static void replace_lost(struct leader *leader)
{
    leader->before_loss = 0;
    for (int i = 0; i < roster_count(leader); i++) {
        const struct leader_member *m = roster_at(leader, i);

        leader->before_loss += m->position >= 0 && !m->leaving && !m->released && !m->reclaimed;
    }
    leader->replace_until = leader->pause_from + leader->options->policy->fault_wait;
    if (leader->next.world != NULL && leader->next.world->node_count < leader->before_loss)
        prepare_discard(leader); /* it was planned without that */
}

/* Has the world ended because of a fault, or has one come while it ended? */
static bool faulty(const struct leader *leader)
{
    for (int i = 0; i < roster_count(leader); i++) {
        const struct leader_member *m = roster_at(leader, i);

        if (m->position >= 0 && m->torn && !m->leaving && !m->released)
            return true;
    }
    return leader->fault;
}

/* On all nodes: where one process says that it is at work, the next may not have begun. */
bool change_all_stepping(const struct leader *leader)
{
    for (int i = 0; i < roster_count(leader); i++)
        if (roster_at(leader, i)->position >= 0 && !roster_at(leader, i)->stepping)
            return false;
    return true;
}

/* What the change is called, and why it is made, as far as is known now. */
void change_describe(struct leader *leader, int size)
{
    int newcomers = 0, current = leader->world != NULL ? leader->world->node_count : 0;
    const char *kind = size > current ? "grow" : "shrink";

    for (int i = 0; i < roster_count(leader); i++)
        newcomers += roster_at(leader, i)->position < 0 && roster_at(leader, i)->link != NULL;
    if (leader->stopping)
        kind = "stop";
    else if (leader->generation == 0)
        kind = "start";
    else if (leader->fault || current == 0)
        kind = "fault";
    snprintf(leader->change_kind, sizeof(leader->change_kind), "%s", kind);
    if (leader->stopping)
        snprintf(leader->change_reason, sizeof(leader->change_reason), "%s", leader->stop_reason);
    else if (leader->generation == 0)
        snprintf(leader->change_reason, sizeof(leader->change_reason), "the job starts");
    else if (leader->next_reason[0] != '\0')
        snprintf(leader->change_reason, sizeof(leader->change_reason), "%s", leader->next_reason);
    else
        snprintf(leader->change_reason, sizeof(leader->change_reason), "%d node%s joined",
                 newcomers, newcomers == 1 ? "" : "s");
}

/* The members of the prepared world become those of the current one. */
static void take_places(struct leader *leader)
{
    for (int i = 0; i < roster_count(leader); i++) {
        struct leader_member *m = roster_at(leader, i);

        m->position = m->next_position;
        m->next_position = -1;
        if (m->position >= 0)
            m->generation = leader->generation;
        m->parked = m->drained = m->torn = m->begun = m->stepping = false;
        memset(&m->held, 0, sizeof(m->held));
        m->step = 0;
        m->told = m->completed = m->early = 0;
        m->asks = false;
    }
    leader->failed = leader->waited = leader->fault = leader->unprepared = leader->torn = false;
    leader->before_loss = 0;
}

/* What has been learnt since the world was planned, such as why Slurm wanted a node. */
void change_update_reason(struct leader *leader)
{
    char *reason;

    change_describe(leader, leader->next.world->node_count);
    reason = strdup(leader->change_reason);
    if (reason == NULL)
        return;
    free(leader->next.world->reason);
    leader->next.world->reason = reason;
}

bool change_enter_world(struct leader *leader)
{
    leader->next_reason[0] = '\0';
    slurm_look_taken(leader, 0);
    world_destroy(leader->world);
    leader->world = leader->next.world;
    leader->next.world = NULL;
    pmix_relay_end(leader, &leader->relay);
    leader->relay = leader->next.relay;
    leader->next.relay = (struct pmix_relay){0};
    leader->generation = leader->world->generation;
    leader->coming_out = false;
    take_places(leader);
    change_release_idle(leader);
    if (report_generation(leader) != 0) {
        change_finish(leader, 1);
        return false;
    }
    leader_set_phase(leader, PHASE_STARTING, START_LIMIT);
    leader->generation_since = leader_now(leader);
    return true;
}

/* The prepared world begins, with workers that are started for it. */
static void start_world(struct leader *leader)
{
    int attempt = leader->next.attempt;

    change_update_reason(leader);
    if (!change_enter_world(leader))
        return;
    for (int i = 0; i < roster_count(leader); i++) {
        json_object *start;

        if (!takes_part(roster_at(leader, i)))
            continue;
        roster_at(leader, i)->started = attempt;
        roster_at(leader, i)->stateful = roster_at(leader, i)->failed = false;
        roster_at(leader, i)->live = false; /* they have not said so yet */
        live_forget_newcomer(roster_at(leader, i));
        start = prepare_message("start", leader->world, roster_at(leader, i)->position, attempt);
        /* Workers that start only now wait at their gates, too, for rank 0 to pass first. */
        json_object_object_add(
            start, "gate", json_object_new_boolean(leader->gated && leader->options->early_start));
        leader_send(roster_at(leader, i), start);
    }
}

void change_form(struct leader *leader)
{
    if (leader->stopping) {
        change_finish(leader, leader->stop_code);
        return;
    }
    if (!lease_may_act(leader)) {
        if (leader->phase != PHASE_WAITING)
            wait_for_members(leader, "another node may lead now");
        return;
    }
    if (!prepare_usable(leader)) {
        int rc;

        prepare_discard(leader);
        rc = prepare_begin(leader);
        if (rc == -1)
            wait_for_members(leader,
                             leader->replaces ? "lost nodes are replaced first" : "below MIN");
        if (rc == -2) {
            log_error("job %u: out of memory", leader->options->job);
            change_finish(leader, 1);
        }
        if (rc < 0)
            return;
    }
    if (!leader->next.reserved)
        leader_set_phase(leader, PHASE_RESERVING, RESERVE_LIMIT);
    else if (!promote_first(leader))
        start_world(leader);
}

void change_ready(struct leader *leader, struct leader_member *m, json_object *msg)
{
    (void)msg;
    if (leader->phase != PHASE_STARTING)
        return;
    m->answered = true;
    for (int i = 0; i < roster_count(leader); i++)
        if (takes_part(roster_at(leader, i)) && !roster_at(leader, i)->answered)
            return;
    for (int i = 0; i < roster_count(leader); i++) {
        struct leader_member *each = roster_at(leader, i);

        if (each->awaited)
            each->departing = leader_now(leader); /* nobody waits for it any more */
        each->awaited = false;
    }
    leader_set_phase(leader, PHASE_RUNNING, 0);
    leader->ready_at = leader_now(leader);
    decide_later(leader, 0);
    if (leader->stopping)
        change_begin(leader);
}

/* Rank 0 listens: the others may connect. */
void change_listening(struct leader *leader, struct leader_member *first, json_object *msg)
{
    (void)msg;
    for (int i = 0; i < roster_count(leader); i++)
        if (takes_part(roster_at(leader, i)) && roster_at(leader, i) != first)
            leader_send(roster_at(leader, i), leader_message("open", leader->generation));
}

/* ---- draining ---------------------------------------------------------------------------------------------------------- */

void change_drain(struct leader *leader, double deadline)
{
    leader_set_phase(leader, PHASE_DRAINING, deadline);
}

/* Its workers wait, with their state, for the next world. Those that are leaving, one of them after saving, do not wait for each other. */
static bool is_torn(const struct leader *leader)
{
    return leader->torn && leader->phase == PHASE_WAITING;
}

void change_torn(struct leader *leader)
{
    if (abort_world(leader))
        return;
    if (leader->pause_from < 0)
        leader->pause_from = leader_now(leader);
    prepare_discard(leader); /* what was planned did not know of this */
    change_drain(leader, FAULT_GRACE + KILL_LIMIT);
    leader->killed = true; /* the members kill after the grace themselves */
    send_stop(leader, SIGTERM, FAULT_GRACE, false);
    world_store_end(leader, &leader->relay);
}

static bool lost_some(const struct leader *leader)
{
    for (int i = 0; i < roster_count(leader); i++)
        if (roster_at(leader, i)->position >= 0 &&
            (roster_at(leader, i)->link == NULL || roster_at(leader, i)->leaving))
            return true;
    return false;
}

bool change_count_failure(struct leader *leader)
{
    const struct budget *budget = &leader->options->policy->restarts;
    char text[32];

    leader->restarts++;
    report_root_cause(leader);
    if (leader->fatal)
        return false;
    if (exclude_count_failure(leader))
        return true;
    if (budget->restarts > 0)
        log_error("job %u: %d failures: giving up (--max-restarts=%s)", leader->options->job,
                  leader->restarts, budget_format(budget, text, sizeof(text)));
    requeue_after_fault(leader);
    return false;
}

/* All workers of the generation are gone. What now? */
static void drained(struct leader *leader)
{
    int told = 0, completed = 0;

    if (leader->torn &&
        leader->stopping) { /* what they have left behind is a checkpoint, not a result */
        change_finish(leader, leader->stop_code);
        return;
    }
    for (int i = 0; i < roster_count(leader); i++) {
        struct leader_member *m = roster_at(leader, i);

        if (m->position < 0)
            continue;
        told += m->told;
        completed += m->completed;
    }
    if (leader->failed && leader->failure_code == 128 + SIGTERM && !leader->waited &&
        !leader->stopping) {
        /* Slurm signals workers and agents at the same moment; ours may just be behind. */
        leader->waited = true;
        change_drain(leader, TERM_SETTLE);
        return;
    }
    if (leader->failed && !leader->stopping && !lost_some(leader)) {
        if (!change_count_failure(leader)) {
            change_finish(leader, leader->failure_code);
            return;
        }
        leader->fault = true;
        snprintf(leader->next_reason, sizeof(leader->next_reason), "%s", leader->failure);
    } else if (completed == world_size(leader->world) ||
               (completed > 0 && told == 0 && !leader->failed && !lost_some(leader))) {
        change_finish(leader, 0);
        return;
    }
    if (faulty(leader))
        replace_lost(leader);
    change_form(leader);
}

static void check_drained(struct leader *leader)
{
    if (leader->torn && leader->phase != PHASE_DRAINING)
        return; /* its workers live on */
    for (int i = 0; i < roster_count(leader); i++)
        if (takes_part(roster_at(leader, i)) && !roster_at(leader, i)->drained)
            return;
    if (leader->world != NULL)
        drained(leader);
}

/* One has ended with 0 in a world that is torn, or has been. If it had passed its last boundary before it was told, that is no failure. The others go on
 * without it. */
static void finished_when_torn(struct leader *leader, struct leader_member *m, int rank, bool early)
{
    m->failed = true; /* so far as there is nothing left of it */
    if (early && !leader->failed)
        abort_note_early(leader, m);
    snprintf(leader->next_reason, sizeof(leader->next_reason), "rank %d on %s has ended", rank,
             m->node);
    change_torn(leader);
}

static void handle_exit(struct leader *leader, struct leader_member *m, json_object *msg)
{
    int64_t code = 0, signal = 0, slot = 0, rank;
    bool told = json_get_bool(msg, "told", false), early = json_get_bool(msg, "early", false);

    json_get_int(msg, "code", 0, 255, &code);
    json_get_int(msg, "signal", 0, 255, &signal);
    json_get_int(msg, "slot", 0, m->slots - 1, &slot);
    rank = world_first_rank(leader->world, m->position) + slot;
    json_object_object_add(msg, "rank", json_object_new_int64(rank));
    output_end_rank(leader->output, (int)rank);
    pmix_publish_rank_gone(leader, (int)rank);
    log_debug("rank %d on %s ended: code %d, signal %d%s", (int)rank, m->node, (int)code,
              (int)signal, told ? ", told" : "");
    if (code == 0 && signal == 0 && !told &&
        (is_torn(leader) ||
         (leader->phase == PHASE_STARTING && leader->coming_out && !m->answered))) {
        finished_when_torn(leader, m, (int)rank, early);
        return;
    }
    if (code == 0 && signal == 0) {
        m->told += told;
        m->completed += !told;
        m->early += early;
        abort_if_early(leader);
        return;
    }
    m->told += told;
    if (told && (leader->killed || signal != 0 || code == 128 + SIGTERM))
        return; /* ended by us */
    m->failed = true;
    if (leader->failed)
        return; /* the first one is the cause */
    leader->failed = true;
    leader->failure_code = code != 0 ? (int)code : 128 + (int)signal;
    leader->fatal = signal == 0 && recovery_is_final((int)code);
    exclude_failed(leader, m);
    report_failure(leader, m, msg);
    if (leader->phase == PHASE_RUNNING || leader->phase == PHASE_HOLDING ||
        leader->phase == PHASE_STARTING || is_torn(leader))
        change_torn(leader);
    else
        abort_ending(leader);
}

void change_fail(struct leader *leader, const char *why)
{
    if (leader->failed || (leader->phase != PHASE_RUNNING && leader->phase != PHASE_HOLDING &&
                           leader->phase != PHASE_STARTING))
        return;
    leader->failed = true;
    leader->failure_code = 1;
    snprintf(leader->failure, sizeof(leader->failure), "%s", why);
    change_torn(leader);
}

/* ---- holding ----------------------------------------------------------------------------------------------------------- */

void change_begin(struct leader *leader)
{
    double grace = change_grace(leader);

    if (leader->stopping)
        allocation_stop(leader); /* before the workers are told to save: they may wait for that */
    for (int i = 0; i < roster_count(leader); i++)
        leader->fault = leader->fault ||
                        (roster_at(leader, i)->position >= 0 && roster_at(leader, i)->torn);
    /* They do not look at their pages while they form, and tearing them loses nothing. */
    leader->fault = leader->fault ||
                    (!leader->stopping && live_possible(leader) && !change_all_stepping(leader));
    if (prepare_usable(leader))
        leader->next_size = leader->next.world->node_count;
    change_describe(leader, leader->next_size);
    log_debug("change: %s: %s", leader->change_kind, leader->change_reason);
    leader->pause_from = -1;
    if (leader->fault) {
        change_torn(leader);
        check_drained(leader);
        return;
    }
    leader_set_phase(leader, PHASE_HOLDING, HOLD_LIMIT);
    leader->grace_until = leader_now(leader) + grace;
    for (int i = 0; i < roster_count(leader); i++) {
        struct leader_member *m = roster_at(leader, i);
        json_object *msg;

        if (!takes_part(m) || m->drained)
            continue;
        msg = leader_message("hold", leader->generation);
        json_object_object_add(msg, "kind", json_object_new_string(leader->change_kind));
        json_object_object_add(msg, "reason", json_object_new_string(leader->change_reason));
        json_object_object_add(msg, "nodes",
                               json_object_new_int(leader->stopping ? 0 : leader->next_size));
        json_object_object_add(msg, "deadline", json_object_new_double(grace));
        leader_send(m, msg);
    }
    if (leader->stopping || (leader->next.live && !prepare_ready(leader)))
        prepare_discard(leader);
    if (!leader->stopping && leader->next.world == NULL && prepare_early(leader))
        prepare_begin(leader); /* there was no time for it before */
}

static void run_to(struct leader *leader, uint64_t step)
{
    for (int i = 0; i < roster_count(leader); i++) {
        json_object *msg;

        if (!takes_part(roster_at(leader, i)))
            continue;
        msg = leader_message("run_to", leader->generation);
        json_object_object_add(msg, "step", json_object_new_int64((int64_t)step));
        leader_send(roster_at(leader, i), msg);
    }
}

/* Every member has said where its workers are. */
static void agree(struct leader *leader)
{
    struct workers_held_sum sum = {0};
    double left = leader->grace_until - leader_now(leader);
    int signal = leader->options->policy->signal > 0 ? leader->options->policy->signal : SIGTERM;

    for (int i = 0; i < roster_count(leader); i++) {
        const struct leader_member *m = roster_at(leader, i);

        if (m->position >= 0)
            sum.finished += m->completed;
        if (!takes_part(m))
            continue;
        sum.attached += m->held.attached;
        sum.training += m->held.training;
        sum.running += m->held.running;
        sum.finished += m->held.through;
        if (m->held.running > 0 && m->held.step > sum.step)
            sum.step = m->held.step;
    }
    leader->pause_from = leader_now(leader);
    if (sum.finished == 0 && sum.running > 0 && live_switch(leader, sum.step))
        return;
    change_drain(leader, left > 1 ? left : 1);
    if (sum.running == 0) {
        check_drained(leader);
    } else if (sum.finished > 0) {
        /* Some are through, and so the others are about to be: a world that ends is not changed any more. */
        run_to(leader, EVENT_STEP_MASK);
    } else if (sum.training == 0 || (sum.step == 0 && sum.attached < sum.running)) {
        /* No worker has finished a step that our library knows of (while some are still starting, none can have), or knows our
         * library at all: the script's own checkpoint is what the next world starts from. */
        send_stop(leader, signal, left > 1 ? left : 1, true);
    } else {
        run_to(leader, sum.step);
    }
}

static void agree_if_answered(struct leader *leader)
{
    for (int i = 0; i < roster_count(leader); i++)
        if (takes_part(roster_at(leader, i)) && !roster_at(leader, i)->answered &&
            !roster_at(leader, i)->drained)
            return;
    agree(leader);
}

void change_held(struct leader *leader, struct leader_member *m, json_object *msg)
{
    int64_t attached = 0, training = 0, running = 0, through = 0, step = 0;

    if (leader->phase != PHASE_HOLDING || m->answered)
        return;
    json_get_int(msg, "attached", 0, INT32_MAX, &attached);
    json_get_int(msg, "training", 0, INT32_MAX, &training);
    json_get_int(msg, "running", 0, INT32_MAX, &running);
    json_get_int(msg, "through", 0, INT32_MAX, &through);
    json_get_int(msg, "step", 0, INT64_MAX, &step);
    m->answered = true;
    m->held = (struct workers_held_sum){.attached = (int)attached,
                                        .training = (int)training,
                                        .running = (int)running,
                                        .through = (int)through,
                                        .step = (uint64_t)step};
    agree_if_answered(leader);
}

/* In the next two, the member's workers may be on their way out of a world that goes on: live.c comes
 * first. */
void change_exit(struct leader *leader, struct leader_member *m, json_object *msg)
{
    if (live_is_departing(m))
        live_exit(leader, m, msg);
    else
        handle_exit(leader, m, msg);
}

void change_drained(struct leader *leader, struct leader_member *m, json_object *msg)
{
    if (live_is_departing(m)) {
        live_drained(leader, m);
        return;
    }
    m->drained = true;
    decide_later(leader, 0);
    change_release_idle(leader);
    if (leader->phase == PHASE_RUNNING || leader->phase == PHASE_DRAINING ||
        leader->phase == PHASE_STARTING)
        check_drained(leader);
    else if (leader->phase == PHASE_HOLDING && !m->answered)
        change_held(leader, m, msg); /* it ended before the hold reached it */
}

void change_begun(struct leader *leader, struct leader_member *m, json_object *msg)
{
    (void)msg;
    log_debug("%s: its workers are there", m->node);
    m->begun = true;
    decide_later(leader, 0);
}

void change_stepping(struct leader *leader, struct leader_member *m, json_object *msg)
{
    m->begun = m->stepping = m->stateful = true;
    live_note(m, msg);
    live_require(leader, m);
    leader->gated = json_get_bool(msg, "gate", false);
    report_stepping(leader, json_get_bool(msg, "aware", true));
    decide_later(leader, 0);
}

/* ---- what happens meanwhile -------------------------------------------------------------------------------------------- */

/* Does the phase last because of this member? */
static bool waited_for(const struct leader *leader, const struct leader_member *m)
{
    if (leader->phase == PHASE_RESERVING)
        return m->next_position == 0 && m->link != NULL;
    return takes_part(m) && !m->drained && (leader->phase == PHASE_DRAINING || !m->answered);
}

static void lose_silent(struct leader *leader, const char *why)
{
    for (int i = roster_count(leader) - 1; i >= 0; i--) {
        struct leader_member *m = roster_at(leader, i);

        if (!waited_for(leader, m))
            continue;
        roster_lose(leader, m, why);
        return; /* the list and the phase may have changed */
    }
}

void change_deadline(struct leader *leader)
{
    switch (leader->phase) {
    case PHASE_HOLDING:
        lose_silent(leader, "no answer to hold");
        break;
    case PHASE_DRAINING:
        if (leader->waited) {
            check_drained(leader);
        } else if (!leader->killed) {
            log_info("job %u: workers did not leave within the grace time: killed",
                     leader->options->job);
            leader->killed = true;
            send_stop(leader, SIGKILL, 0, false);
            leader_restart_deadline(leader, KILL_LIMIT);
        } else {
            leader_restart_deadline(leader, KILL_LIMIT);
            lose_silent(leader, "its workers could not be killed");
        }
        break;
    case PHASE_RESERVING:
        if (leader->next.world == NULL)
            change_form(leader); /* it has been given up meanwhile: nobody is waited for */
        else
            lose_silent(leader, "no port for MASTER_PORT");
        break;
    case PHASE_STARTING:
        if (abort_late(leader))
            break;
        leader_restart_deadline(leader, RESERVE_LIMIT);
        lose_silent(leader, "workers could not be started in time");
        break;
    default:
        break;
    }
}

void change_leaver_gone(struct leader *leader, struct leader_member *m)
{
    if (!m->awaited || leader->phase != PHASE_STARTING)
        return;
    m->awaited = false;
    snprintf(leader->next_reason, sizeof(leader->next_reason),
             "node %s was lost before its last step", m->node);
    leader->fault = true;
    change_torn(leader);
    check_drained(leader);
}

void change_member_gone(struct leader *leader, struct leader_member *m)
{
    if (leader->phase == PHASE_RESERVING) {
        if (m->next_position >= 0)
            change_form(leader);
        return;
    }
    if (m->position < 0) {
        change_leaver_gone(leader, m);
        return;
    }
    if (is_torn(leader)) {
        change_torn(leader);
        check_drained(leader);
        return;
    }
    if (!m->torn && leader->phase == PHASE_HOLDING) {
        agree_if_answered(leader);
        return;
    }
    if ((!m->torn || leader->torn || abort_ending(leader)) && leader->phase == PHASE_DRAINING) {
        check_drained(leader);
        return;
    }
    switch (leader->phase) {
    case PHASE_HOLDING:
    case PHASE_STARTING:
        leader->fault = true;
        change_torn(leader);
        check_drained(leader);
        break;
    case PHASE_DRAINING:
        if (!leader->killed) {
            leader->killed = true;
            send_stop(leader, SIGTERM, FAULT_GRACE, false);
            world_store_end(leader, &leader->relay);
            leader_restart_deadline(leader, FAULT_GRACE + KILL_LIMIT);
        }
        check_drained(leader);
        break;
    default:
        break; /* RUNNING: the next decision sees it */
    }
}

void change_stop_job(struct leader *leader, const char *reason)
{
    leader->told_to_stop = true;
    if (leader->finish_due)
        change_finish(leader, leader->finish_code);
    if (leader->stopping || leader->phase == PHASE_ENDING)
        return;
    leader->stopping = true;
    snprintf(leader->stop_reason, sizeof(leader->stop_reason), "%s", reason);
    log_info("job %u: told to end (%s): saving", leader->options->job, reason);
    if (leader->phase == PHASE_RUNNING)
        change_begin(leader);
    else if (!abort_end(leader, 128 + SIGTERM) &&
             (leader->phase == PHASE_WAITING || leader->phase == PHASE_RESERVING))
        change_finish(leader, 128 + SIGTERM);
    /* else: DRAINING ends in change_form, STARTING in handle_ready; both look at stopping */
}

void change_dismiss(struct leader *leader)
{
    for (int i = 0; i < roster_count(leader); i++) {
        struct leader_member *m = roster_at(leader, i);
        json_object *msg = leader_message("finish", -1);

        json_object_object_add(msg, "code", json_object_new_int(m->base ? leader->exit_code : 0));
        json_object_object_add(msg, "well", json_object_new_boolean(leader->exit_code == 0));
        leader_send(m, msg);
    }
    leader_handle_closed(leader);
}

void change_finish(struct leader *leader, int code)
{
    if (leader->phase == PHASE_ENDING)
        return;
    leader->finish_due = !leader->told_to_stop && !lease_may_act(leader);
    leader->finish_code = code;
    if (leader->finish_due)
        return;
    prepare_discard(leader);
    leader->exit_code = code;
    srun_end(leader);
    leader_set_phase(leader, PHASE_ENDING, FINISH_LIMIT);
    report_end(leader);
    extensions_cancel_all(leader);
    if (!requeue_instead(leader))
        change_dismiss(leader);
}

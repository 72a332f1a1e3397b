/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Live mode: from one world to the next without an end of the workers that stay (doc/live.md).
 *
 *   newcomers: prepare ──► warm ─────────────────────────────┐
 *   the others:             HOLDING ──► run_to S, next world ─┴──► STARTING ──► RUNNING
 *
 * A newcomer's workers are started once, wait at their gates, and are told their place when their world begins: a change of plans does not
 * cost them their start. All others learn of the next world with the step after which it begins. */
#include <stdio.h>
#include <string.h>

#include "agent/leader/leader_internal.h"
#include "common/log.h"
#include "lib/json_get.h"

/* Seconds until workers are started again on a node of the base where they have failed. */
#define SHUN         10.0
#define DEPART_LIMIT 10.0 /* seconds for workers that leave a world that goes on */

bool live_possible(const struct leader *leader)
{
    int there = 0;

    if (leader->options->mode == MODE_RESTART || leader->world == NULL || leader->stopping ||
        leader->fault || leader->failed ||
        (leader->phase != PHASE_RUNNING && leader->phase != PHASE_HOLDING))
        return false;
    for (int i = 0; i < leader->member_count; i++) {
        const struct leader_member *m = leader->members[i];

        if (m->position < 0)
            continue;
        if (m->link == NULL || !m->live || m->drained)
            return false;
        there++;
    }
    return there == leader->world->node_count;
}

void live_note(struct leader_member *m, json_object *msg)
{
    m->live = json_get_bool(msg, "live", false);
    if (!json_get_int(msg, "shape", 0, INT64_MAX, &m->signature))
        m->signature = 0;
}

void live_require(struct leader *leader, const struct leader_member *m)
{
    char why[256];

    if (leader->options->mode != MODE_LIVE || m->live)
        return;
    snprintf(
        why, sizeof(why),
        "--mode=live: workers on %s have begun without slurm_elastic.live or elastic_live(), and "
        "would be started anew at each change; --mode=auto allows that",
        m->node);
    leader->fatal = true;
    change_fail(leader, why);
}

/* Would its workers' first step be that of another model? Then they end while the world forms, and that with them. */
static bool fits(const struct leader *leader, const struct leader_member *newcomer)
{
    for (int i = 0; i < leader->member_count; i++) {
        const struct leader_member *m = leader->members[i];

        if (m->position >= 0 && m->signature != 0 && m->signature != newcomer->signature)
            return false;
    }
    return true;
}

static json_object *live_message(const char *type, const struct leader *leader, int position)
{
    json_object *msg = prepare_message(type, leader->next.world, position, leader->next.attempt);

    json_object_object_add(msg, "live", json_object_new_boolean(true));
    return msg;
}

void live_prepare(struct leader *leader)
{
    /* Nobody meets there: the agents serve a store. */
    leader->next.world->master_port = leader->world->master_port;
    leader->next.reserved = true;
    for (int i = 0; i < leader->member_count; i++) {
        struct leader_member *m = leader->members[i];

        if (m->next_position < 0 || m->position >= 0 || m->warm || m->warming != 0)
            continue;
        m->warming = leader->next.attempt;
        leader_send(m, live_message("prepare", leader, m->next_position));
    }
}

/* It has cost the world nothing, and is not to be tried again at once. */
static void refuse_newcomer(struct leader *leader, struct leader_member *m, const char *why)
{
    snprintf(leader->newcomer_error, sizeof(leader->newcomer_error),
             "%s: its workers were not let in: %s", m->node, why);
    log_error("job %u: %s", leader->options->job, leader->newcomer_error);
    live_forget_newcomer(m);
    leader_setback(leader);
    if (!m->base) {
        roster_release(leader, m, why);
        return;
    }
    m->shunned_until = leader_now(leader) + SHUN;
    decide_later(leader, SHUN);
}

void live_give_up(struct leader *leader)
{
    char why[96];

    snprintf(why, sizeof(why), "they did not come to their gates in %d s (newcomer_timeout)",
             leader->options->conf->newcomer_timeout);
    for (int i = leader->member_count - 1; i >= 0; i--) {
        struct leader_member *m = leader->members[i];

        if (m->next_position >= 0 && m->position < 0 && !m->warm)
            refuse_newcomer(leader, m, why);
        if (i > leader->member_count)
            i = leader->member_count;
    }
    prepare_discard(leader);
    decide_later(leader, 0);
}

bool live_on_message(struct leader *leader, struct leader_member *m, const char *type,
                     json_object *msg)
{
    const char *why = json_get_string(msg, "reason");
    int64_t attempt;

    if (m->warming == 0 || !json_get_int(msg, "attempt", 1, INT32_MAX, &attempt) ||
        attempt != m->warming)
        return false;
    if (strcmp(type, "parked") == 0) {
        live_note(m, msg);
        m->warm = m->live && fits(leader, m);
        if (m->warm) {
            decide_later(leader, 0);
            return true;
        }
        why = m->live ? "what they train is not what the others train: other parameters, buffers, "
                        "optimizers, data or global batch (which must not depend on WORLD_SIZE)"
                      : "they are not live, as the others are";
    }
    refuse_newcomer(leader, m, why != NULL ? why : "?");
    prepare_again(leader);
    decide_later(leader, 0);
    return true;
}

void live_forget_newcomer(struct leader_member *m)
{
    m->warm = false;
    m->warming = 0;
}

static json_object *next_of(const struct leader *leader, const struct leader_member *m)
{
    json_object *next;

    if (m->next_position >= 0)
        return live_message("next", leader, m->next_position);
    next = json_object_new_object();
    json_object_object_add(next, "leave", json_object_new_boolean(true));
    return next;
}

void live_enter(struct leader *leader, const char *type, uint64_t step)
{
    double now = leader_now(leader);

    change_update_reason(leader);
    for (int i = 0; i < leader->member_count; i++) {
        struct leader_member *m = leader->members[i];
        json_object *msg;

        if (m->position < 0)
            continue;
        msg = leader_message(type, m->generation);
        if (step != 0)
            json_object_object_add(msg, "step", json_object_new_int64((int64_t)step));
        json_object_object_add(msg, "next", next_of(leader, m));
        leader_send(m, msg);
        m->departing = m->next_position < 0 ? now : 0;
        m->awaited = m->next_position < 0 && step != 0;
    }
    for (int i = 0; i < leader->member_count; i++) {
        struct leader_member *m = leader->members[i];
        json_object *msg;

        if (m->next_position < 0 || m->position >= 0)
            continue;
        msg = live_message("start", leader, m->next_position);
        json_object_object_add(msg, "started", json_object_new_int(m->warming));
        leader_send(m, msg);
        m->started = m->warming;
        m->stateful = m->failed = false;
        live_forget_newcomer(m);
    }
    change_enter_world(leader);
}

bool live_switch(struct leader *leader, uint64_t step)
{
    if (!live_possible(leader) || leader->next.world == NULL || !leader->next.live ||
        !prepare_usable(leader) || !prepare_ready(leader))
        return false;
    live_enter(leader, "run_to", step);
    abort_await_switch(leader);
    return true;
}

static void departed(struct leader *leader, struct leader_member *m)
{
    m->departing = 0;
    m->awaited = false;
    change_release_idle(leader);
    decide_later(leader, 0);
}

bool live_departed(struct leader *leader, struct leader_member *m, const char *type,
                   json_object *msg)
{
    int64_t signal;

    if (m->departing == 0 || m->position >= 0)
        return false;
    if (m->was_in != NULL && (strcmp(type, "exit") == 0 || strcmp(type, "drained") == 0)) {
        /* Under the leader before this one; it is still being seen who is left. The others of its node end, too. */
        log_info("job %u: a worker on %s has ended meanwhile", leader->options->job, m->node);
        world_destroy(m->was_in);
        m->was_in = NULL;
        m->live = m->stateful = false;
        change_kill(leader, m);
    }
    if (strcmp(type, "exit") == 0 &&
        (!json_get_bool(msg, "told", false) || json_get_int(msg, "signal", 1, 255, &signal)))
        change_leaver_gone(leader, m); /* it has not come to that step */
    if (strcmp(type, "drained") == 0)
        departed(leader, m);
    return true;
}

void live_watch(struct leader *leader)
{
    for (int i = 0; i < leader->member_count; i++) {
        struct leader_member *m = leader->members[i];

        if (m->departing == 0 || m->awaited || leader_now(leader) - m->departing < DEPART_LIMIT)
            continue;
        departed(leader, m);
        return; /* the list may have changed */
    }
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The next world, made ready beside the one that trains.
 *
 * Importing a framework takes seconds, a change of worlds a tenth of one. So the workers of the next world are started early, with their
 * final environment, and wait at a gate (client/elastic.h) until the old world has saved and left:
 *
 *   chosen ──► reserved ──► prepare sent ──► all parked ──► hold, drain, start     a change that can wait
 *   hold   ──► chosen, reserved, prepare sent, while the old workers save          a node that has to leave
 *
 * Only for a script that is known to wait at a gate: another might read its checkpoint too early. Nothing depends on a preparation: it is
 * given up when a member of it goes, says that it cannot, or when something else is planned; then workers start when the old have left. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/leader/leader_internal.h"
#include "agent/leader/pmix_relay.h"
#include "agent/leader/roster.h"
#include "common/log.h"
#include "lib/json_get.h"

#define TOGETHER 3.0 /* seconds in which nodes that come one after the other are one change */

static struct world *build_world(struct leader *leader, const int *order, int size)
{
    struct world *world = world_create(
        (leader->generation > 0 ? leader->generation : leader->last_generation) + 1, size);
    const struct leader_member *first = roster_by_id(leader, order[0]);

    if (world == NULL)
        return NULL;
    for (int i = 0; i < size; i++) {
        const struct leader_member *m = roster_by_id(leader, order[i]);

        if (world_set_node(world, i, m->node, m->slots) != 0) {
            world_destroy(world);
            return NULL;
        }
    }
    /* The leader's own: its address is the one that members came by. */
    world->master_addr = strdup(first->base && first->nodeid == leader->options->nodeid
                                    ? leader->options->address
                                    : link_peer_address(first->link));
    world->kind = strdup(leader->change_kind);
    world->reason = strdup(leader->change_reason);
    world->restarts = leader->restarts;
    return world;
}

json_object *prepare_message(const char *type, const struct world *world, int index, int attempt)
{
    json_object *msg = world_to_json(world);

    json_object_object_add(msg, "t", json_object_new_string(type));
    json_object_object_add(msg, "node_index", json_object_new_int(index));
    json_object_object_add(msg, "attempt", json_object_new_int(attempt));
    return msg;
}

/* The members' places in it; the others have none. */
static void give_places(struct leader *leader, const int *order, int size)
{
    for (int i = 0; i < roster_count(leader); i++) {
        struct leader_member *m = roster_at(leader, i);

        m->parked = false;
        m->next_position = -1;
        for (int k = 0; k < size; k++)
            if (order[k] == m->id)
                m->next_position = k;
    }
}

static struct leader_member *first_member(struct leader *leader)
{
    for (int i = 0; i < roster_count(leader); i++)
        if (roster_at(leader, i)->next_position == 0)
            return roster_at(leader, i);
    return NULL;
}

static json_object *attempt_message(const struct leader *leader, const char *type)
{
    json_object *msg = leader_message(type, leader->next.world->generation);

    json_object_object_add(msg, "attempt", json_object_new_int(leader->next.attempt));
    return msg;
}

/* The members of the next world. -1: there is none. */
static int choose(struct leader *leader, bool only_warm, int **order, int *size)
{
    int rc;

    leader->only_warm = only_warm;
    rc = decide_plan(leader, order, size);
    leader->only_warm = false;
    if (rc == 0 && *size > 0)
        return 0;
    free(*order);
    *order = NULL;
    return -1;
}

/* Does somebody leave the present world for that one? */
static bool lets_go(const struct leader *leader, const int *order, int size)
{
    for (int i = 0; i < roster_count(leader); i++)
        if (decide_drops(roster_at(leader, i), order, size))
            return true;
    return false;
}

bool prepare_warm_suffice(struct leader *leader)
{
    int *order = NULL, size, next_size = leader->next_size;
    bool suffice = choose(leader, true, &order, &size) == 0 && lets_go(leader, order, size);

    leader->next_size = next_size;
    free(order);
    return suffice;
}

int prepare_begin(struct leader *leader)
{
    int *order = NULL, size = 0;
    bool live = live_possible(leader) || leader->torn;

    /* Who waits with its state does not wait for newcomers, unless it has to. */
    if (choose(leader, live && (leader->phase == PHASE_HOLDING || leader->torn), &order, &size) !=
            0 &&
        (!leader->torn || choose(leader, false, &order, &size) != 0))
        return -1;
    change_describe(leader, size);
    leader->next = (struct preparation){
        .world = build_world(leader, order, size),
        .attempt = ++leader->attempts,
        .since = leader_now(leader),
        .live = live,
    };
    if (leader->next.world != NULL &&
        pmix_relay_begin(leader, &leader->next.relay, leader->next.world, leader->next.attempt) !=
            0) {
        world_destroy(leader->next.world);
        leader->next.world = NULL;
    }
    give_places(leader, order, leader->next.world != NULL ? size : 0);
    free(order);
    if (leader->next.world == NULL)
        return -2;
    if (live) {
        live_prepare(leader);
        return 0;
    }
    leader_send(first_member(leader), attempt_message(leader, "reserve"));
    return 0;
}

void prepare_discard(struct leader *leader)
{
    if (leader->next.world == NULL)
        return;
    for (int i = 0; i < roster_count(leader); i++) {
        struct leader_member *m = roster_at(leader, i);

        if (m->next_position >= 0 && leader->next.reserved && !leader->next.live)
            leader_send(m, attempt_message(leader, "discard"));
        m->next_position = -1;
    }
    world_destroy(leader->next.world);
    leader->next.world = NULL;
    pmix_relay_end(leader, &leader->next.relay);
}

bool prepare_early(const struct leader *leader)
{
    return live_possible(leader) ||
           (leader->gated && !leader->unprepared && leader->options->early_start);
}

bool prepare_usable(const struct leader *leader)
{
    int usable = 0;

    for (int i = 0; i < roster_count(leader); i++) {
        const struct leader_member *m = roster_at(leader, i);

        usable += m->next_position >= 0 && m->link != NULL && !m->leaving && !m->released &&
                  leader_now(leader) >= m->shunned_until;
    }
    return leader->next.world != NULL && usable == leader->next.world->node_count;
}

void prepare_widen(struct leader *leader, int size)
{
    double since = leader->next.since;

    if (leader->next.world == NULL || !leader->next.live ||
        size <= leader->next.world->node_count || leader_now(leader) > since + TOGETHER)
        return;
    prepare_discard(leader); /* those that are starting start on */
    if (prepare_begin(leader) == 0)
        leader->next.since = since;
}

void prepare_again(struct leader *leader)
{
    if (leader->next.world == NULL || prepare_usable(leader))
        return;
    prepare_discard(leader);
    if ((leader->phase == PHASE_HOLDING || leader->phase == PHASE_DRAINING) && !leader->stopping &&
        prepare_early(leader))
        prepare_begin(leader);
}

/* Nothing of the next world has to be waited for on its node. In live mode those that stay are not started. */
static bool is_ready(const struct leader *leader, const struct leader_member *m)
{
    return leader->next.live ? m->position >= 0 || m->warm : m->parked;
}

bool prepare_ready(const struct leader *leader)
{
    bool ready = leader->next.reserved;

    for (int i = 0; i < roster_count(leader); i++)
        ready = ready &&
                (roster_at(leader, i)->next_position < 0 || is_ready(leader, roster_at(leader, i)));
    return ready;
}

bool prepare_done(const struct leader *leader, double *wait)
{
    *wait = leader->next.since + leader->options->conf->newcomer_timeout - leader_now(leader);
    return prepare_ready(leader) || *wait <= 0;
}

const char *prepare_text(const struct leader *leader, char *text, size_t size)
{
    int nodes = 0, parked = 0;

    for (int i = 0; i < roster_count(leader); i++) {
        nodes += roster_at(leader, i)->next_position >= 0;
        parked += roster_at(leader, i)->next_position >= 0 &&
                  is_ready(leader, roster_at(leader, i));
    }
    text[0] = '\0';
    if (leader->next.world != NULL)
        snprintf(text, size, "%d node%s: workers start, %d of %d nodes ready", nodes,
                 nodes == 1 ? "" : "s", parked, nodes);
    return text;
}

bool prepare_is_of(const struct leader *leader, const struct leader_member *m, json_object *msg)
{
    int64_t attempt;

    return leader->next.world != NULL && m->next_position >= 0 &&
           json_get_int(msg, "attempt", 0, INT32_MAX, &attempt) && attempt == leader->next.attempt;
}

/* In the next three, a message may be of a newcomer to a live world, whose attempt may be that of the
 * next world, too: live.c comes first. */
void prepare_reserved(struct leader *leader, struct leader_member *m, json_object *msg)
{
    int64_t port;

    if (live_is_newcomer(m, msg)) {
        live_unprepared(leader, m, msg); /* it was not asked for a port */
        return;
    }
    if (leader->next.reserved || m->next_position != 0 ||
        !json_get_int(msg, "port", 1, 65535, &port))
        return;
    leader->next.world->master_port = (int)port;
    leader->next.reserved = true;
    if (leader->phase == PHASE_RESERVING) {
        change_form(leader);
        return;
    }
    for (int i = 0; i < roster_count(leader); i++) {
        struct leader_member *each = roster_at(leader, i);

        if (each->next_position < 0)
            continue;
        live_forget_newcomer(each); /* its agent ends those workers for these */
        leader_send(each, prepare_message("prepare", leader->next.world, each->next_position,
                                          leader->next.attempt));
    }
}

void prepare_parked(struct leader *leader, struct leader_member *m, json_object *msg)
{
    if (live_is_newcomer(m, msg)) {
        live_parked(leader, m, msg);
        return;
    }
    m->parked = true;
    decide_later(leader, 0);
}

void prepare_unprepared(struct leader *leader, struct leader_member *m, json_object *msg)
{
    const char *reason = json_get_string(msg, "reason");

    if (live_is_newcomer(m, msg)) {
        live_unprepared(leader, m, msg);
        return;
    }
    if (!leader->cold_said)
        log_info("job %u: the next workers are not started early on %s: %s", leader->options->job,
                 m->node, reason != NULL ? reason : "?");
    leader->cold_said = leader->unprepared = true;
    prepare_discard(leader);
    decide_later(leader, 0);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The first moments of a leader that follows another one (doc/takeover.md).
 *
 *   voters join, and say what they have ──► the world that was, torn ──► abort_form()      live workers that wait with their state
 *                                       └─► no world ──► change_form()                    all others, from the newest checkpoint
 *
 * The node that led was part of every world, so there is none that could go on as it is. */
#include <stdio.h>
#include <string.h>

#include "agent/leader/leader_internal.h"
#include "common/log.h"
#include "lib/json_get.h"

#define ASSEMBLE_MAX 2.0 /* seconds for all that are left to join … */
#define ASSEMBLE_MIN 0.5 /* … of whom extensions count if they were in the torn world */

void takeover_begin(struct leader *leader)
{
    const struct leader_options *o = leader->options;

    leader->assembling = leader_now(leader) + ASSEMBLE_MAX;
    leader->attempts = (o->term & 0x3ff) << 20; /* no number is given twice */
    leader->lease.term = o->term;
    leader->unsealed = true;
    leader->restarts = o->handover.faults;
    recovery_inherit(leader->recovery, o->handover.counted, leader_now(leader));
    if (o->handover.target > 0)
        leader->target = o->handover.target;
    leader->pause_from = leader_now(leader);
    snprintf(leader->next_reason, sizeof(leader->next_reason), "the leading node was lost");
    srun_lost_look(leader, false);
    log_info("job %u: the leading node is lost: %s leads now (term %d)", o->job, o->node, o->term);
}

bool takeover_joined(struct leader *leader, struct leader_member *m, json_object *join)
{
    json_object *said = NULL;
    struct error err = {""};
    int64_t number;

    if (leader->assembling > 0 && json_get_int(join, "gen", 0, INT32_MAX - 1, &number)) {
        m->last_world = (int)number;
        if (number > leader->generation)
            leader->generation = (int)number;
    }
    if (leader->assembling > 0 && json_get_int(join, "completed", 1, INT32_MAX, &number))
        m->completed_world = (int)number;
    if (!json_object_object_get_ex(join, "group", &said) ||
        !json_get_int(said, "started", 1, INT32_MAX, &number))
        return false;
    m->started = (int)number;
    m->departing = leader_now(leader);
    if (leader->assembling == 0 || !json_get_bool(said, "live", false) ||
        leader->options->mode == MODE_RESTART)
        return false;
    m->was_in = world_from_json(said, &err);
    if (m->was_in == NULL)
        return false;
    m->generation = m->was_in->generation;
    m->live = true;
    m->stateful = json_get_bool(said, "stateful", false);
    if (json_get_int(said, "shape", 0, INT64_MAX, &number))
        m->signature = number;
    if (json_get_int(said, "slowest", 0, UINT32_MAX, &number))
        m->slowest = (uint32_t)number;
    return true;
}

static int place_in(const struct world *world, const struct leader_member *m)
{
    for (int i = 0; i < world->node_count; i++)
        if (strcmp(world->nodes[i].name, m->node) == 0 && world->nodes[i].slots == m->slots)
            return i;
    return -1;
}

/* Who was in the newest world that any of them was in: they may differ by one. NULL: none was in any. */
static struct leader_member *find_newest(const struct leader *leader)
{
    struct leader_member *newest = NULL;

    for (int i = 0; i < leader->member_count; i++) {
        struct leader_member *m = leader->members[i];

        if (m->was_in != NULL && m->link != NULL &&
            (newest == NULL || m->was_in->generation > newest->was_in->generation))
            newest = m;
    }
    return newest;
}

/* Nodes of that world, but for the one that led, that have not joined. */
static int count_missing(const struct leader *leader)
{
    const struct leader_member *newest = find_newest(leader);
    int missing = newest != NULL ? newest->was_in->node_count - 1 : 0;

    for (int i = 0; newest != NULL && i < leader->member_count; i++)
        missing -= leader->members[i]->link != NULL &&
                   place_in(newest->was_in, leader->members[i]) >= 0;
    return missing;
}

static struct world *take_newest(struct leader *leader)
{
    struct leader_member *newest = find_newest(leader);
    struct world *world;

    if (newest == NULL)
        return NULL;
    world = newest->was_in;
    newest->was_in = NULL;
    newest->position = place_in(world, newest);
    return world;
}

/* Have all that are left trained to the end of that world? Then it was the end of the training; some: the newest checkpoint is what counts. */
static int count_completed(const struct leader *leader, int *there)
{
    int completed = 0;

    *there = 0;
    for (int i = 0; i < leader->member_count; i++) {
        const struct leader_member *m = leader->members[i];

        if (m->link == NULL || leader->generation == 0 ||
            (m->was_in == NULL && m->last_world != leader->generation))
            continue;
        ++*there;
        completed += m->completed_world == leader->generation;
    }
    return completed;
}

static void give_places(struct leader *leader)
{
    leader->world = take_newest(leader);
    for (int i = 0; leader->world != NULL && i < leader->member_count; i++) {
        struct leader_member *m = leader->members[i];

        if (m->was_in != NULL)
            m->position = place_in(leader->world, m);
        if (m->position >= 0)
            m->departing = 0;
        world_destroy(m->was_in);
        m->was_in = NULL;
    }
}

/* Live workers that have no part in what follows. */
static void end_others(struct leader *leader, bool all)
{
    for (int i = 0; i < leader->member_count; i++) {
        struct leader_member *m = leader->members[i];

        if (m->live && m->started != 0 && (all || m->position < 0))
            change_kill(leader, m);
        world_destroy(m->was_in);
        m->was_in = NULL;
    }
}

static void conclude(struct leader *leader)
{
    int there, completed = count_completed(leader, &there);

    leader->assembling = 0;
    if (completed > 0) {
        end_others(leader, true);
        if (completed == there)
            change_finish(leader, 0);
        return;
    }
    give_places(leader);
    leader_set_phase(leader, PHASE_WAITING, leader->options->policy->fault_wait + 0.1);
    if (leader->world == NULL ||
        pmix_relay_begin(leader, &leader->relay, leader->world, leader->attempts) != 0)
        return; /* change_form() follows */
    end_others(leader, false);
    leader->torn = leader->fault = true;
    change_describe(leader, 0);
}

bool takeover_assembles(struct leader *leader)
{
    double now = leader_now(leader), since = leader->assembling - ASSEMBLE_MAX;
    int base = 0;

    if (leader->assembling == 0)
        return false;
    for (int i = 0; i < leader->member_count; i++)
        base += leader->members[i]->base && leader->members[i]->link != NULL;
    if (now < leader->assembling && (base < leader->options->base_nodes - 1 ||
                                     now < since + ASSEMBLE_MIN || count_missing(leader) > 0)) {
        decide_later(leader, 0.05);
        return true;
    }
    conclude(leader);
    return false;
}

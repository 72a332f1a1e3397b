/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The change of worlds: the first moments of a leader that follows another one
 * (doc/internals/takeover.md).
 *
 *   voters join, and say what they have ──► the world that was: ABORTED    live workers wait in it
 *                                       └─► no world: WAITING              all other workers
 *
 * The node that led was part of every world, so there is no world that could go on as it is. */
#include "lib/change_private.h"

#include <string.h>

/* Seconds in which extensions count only if they were in the world that is lost. */
#define ASSEMBLE_MIN 0.5
#define WAIT_LIMIT   120.0 /* seconds for a first world, as for a job that starts */

/* A member of the world that was, which is left. */
static bool is_of_former(const struct change *c, const struct change_member *m)
{
    return m->there && m->former.last > 0 && m->former.last == c->generation;
}

static void note_ending(struct change *c, struct change_member *m)
{
    m->former.ends_well = true;
    c->due.ends = c->now;
}

/* Until when are workers that end well waited for? If all do, the training is over. */
static double ends_due(const struct change *c)
{
    FOR_MEMBERS (c, m)
        if (is_of_former(c, m) && !m->former.ends_well && m->former.completed != c->generation)
            return c->due.ends + TAKEOVER_MAX;
    return c->due.ends + grace_of(c);
}

/* What the join of a member says of its workers. */
void takeover_joined(struct change *c, struct change_member *m, const struct change_join *join)
{
    bool assembling = c->phase == CHANGE_TAKING_OVER;

    if (assembling) {
        m->former.last = join->last_world;
        if (join->last_world > c->generation)
            c->generation = join->last_world;
        m->former.completed = join->completed_world;
    }
    if (join->started == 0) {
        world_destroy(join->was_in);
        return;
    }
    m->started = join->started;
    if (assembling && join->through)
        note_ending(c, m);
    begin_departure(c, m);
    if (!assembling || !join->live || join->was_in == NULL || c->options->mode == CHANGE_RESTART) {
        world_destroy(join->was_in);
        return;
    }
    m->former.world = join->was_in;
    m->generation = m->former.world->generation;
    m->live = true;
    m->stateful = join->stateful;
    m->signature = join->signature;
    m->slowest = join->slowest;
}

static int place_in(const struct world *world, const struct change_member *m)
{
    for (int i = 0; i < world->node_count; i++)
        if (strcmp(world->nodes[i].name, m->node) == 0 && world->nodes[i].slots == m->slots)
            return i;
    return -1;
}

/* A member of the newest world that any member was in: they may differ by one generation. NULL: no
 * member was in any world. */
static struct change_member *find_newest(const struct change *c)
{
    struct change_member *newest = NULL;

    FOR_MEMBERS (c, m)
        if (m->former.world != NULL && m->there &&
            (newest == NULL || m->former.world->generation > newest->former.world->generation))
            newest = m;
    return newest;
}

/* Nodes of that world, but for the node that led, that have not joined. */
static int count_missing(const struct change *c)
{
    const struct change_member *newest = find_newest(c);
    int missing = newest != NULL ? newest->former.world->node_count - 1 : 0;

    FOR_MEMBERS (c, m)
        missing -= newest != NULL && m->there && place_in(newest->former.world, m) >= 0;
    return missing;
}

/* Have all members that are left trained to the end of that world? Then it was the end of the
 * training. Have some: the newest checkpoint is what counts. A result needs the node that led, too,
 * of which nobody knows: that world begins once more. */
static int count_completed(const struct change *c, int *there)
{
    int completed = 0;

    *there = 0;
    FOR_MEMBERS (c, m) {
        if (c->options->whole || !m->there || c->generation == 0 ||
            (m->former.world == NULL && m->former.last != c->generation))
            continue;
        ++*there;
        completed += m->former.completed == c->generation;
    }
    return completed;
}

static void forget_former(struct change_member *m)
{
    world_destroy(m->former.world);
    m->former.world = NULL;
}

/* The world that was becomes the present one, as far as its members have joined. */
static void give_places(struct change *c)
{
    struct change_member *newest = find_newest(c);

    if (newest == NULL)
        return;
    c->world = newest->former.world;
    newest->former.world = NULL;
    newest->place = place_in(c->world, newest);
    FOR_MEMBERS (c, m) {
        if (m->former.world != NULL)
            m->place = place_in(c->world, m);
        if (m->place >= 0)
            m->state = CHANGE_IN_WORLD;
        forget_former(m);
    }
}

/* Workers that have no part in what follows. Those that are not live have been stopped by their
 * agents. */
static void end_others(struct change *c, bool all)
{
    FOR_MEMBERS (c, m) {
        if (m->live && m->started != 0 && (all || m->place < 0))
            kill_workers(c, m);
        forget_former(m);
    }
}

bool takeover_ends(struct change *c)
{
    bool some = false;

    FOR_MEMBERS (c, m)
        some = some || (is_of_former(c, m) && m->former.ends_well);
    if (!some || c->now < ends_due(c))
        return some;
    FOR_MEMBERS (c, m) {
        if (m->former.ends_well && m->former.completed != c->generation)
            kill_workers(c, m);
        m->former.ends_well = false;
    }
    return false;
}

void takeover_note_end(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    bool well = fact->code == 0 && fact->signal == 0 && !fact->told && !fact->early;
    int there;

    if (!is_of_former(c, m) || fact->started != m->started)
        return;
    if (fact->kind == CHANGE_FACT_EXITED) {
        m->former.ends_well = false;
        if (well)
            note_ending(c, m);
        return;
    }
    if (!fact->completed) {
        m->former.ends_well = false;
        return;
    }
    m->former.completed = m->former.last;
    /* takeover_on_time() sees it in time. */
    if (!is_in_phase(c, PHASE(TAKING_OVER)) && count_completed(c, &there) == there && there > 0)
        finish(c, 0);
}

static void conclude(struct change *c)
{
    int there, completed = count_completed(c, &there);

    decide(c, 0);
    if (c->options->rests) { /* there is none, or no fit needs it any more */
        end_others(c, true);
        set_phase(c, CHANGE_RESTING, 0);
        return;
    }
    if (completed > 0) {
        set_phase(c, CHANGE_WAITING, WAIT_LIMIT);
        end_others(c, true);
        if (completed == there)
            finish(c, 0);
        return;
    }
    give_places(c);
    set_phase(c, c->world != NULL ? CHANGE_ABORTED : CHANGE_WAITING, fault_wait(c));
    if (c->options->no_world)
        set_deadline(c, 0);
    if (c->world == NULL)
        return; /* form() follows with the next plan */
    c->attempt = c->attempts;
    act(c, CHANGE_RELAY_TAKEN, NULL)->number = c->attempt;
    end_others(c, false);
    c->fault = true;
    describe(c, 0);
}

void takeover_on_time(struct change *c, struct change_member *m, const struct change_fact *fact)
{
    double began = c->phase_since;
    int base = 0, there;

    (void)m;
    (void)fact;
    FOR_MEMBERS (c, each)
        base += each->base && each->there;
    if ((c->now < c->due.assembled && (base < c->options->base_nodes - 1 ||
                                       c->now < began + ASSEMBLE_MIN || count_missing(c) > 0)) ||
        (count_completed(c, &there) < there && takeover_ends(c)))
        set_deadline(c, TAKEOVER_LOOK);
    else
        conclude(c);
}

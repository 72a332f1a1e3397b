/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which extensions an elastic job gives back, and which requests it takes back (plan.h). */
#include "lib/plan_private.h"

#include <stdlib.h>

#include "lib/cover.h"

static void cancel(struct plan_output *out, uint32_t job, bool failed)
{
    if (job == 0 || out->cancel_count == PLAN_CANCEL_MAX || plan_is_cancelled(out, job))
        return;
    out->cancel[out->cancel_count] = job;
    out->cancel_failed[out->cancel_count++] = failed;
}

double plan_replace_at(double since, double leaves, double lead)
{
    double time = leaves - since, ahead = time / 4 < PLAN_REPLACE ? time / 4 : PLAN_REPLACE;

    if (leaves <= 0)
        return 0;
    if (lead > PLAN_REPLACE)
        ahead = lead < time / 2 ? lead : time / 2;
    return leaves - ahead;
}

/* When another extension is to replace this one because its time runs out; 0: never. */
static double ending_since(const struct plan_extension *ext)
{
    return ext->state == PLAN_JOINED ? plan_replace_at(ext->since, ext->leaves, ext->lead) : 0;
}

bool plan_is_ending(const struct plan_input *in, const struct plan_extension *ext)
{
    return ext->unwanted || (ending_since(ext) > 0 && in->now >= ending_since(ext));
}

/* Nodes of the base that the job has but cannot use now: they will be newcomers later. */
static int coming(const struct plan_input *in, const struct plan_output *out)
{
    int nodes = in->base_nodes - in->base_lost;

    for (int i = 0; i < in->member_count; i++)
        nodes -= in->members[i].base && !in->members[i].going &&
                 plan_is_eligible(in, out, &in->members[i]);
    return nodes;
}

/* Would the next world keep too few members with the state for its newcomers, or none that could
 * train until the newcomers are ready? */
static bool too_few(const struct plan_input *in, const struct plan_output *out,
                    struct plan_strength rest, struct plan_strength all, int keep)
{
    bool newcomers = rest.members + coming(in, out) > rest.holders;
    bool goes_on = sizes_floor(in->sizes, rest.holders) > 0;

    if (rest.holders == all.holders)
        return false;
    return (rest.holders < keep && (newcomers || !goes_on)) ||
           (keep > plan_unit(in) && newcomers && !goes_on &&
            sizes_floor(in->sizes, all.holders) > 0);
}

/* Give an extension back, unless its state is needed. */
static bool let_go(const struct plan_input *in, struct plan_output *out,
                   const struct plan_extension *ext, int keep)
{
    struct plan_strength all, rest;

    out->keeps_going = true; /* the survivors are still there */
    all = plan_strength(in, out, 0);
    rest = plan_strength(in, out, ext->job);
    out->keeps_going = false;
    if (too_few(in, out, rest, all, keep)) {
        out->retained_nodes += ext->nodes;
        if (out->retained_count < PLAN_CANCEL_MAX)
            out->retained[out->retained_count++] = ext->job;
        return false;
    }
    cancel(out, ext->job, false);
    return true;
}

/* Members that are `going` stay in the world for as long as they are needed, though nobody waits
 * for their nodes. */
static void keep_going(const struct plan_input *in, struct plan_output *out, int keep)
{
    struct plan_strength all, rest = plan_strength(in, out, 0);

    out->keeps_going = true;
    all = plan_strength(in, out, 0);
    out->keeps_going = too_few(in, out, rest, all, keep);
    if (out->keeps_going)
        out->retained_nodes += all.members - rest.members;
}

/* Extensions that can be given back, newest first. */
struct droppable {
    int count;
    const struct plan_extension **list;
    struct cover_item *items;
    bool *picked;
};

#define DROP_COST ((int64_t)1 << 20) /* of a node: more than that of any number of extensions */

static int find_droppable(const struct plan_input *in, struct droppable *found)
{
    size_t most = (size_t)in->extension_count + 1;

    *found = (struct droppable){.list = calloc(most, sizeof(*found->list)),
                                .items = calloc(most, sizeof(*found->items)),
                                .picked = calloc(most, sizeof(*found->picked))};
    if (found->list == NULL || found->items == NULL || found->picked == NULL)
        return -1;
    for (int i = in->extension_count - 1; i >= 0; i--) {
        const struct plan_extension *ext = &in->extensions[i];

        if (ext->state == PLAN_LEAVING || plan_is_waiting(ext) || ext->job == 0 ||
            plan_is_ending(in, ext))
            continue;
        found->items[found->count] = (struct cover_item){ext->nodes, ext->nodes * DROP_COST + 1};
        found->list[found->count++] = ext;
    }
    return 0;
}

static void clear_droppable(struct droppable *found)
{
    free(found->list);
    free(found->items);
    free(found->picked);
}

static int count_picked(const struct droppable *found)
{
    int nodes = 0;

    for (int i = 0; i < found->count; i++)
        nodes += found->picked[i] ? found->items[i].gives : 0;
    return nodes;
}

/* Give back the picked extensions. One that has to stay for its state is not picked again. Returns
 * the nodes that go. */
static int let_picked_go(const struct plan_input *in, struct plan_output *out,
                         struct droppable *found, int keep)
{
    int nodes = 0;

    for (int i = 0; i < found->count; i++) {
        if (!found->picked[i])
            continue;
        if (let_go(in, out, found->list[i], keep))
            nodes += found->items[i].gives;
        found->items[i].gives = 0;
    }
    return nodes;
}

/* Drop those that run: as few nodes as possible beyond the need, for then a smaller extension is
 * asked for; of these sets the one with the fewest extensions, and the newest of equal ones. Where
 * some have to stay for their state, others go in their place only if they make up for them
 * exactly. Returns the nodes that are still too many. */
static int drop_running(const struct plan_input *in, struct plan_output *out, int excess, int keep)
{
    struct droppable found;
    int retained;

    if (find_droppable(in, &found) == 0) {
        do {
            retained = out->retained_nodes;
            if (!cover_pick(found.items, found.count, excess, found.picked) ||
                (retained > 0 && count_picked(&found) != excess))
                break;
            excess -= let_picked_go(in, out, &found, keep);
        } while (excess > 0 && out->retained_nodes > retained);
    }
    clear_droppable(&found);
    return excess;
}

/* Drop extensions so that the job holds no more than its target: waiting extensions first. */
static void drop_excess(const struct plan_input *in, struct plan_output *out, int have, int keep)
{
    int excess = have - in->target - in->surplus;

    for (int i = in->extension_count - 1; i >= 0 && excess > 0; i--) {
        const struct plan_extension *ext = &in->extensions[i];

        if (plan_is_waiting(ext) && ext->job != 0 && !plan_is_ending(in, ext) &&
            let_go(in, out, ext, keep))
            excess -= ext->nodes;
    }
    if (excess > 0)
        excess = drop_running(in, out, excess, keep);
    out->retained_nodes = at_most(out->retained_nodes, excess > 0 ? excess : 0);
}

/* An extension whose time runs out is dropped as soon as the world keeps its size without it. An
 * unwanted extension is dropped in any case. */
static void drop_replaced(const struct plan_input *in, struct plan_output *out, int keep)
{
    int present = plan_count_present(in); /* none, while lost nodes are replaced */
    int size = sizes_floor(in->sizes, at_most(present > 0 ? present : in->before_loss, in->target));

    for (int i = 0; i < in->extension_count; i++) {
        const struct plan_extension *ext = &in->extensions[i];

        if (!plan_is_ending(in, ext) || ext->state != PLAN_JOINED) {
            if (ending_since(ext) > 0)
                plan_wake_at(in, out, ending_since(ext));
            continue;
        }
        if (ext->unwanted ||
            sizes_floor(in->sizes, at_most(plan_strength(in, out, ext->job).members, in->target)) >=
                size)
            let_go(in, out, ext, keep);
    }
}

/* Has the job stood still for long because too few nodes are there? Then any node is better than
 * none. */
static bool takes_any(const struct plan_input *in, struct plan_output *out)
{
    if (in->stands_since < 0 || sizes_floor(in->sizes, plan_strength(in, out, 0).members) > 0)
        return false;
    if (in->now >= in->stands_since + PLAN_ANYWHERE)
        return true;
    plan_wake_at(in, out, in->stands_since + PLAN_ANYWHERE);
    return false;
}

/* Nodes without which the job cannot train, if nothing that has been asked for brings so few; else
 * 0. */
static int missing_nodes(const struct plan_input *in, const struct plan_output *out)
{
    int members = plan_strength(in, out, 0).members;
    int missing = sizes_next(in->sizes, members) - members;

    if (!plan_needs_nodes(in, out) || sizes_floor(in->sizes, members) > 0)
        return 0;
    for (int i = 0; i < in->extension_count; i++)
        if (in->extensions[i].state < PLAN_JOINED && in->extensions[i].nodes <= missing)
            return 0;
    return missing;
}

/* Drop extensions that wait, and would not if they were asked for now. */
static void drop_outdated(const struct plan_input *in, struct plan_output *out)
{
    double pause_ends = in->setbacks.last + setbacks_pause(&in->setbacks, in->grow_delay);
    bool pauses = in->setbacks.last >= 0 && in->setbacks.again > 0 && in->now < pause_ends;

    int missing = missing_nodes(in, out);

    out->anywhere = takes_any(in, out);
    for (int i = 0; i < in->extension_count; i++) {
        const struct plan_extension *ext = &in->extensions[i];

        if (ext->state != PLAN_PENDING)
            continue;
        if (ext->withdrawn || (ext->excludes && out->anywhere) ||
            (missing > 0 && ext->nodes > missing) ||
            (plan_needs_nodes(in, out) ? ext->begin > in->now
                                       : pauses && ext->begin < pause_ends - PLAN_SETTLE))
            cancel(out, ext->job, false);
    }
}

/* Drop extensions that will not succeed: their agents never come, or they ask for more nodes than
 * are free. */
static void drop_failed(const struct plan_input *in, struct plan_output *out)
{
    for (int i = 0; i < in->extension_count; i++) {
        const struct plan_extension *ext = &in->extensions[i];

        if (ext->state == PLAN_STARTING || (ext->state == PLAN_BOOTING && ext->boot_limit > 0)) {
            double until = ext->since + PLAN_JOIN_LIMIT;

            if (ext->state == PLAN_BOOTING)
                until += ext->boot_limit;
            if (in->now >= until)
                cancel(out, ext->job, true);
            else
                plan_wake_at(in, out, until);
        }
        if (ext->state == PLAN_PENDING && !plan_is_cancelled(out, ext->job) &&
            in->base_nodes + ext->nodes > sizes_next(in->sizes, in->base_nodes)) {
            double since = later(ext->since, ext->begin);

            if (in->now - since >= PLAN_STALE)
                cancel(out, ext->job, false);
            else
                plan_wake_at(in, out, since + PLAN_STALE);
        }
    }
}

/* Joined extensions that the world does not use go back after a while. Extensions of the present
 * world stay until another world has begun. Their workers may be all that is left of the world, and
 * wait with its state until there are enough nodes. */
void plan_drop_parked(const struct plan_input *in, struct plan_output *out)
{
    if (plan_replaces(in, out))
        return; /* with other extensions they may make an allowed size */
    for (int i = 0; i < in->extension_count; i++) {
        const struct plan_extension *ext = &in->extensions[i];
        bool used = false;

        if (ext->state != PLAN_JOINED)
            continue;
        for (int k = 0; k < in->member_count && !used; k++) {
            if (in->members[k].job != ext->job || in->members[k].base)
                continue;
            used = (in->members[k].usable && in->members[k].position >= 0) ||
                   plan_is_chosen(out, in->members[k].id);
        }
        if (used)
            continue;
        if (in->now - ext->since >= PLAN_PARK_LIMIT)
            cancel(out, ext->job, true);
        else
            plan_wake_at(in, out, ext->since + PLAN_PARK_LIMIT);
    }
}

void plan_drop(const struct plan_input *in, struct plan_output *out, int keep)
{
    drop_outdated(in, out);
    drop_failed(in, out);
    drop_excess(in, out, plan_count_nodes(in, out), keep);
    drop_replaced(in, out, keep);
    keep_going(in, out, keep);
}

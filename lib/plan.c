/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an elastic job should do now (plan.h). */
#include "lib/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cover.h"
#include "lib/tree_order.h"

static double later(double a, double b)
{
    return a > b ? a : b;
}

double plan_pause(const struct plan_setbacks *setbacks, double grow_delay)
{
    double pause = later(grow_delay, PLAN_PAUSE), most = later(grow_delay, PLAN_PAUSE_MOST);

    if (setbacks->again == 0)
        return grow_delay;
    for (int i = 0; i < setbacks->again && pause < most; i++)
        pause *= 2;
    return pause < most ? pause : most;
}

void plan_setback(struct plan_setbacks *setbacks, double now, double grow_delay, double asked)
{
    if (setbacks->last < 0 || now > setbacks->last + plan_pause(setbacks, grow_delay) + PLAN_QUIET)
        setbacks->again = 0;
    else if (asked >= setbacks->last) /* and not one of several that are taken back together */
        setbacks->again++;
    setbacks->last = now;
}

/* Remember the earliest moment at which the answer may change by itself. */
static void wake_at(const struct plan_input *in, struct plan_output *out, double when)
{
    double delay = when - in->now;

    if (delay <= 0)
        delay = 0.01;
    if (out->wake == 0 || delay < out->wake)
        out->wake = delay;
}

static const struct plan_extension *extension_of(const struct plan_input *in, uint32_t job)
{
    for (int i = 0; i < in->extension_count; i++)
        if (in->extensions[i].job == job && job != 0)
            return &in->extensions[i];
    return NULL;
}

static bool waiting(const struct plan_extension *ext)
{
    return ext->state == PLAN_SUBMITTING || ext->state == PLAN_PENDING;
}

static bool cancelled(const struct plan_output *out, uint32_t job)
{
    for (int i = 0; i < out->cancel_count; i++)
        if (out->cancel[i] == job)
            return true;
    return false;
}

static void cancel(struct plan_output *out, uint32_t job, bool failed)
{
    if (job == 0 || out->cancel_count == PLAN_CANCEL_MAX || cancelled(out, job))
        return;
    out->cancel[out->cancel_count] = job;
    out->cancel_failed[out->cancel_count++] = failed;
}

/* When another extension is to replace this one because its time runs out; 0: never. */
static double ending_since(const struct plan_extension *ext)
{
    double ahead = (ext->leaves - ext->since) / 4;

    if (ext->leaves <= 0 || ext->state != PLAN_JOINED)
        return 0;
    return ext->leaves - (ahead < PLAN_REPLACE ? ahead : PLAN_REPLACE);
}

static bool ending(const struct plan_input *in, const struct plan_extension *ext)
{
    return ext->unwanted || (ending_since(ext) > 0 && in->now >= ending_since(ext));
}

/* May this member be part of the next world? Newcomers of an extension come together or not at
 * all. */
static bool eligible(const struct plan_input *in, const struct plan_output *out,
                     const struct plan_member *m)
{
    const struct plan_extension *ext;

    if (!m->usable || (m->going && !out->keeps_going))
        return false;
    if (m->base)
        return true;
    ext = extension_of(in, m->job);
    if (ext == NULL || ext->state == PLAN_LEAVING || cancelled(out, m->job))
        return false;
    return m->position >= 0 || ext->state == PLAN_JOINED;
}

/* Survivors keep their order, newcomers follow: base first, then by job and node. */
static int compare_members(const void *a, const void *b)
{
    const struct plan_member *x = *(const struct plan_member *const *)a;
    const struct plan_member *y = *(const struct plan_member *const *)b;

    if ((x->position >= 0) != (y->position >= 0))
        return x->position >= 0 ? -1 : 1;
    if (x->position >= 0)
        return x->position - y->position;
    if (x->base != y->base)
        return x->base ? -1 : 1;
    if (x->job != y->job)
        return x->job < y->job ? -1 : 1;
    return x->nodeid - y->nodeid;
}

static int at_most(int a, int b)
{
    return a < b ? a : b;
}

/* Counts of members that may be part of the next world: all, those with the state, and those of the
 * present world. Without the members of one job (0: with all). */
struct strength {
    int members, holders, present;
};

static struct strength strength_without(const struct plan_input *in, const struct plan_output *out,
                                        uint32_t job)
{
    struct strength found = {0};

    for (int i = 0; i < in->member_count; i++) {
        const struct plan_member *m = &in->members[i];

        if (!eligible(in, out, m) || (!m->base && m->job == job))
            continue;
        found.members++;
        found.holders += m->has_state;
        found.present += m->position >= 0;
    }
    return found;
}

/* Nodes of the present world, lost or not. */
static int count_present(const struct plan_input *in)
{
    int present = 0;

    for (int i = 0; i < in->member_count; i++)
        present += in->members[i].position >= 0;
    return present;
}

/* Nodes of the base that the job has but cannot use now: they will be newcomers later. */
static int coming(const struct plan_input *in, const struct plan_output *out)
{
    int nodes = in->base_nodes - in->base_lost;

    for (int i = 0; i < in->member_count; i++)
        nodes -= in->members[i].base && !in->members[i].going && eligible(in, out, &in->members[i]);
    return nodes;
}

/* Would the next world keep too few members with the state for its newcomers, or none that could
 * train until the newcomers are ready? */
static bool too_few(const struct plan_input *in, const struct plan_output *out,
                    struct strength rest, struct strength all, int keep)
{
    bool newcomers = rest.members + coming(in, out) > rest.holders;
    bool goes_on = sizes_floor(in->sizes, rest.holders) > 0;

    if (rest.holders == all.holders)
        return false;
    return (rest.holders < keep && (newcomers || !goes_on)) ||
           (keep > 1 && newcomers && !goes_on && sizes_floor(in->sizes, all.holders) > 0);
}

/* Give an extension back, unless its state is needed. */
static bool let_go(const struct plan_input *in, struct plan_output *out,
                   const struct plan_extension *ext, int keep)
{
    struct strength all, rest;

    out->keeps_going = true; /* the survivors are still there */
    all = strength_without(in, out, 0);
    rest = strength_without(in, out, ext->job);
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
    struct strength all, rest = strength_without(in, out, 0);

    out->keeps_going = true;
    all = strength_without(in, out, 0);
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

        if (ext->state == PLAN_LEAVING || waiting(ext) || ext->job == 0 || ending(in, ext))
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
    int excess = have - in->target;

    for (int i = in->extension_count - 1; i >= 0 && excess > 0; i--) {
        const struct plan_extension *ext = &in->extensions[i];

        if (waiting(ext) && ext->job != 0 && !ending(in, ext) && let_go(in, out, ext, keep))
            excess -= ext->nodes;
    }
    if (excess > 0)
        excess = drop_running(in, out, excess, keep);
    out->retained_nodes = at_most(out->retained_nodes, excess > 0 ? excess : 0);
}

/* Nodes that the job has or has asked for, and that it will not lose soon. */
static int count_nodes(const struct plan_input *in, const struct plan_output *out)
{
    int nodes = in->base_nodes - in->base_lost;

    for (int i = 0; i < in->extension_count; i++) {
        const struct plan_extension *ext = &in->extensions[i];

        if (ext->state != PLAN_LEAVING && !cancelled(out, ext->job) && !ending(in, ext))
            nodes += ext->nodes;
    }
    return nodes;
}

/* An extension whose time runs out is dropped as soon as the world keeps its size without it. An
 * unwanted extension is dropped in any case. */
static void drop_replaced(const struct plan_input *in, struct plan_output *out, int keep)
{
    int present = count_present(in); /* none, while lost nodes are replaced */
    int size = sizes_floor(in->sizes, at_most(present > 0 ? present : in->before_loss, in->target));

    for (int i = 0; i < in->extension_count; i++) {
        const struct plan_extension *ext = &in->extensions[i];

        if (!ending(in, ext) || ext->state != PLAN_JOINED) {
            if (ending_since(ext) > 0)
                wake_at(in, out, ending_since(ext));
            continue;
        }
        if (ext->unwanted ||
            sizes_floor(in->sizes,
                        at_most(strength_without(in, out, ext->job).members, in->target)) >= size)
            let_go(in, out, ext, keep);
    }
}

/* Has a world ended because of lost nodes, and would the next world be smaller if it began now?
 * Each world begins with a checkpoint: once is better than twice. */
static bool replaces(const struct plan_input *in, const struct plan_output *out)
{
    int size = sizes_floor(in->sizes, at_most(in->before_loss, in->target));

    return in->now < in->replace_until &&
           sizes_floor(in->sizes, at_most(strength_without(in, out, 0).members, in->target)) < size;
}

/* Does the training stand still until nodes come? Then it gains nothing from asking later. */
static bool needs_nodes(const struct plan_input *in, const struct plan_output *out)
{
    return replaces(in, out) ||
           (in->base_lost > 0 && sizes_floor(in->sizes, strength_without(in, out, 0).members) == 0);
}

/* Has the job stood still for long because too few nodes are there? Then any node is better than
 * none. */
static bool takes_any(const struct plan_input *in, struct plan_output *out)
{
    if (in->stands_since < 0 || sizes_floor(in->sizes, strength_without(in, out, 0).members) > 0)
        return false;
    if (in->now >= in->stands_since + PLAN_ANYWHERE)
        return true;
    wake_at(in, out, in->stands_since + PLAN_ANYWHERE);
    return false;
}

/* Nodes without which the job cannot train, if nothing that has been asked for brings so few; else
 * 0. */
static int missing_nodes(const struct plan_input *in, const struct plan_output *out)
{
    int members = strength_without(in, out, 0).members;
    int missing = sizes_next(in->sizes, members) - members;

    if (!needs_nodes(in, out) || sizes_floor(in->sizes, members) > 0)
        return 0;
    for (int i = 0; i < in->extension_count; i++)
        if (in->extensions[i].state < PLAN_JOINED && in->extensions[i].nodes <= missing)
            return 0;
    return missing;
}

/* Drop extensions that wait, and would not if they were asked for now. */
static void drop_outdated(const struct plan_input *in, struct plan_output *out)
{
    double pause_ends = in->setbacks.last + plan_pause(&in->setbacks, in->grow_delay);
    bool pauses = in->setbacks.last >= 0 && in->setbacks.again > 0 && in->now < pause_ends;

    int missing = missing_nodes(in, out);

    out->anywhere = takes_any(in, out);
    for (int i = 0; i < in->extension_count; i++) {
        const struct plan_extension *ext = &in->extensions[i];

        if (ext->state != PLAN_PENDING)
            continue;
        if ((ext->excludes && out->anywhere) || (missing > 0 && ext->nodes > missing) ||
            (needs_nodes(in, out) ? ext->begin > in->now
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

        if (ext->state == PLAN_STARTING) {
            if (in->now - ext->since >= PLAN_JOIN_LIMIT)
                cancel(out, ext->job, true);
            else
                wake_at(in, out, ext->since + PLAN_JOIN_LIMIT);
        }
        if (ext->state == PLAN_PENDING && !cancelled(out, ext->job) &&
            in->base_nodes + ext->nodes > sizes_next(in->sizes, in->base_nodes)) {
            double since = later(ext->since, ext->begin);

            if (in->now - since >= PLAN_STALE)
                cancel(out, ext->job, false);
            else
                wake_at(in, out, since + PLAN_STALE);
        }
    }
}

/* The number of nodes that `increments` more allowed sizes add to the present nodes, up to `most`.
 * 0: no size fits. */
static int nodes_for(const struct plan_input *in, int have, int most, int increments, int *used)
{
    int size = have;

    *used = 0;
    while (*used < increments) {
        int next = sizes_next(in->sizes, size);

        if (next == 0 || next > most)
            break;
        size = next;
        (*used)++;
    }
    return size - have;
}

/* The most nodes that may be asked for now. What leaves is ours until it has left: Slurm would
 * refuse more than MAX. */
static int most_nodes(const struct plan_input *in)
{
    int most = in->sizes->max;

    for (int i = 0; i < in->extension_count; i++)
        if (in->extensions[i].state == PLAN_LEAVING && in->extensions[i].counted)
            most -= in->extensions[i].nodes;
    return at_most(most, in->target);
}

static void decide_submit(const struct plan_input *in, struct plan_output *out)
{
    int have = count_nodes(in, out), most = most_nodes(in);
    int pending = 0, room = 0, wanted;
    double when = in->now;

    for (int i = 0; i < in->extension_count; i++)
        pending += waiting(&in->extensions[i]) && !cancelled(out, in->extensions[i].job);
    if (in->no_pool || pending >= in->max_pending || have >= in->target)
        return;
    nodes_for(in, have, most, SIZES_NODES_MAX, &room);
    if (room == 0)
        return;
    /* 1, 2, 4, … increments, so that many nodes take few jobs. Never more than half of the rest, so
     * that small extensions come last: then a small preemptor finds a small victim. */
    wanted = in->last_increments * 2;
    if (wanted > (room + 1) / 2)
        wanted = (room + 1) / 2;
    if (wanted < 1)
        wanted = 1;
    out->submit = nodes_for(in, have, most, wanted, &out->submit_increments);
    if (in->setbacks.last >= 0 && !needs_nodes(in, out))
        when = later(when, in->setbacks.last + plan_pause(&in->setbacks, in->grow_delay));
    if (in->generation_since >= 0 && !needs_nodes(in, out))
        when = later(when, in->generation_since + in->snooze);
    out->submit_delay = when - in->now;
}

/* Should growth wait a moment for extensions that are about to join? */
static bool settling(const struct plan_input *in, struct plan_output *out, double oldest_newcomer)
{
    double limit = oldest_newcomer + PLAN_SETTLE_MAX;
    bool wait = false;

    if (in->now >= limit)
        return false;
    for (int i = 0; i < in->extension_count; i++) {
        const struct plan_extension *ext = &in->extensions[i];

        if (ext->state == PLAN_STARTING) {
            wait = true;
        } else if (waiting(ext) && ext->begin <= in->now) {
            double until = later(ext->since, ext->begin) + PLAN_SETTLE;

            if (in->now < until) {
                wait = true;
                wake_at(in, out, until);
            }
        }
    }
    if (out->submit > 0 && out->submit_delay <= 0) {
        /* One more increment is being asked for at this moment. */
        wait = true;
        wake_at(in, out, in->now + PLAN_SETTLE);
    }
    if (wait)
        wake_at(in, out, limit);
    return wait;
}

static bool is_chosen(const struct plan_output *out, int id)
{
    for (int i = 0; i < out->size; i++)
        if (out->order[i] == id)
            return true;
    return false;
}

/* Joined extensions that the world does not use go back after a while. Extensions of the present
 * world stay until another world has begun. Their workers may be all that is left of the world, and
 * wait with its state until there are enough nodes. */
static void drop_parked(const struct plan_input *in, struct plan_output *out)
{
    if (replaces(in, out))
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
                   is_chosen(out, in->members[k].id);
        }
        if (used)
            continue;
        if (in->now - ext->since >= PLAN_PARK_LIMIT)
            cancel(out, ext->job, true);
        else
            wake_at(in, out, ext->since + PLAN_PARK_LIMIT);
    }
}

/* Are nodes on their way that could replace lost ones? A node of the base that is back in time
 * could, but as a rule it is left out for a while. */
static bool any_come(const struct plan_input *in, const struct plan_output *out)
{
    if (out->submit > 0 && in->submit_error == NULL)
        return true;
    for (int i = 0; i < in->extension_count; i++) {
        const struct plan_extension *ext = &in->extensions[i];

        if ((waiting(ext) || ext->state == PLAN_STARTING) && !cancelled(out, ext->job))
            return true;
        /* When it has left, another extension can be asked for. */
        if (ext->state == PLAN_LEAVING && ext->counted && !in->no_pool && in->submit_error == NULL)
            return true;
    }
    return false;
}

static void explain_size(const struct plan_input *in, struct plan_output *out, int current,
                         int usable)
{
    char text[128];

    sizes_format(in->sizes, text, sizeof(text));
    if (out->replaces)
        snprintf(out->why_size, sizeof(out->why_size),
                 "waiting for nodes in the place of lost ones: %d of %d are there; for %.0f s more "
                 "(--elastic-fault-wait)",
                 usable, in->before_loss, in->replace_until - in->now);
    else if (out->size == 0)
        snprintf(out->why_size, sizeof(out->why_size), "waiting: %d of at least %d nodes are there",
                 usable, in->sizes->min);
    else if (current > 0 && out->size > current)
        snprintf(out->why_size, sizeof(out->why_size),
                 "%d nodes; %d more have joined and take part in the next generation", current,
                 out->size - current);
    else if (out->retained_nodes > 0)
        snprintf(out->why_size, sizeof(out->why_size),
                 "%d nodes; %d go%s back when others have the state", out->size,
                 out->retained_nodes, out->retained_nodes == 1 ? "es" : "");
    else if (out->size == usable)
        snprintf(out->why_size, sizeof(out->why_size), "%d nodes: all that the job has", out->size);
    else if (out->size == in->target)
        snprintf(out->why_size, sizeof(out->why_size),
                 "%d of %d nodes: held at %d, as was asked for", out->size, usable, in->target);
    else
        snprintf(out->why_size, sizeof(out->why_size),
                 "%d of %d nodes: the largest allowed size (%s)", out->size, usable, text);
}

/* "1 node", "3 nodes". */
struct count_text {
    char text[24];
};

static struct count_text count_nodes_text(int nodes)
{
    struct count_text text;

    snprintf(text.text, sizeof(text.text), "%d node%s", nodes, nodes == 1 ? "" : "s");
    return text;
}

static void explain_more(const struct plan_input *in, struct plan_output *out)
{
    char *buf = out->why_not_more;
    size_t size = sizeof(out->why_not_more);
    const struct plan_extension *first = NULL;

    for (int i = 0; i < in->extension_count; i++) {
        const struct plan_extension *ext = &in->extensions[i];

        if (ext->state == PLAN_LEAVING || cancelled(out, ext->job))
            continue;
        if (first == NULL || first->state == PLAN_JOINED ||
            (first->begin > in->now && ext->begin <= in->now))
            first = ext;
    }
    if (out->size >= in->sizes->max)
        snprintf(buf, size, "MAX is %d", in->sizes->max);
    else if (out->size >= in->target && in->asks)
        snprintf(buf, size, "nobody has asked for more (--elastic-grow=ask, MAX is %d)",
                 in->sizes->max);
    else if (out->size >= in->target)
        snprintf(buf, size, "held at %d, as was asked for (MAX is %d)", in->target, in->sizes->max);
    else if (in->no_pool)
        snprintf(buf, size,
                 "no pool to grow into: name one with --elastic-pool or in elastic.conf");
    else if (first != NULL && first->state == PLAN_STARTING)
        snprintf(buf, size, "extension job %u (%s) has started, its agents are joining", first->job,
                 count_nodes_text(first->nodes).text);
    else if (first != NULL && waiting(first) && first->begin > in->now)
        snprintf(buf, size,
                 "the next extension (%s) becomes eligible in %.0f s (grow-delay, snooze)",
                 count_nodes_text(first->nodes).text, first->begin - in->now);
    else if (first != NULL && first->state == PLAN_PENDING)
        snprintf(buf, size, "extension job %u (%s, pool %s) is pending: %s", first->job,
                 count_nodes_text(first->nodes).text, first->pool != NULL ? first->pool : "?",
                 first->reason != NULL ? first->reason : "just submitted");
    else if (in->submit_error != NULL)
        snprintf(buf, size, "sbatch refused the last extension: %s", in->submit_error);
    else if (first != NULL && first->state == PLAN_SUBMITTING)
        snprintf(buf, size, "an extension of %s is being submitted",
                 count_nodes_text(first->nodes).text);
    else if (in->retry_at > in->now)
        snprintf(buf, size, "the next extension will be submitted in %.0f s",
                 in->retry_at - in->now);
    else if (in->generation_since < 0)
        snprintf(buf, size, "no extension is submitted before the first world has begun");
    else
        snprintf(buf, size, "the next extension is about to be submitted");
    if (in->failure != NULL && out->size < in->target &&
        (first == NULL || first->state != PLAN_STARTING)) {
        size_t len = strlen(buf);

        snprintf(buf + len, size - len, "; %s", in->failure);
    }
}

/* Put the members that are new in the world in order along the tree of switches. The order begins
 * near the last member that stays and ends near rank 0, to which the ring returns. Which members
 * are in the world has been decided before. Rank 0 of a first world is the member that was
 * first. */
static int place_newcomers(const struct plan_member **list, int size)
{
    int first = 0, count, *order;
    const struct plan_member **placed;
    const char **paths;

    while (first < size && (first == 0 || list[first]->position >= 0))
        first++;
    count = size - first;
    if (count < 2)
        return 0;
    order = calloc((size_t)count, sizeof(*order));
    paths = calloc((size_t)count, sizeof(*paths));
    placed = calloc((size_t)count, sizeof(*placed));
    if (order != NULL && paths != NULL && placed != NULL) {
        for (int i = 0; i < count; i++)
            paths[i] = list[first + i]->switches;
        tree_order(paths, count, list[first - 1]->switches, list[0]->switches, order);
        for (int i = 0; i < count; i++)
            placed[i] = list[first + order[i]];
        memcpy(list + first, placed, (size_t)count * sizeof(*placed));
        count = 0;
    }
    free(order);
    free(paths);
    free(placed);
    return count == 0 ? 0 : -1;
}

/* The number of members of the next world. Retained members are part of it until newcomers have the
 * state, even beyond the target if there is no other way. */
static int size_of_next(const struct plan_input *in, const struct plan_output *out,
                        struct strength all)
{
    int size = sizes_floor(in->sizes, at_most(all.members, in->target));
    int present = sizes_floor(in->sizes, all.present), next = sizes_next(in->sizes, all.holders);

    if (out->retained_nodes == 0)
        return size;
    if (present > size)
        size = present;
    return size <= all.holders && next > 0 && next <= all.members ? next : size;
}

static bool is_spared(const struct plan_output *out, const struct plan_member *m)
{
    for (int i = 0; i < out->retained_count; i++)
        if (!m->base && m->job == out->retained[i])
            return true;
    return m->going;
}

/* Where no larger size is allowed, some retained members make room for newcomers: the last of them,
 * so that at least `keep` stay. Members with the state are at the front of the list. */
static void make_room(const struct plan_output *out, const struct plan_member **list, int holders,
                      int count, int keep)
{
    int kept = holders;

    for (int i = holders - 1; i >= 0 && kept > keep && out->size - kept < count - holders; i--) {
        const struct plan_member *moved = list[i];

        if (!is_spared(out, moved))
            continue;
        memmove(list + i, list + i + 1, (size_t)(count - 1 - i) * sizeof(*list));
        list[count - 1] = moved;
        kept--;
    }
}

/* Fill out->order with the eligible members, best first, and out->size. Returns their number, -1
 * when out of memory. */
static int sort_members(const struct plan_input *in, struct plan_output *out, int keep,
                        double *oldest_newcomer)
{
    struct strength all = strength_without(in, out, 0);
    const struct plan_member **list;
    int count = 0;

    list = calloc((size_t)in->member_count + 1, sizeof(*list));
    out->order = calloc((size_t)in->member_count + 1, sizeof(*out->order));
    if (list == NULL || out->order == NULL) {
        free(list);
        return -1;
    }
    for (int i = 0; i < in->member_count; i++) {
        if (!eligible(in, out, &in->members[i]))
            continue;
        list[count++] = &in->members[i];
        if (in->members[i].position < 0 &&
            (*oldest_newcomer < 0 || in->members[i].joined < *oldest_newcomer))
            *oldest_newcomer = in->members[i].joined;
    }
    qsort(list, (size_t)count, sizeof(*list), compare_members);
    out->size = size_of_next(in, out, all);
    if (out->retained_nodes > 0 && out->size > keep && out->size <= all.holders)
        make_room(out, list, all.holders, count, keep);
    if (place_newcomers(list, out->size) != 0)
        count = -1;
    for (int i = 0; i < count; i++)
        out->order[i] = list[i]->id;
    free(list);
    return count;
}

/* Decide which extensions go back, and which members are in the next world. At least that many of
 * them shall have the state. Returns as sort_members does. */
static int choose_members(const struct plan_input *in, struct plan_output *out, int keep,
                          double *oldest_newcomer)
{
    *oldest_newcomer = -1;
    memset(out, 0, sizeof(*out));
    drop_outdated(in, out);
    drop_failed(in, out);
    drop_excess(in, out, count_nodes(in, out), keep);
    drop_replaced(in, out, keep);
    keep_going(in, out, keep);
    return sort_members(in, out, keep, oldest_newcomer);
}

int plan_decide(const struct plan_input *in, struct plan_output *out)
{
    int current = count_present(in), staying = 0, lost, usable, holders;
    double oldest_newcomer;

    usable = choose_members(in, out, PLAN_HOLDERS, &oldest_newcomer);
    holders = strength_without(in, out, 0).holders;
    if (out->retained_nodes > 0 && out->size > 0 && out->size <= PLAN_HOLDERS &&
        out->size <= holders && usable > holders) {
        /* No world is possible in which newcomers could get the state from that many members: then
         * from one. */
        plan_clear(out);
        usable = choose_members(in, out, 1, &oldest_newcomer);
    }
    if (usable < 0) {
        plan_clear(out);
        return -1;
    }
    lost = current - strength_without(in, out, 0).present;
    for (int i = 0; i < in->member_count; i++)
        staying += in->members[i].position >= 0 && is_chosen(out, in->members[i].id);
    drop_parked(in, out);
    decide_submit(in, out);
    if (out->size > 0 && replaces(in, out) && any_come(in, out)) {
        out->replaces = true;
        out->size = 0;
        wake_at(in, out, in->replace_until);
    }

    if (lost > 0 || out->size < current) {
        out->change = true;
        out->urgent = true;
    } else if (out->size > current || staying < current) {
        double awake = in->generation_since + in->snooze;

        if (current > 0 && out->retained_nodes == 0 && in->now < awake)
            wake_at(in, out, awake);
        else
            out->change = current == 0 || !settling(in, out, oldest_newcomer);
    }
    explain_size(in, out, current, usable);
    explain_more(in, out);
    return 0;
}

void plan_clear(struct plan_output *out)
{
    free(out->order);
    out->order = NULL;
}

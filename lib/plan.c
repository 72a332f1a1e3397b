/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an elastic job should do now (plan.h). */
#include "lib/plan_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/text.h"
#include "lib/tree_order.h"

void plan_wake_at(const struct plan_input *in, struct plan_output *out, double when)
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

bool plan_is_waiting(const struct plan_extension *ext)
{
    return ext->state == PLAN_SUBMITTING || ext->state == PLAN_PENDING;
}

bool plan_is_cancelled(const struct plan_output *out, uint32_t job)
{
    for (int i = 0; i < out->cancel_count; i++)
        if (out->cancel[i] == job)
            return true;
    return false;
}

bool plan_is_eligible(const struct plan_input *in, const struct plan_output *out,
                      const struct plan_member *m)
{
    const struct plan_extension *ext;

    if (!m->usable || (m->going && !out->keeps_going))
        return false;
    if (m->base)
        return true;
    ext = extension_of(in, m->job);
    if (ext == NULL || ext->state == PLAN_LEAVING || plan_is_cancelled(out, m->job))
        return false;
    return m->position >= 0 || ext->state == PLAN_JOINED;
}

struct plan_strength plan_strength(const struct plan_input *in, const struct plan_output *out,
                                   uint32_t job)
{
    struct plan_strength found = {0};

    plan_units_count(in, out, job);
    for (int i = 0; i < in->member_count; i++) {
        const struct plan_member *m = &in->members[i];
        bool whole = plan_is_whole(in, out, m);

        if (!plan_is_counted(in, out, m, job))
            continue;
        found.members++;
        found.holders += m->has_state;
        found.present += whole;
    }
    return found;
}

int plan_count_present(const struct plan_input *in)
{
    int present = 0;

    for (int i = 0; i < in->member_count; i++)
        present += in->members[i].position >= 0;
    return present;
}

int plan_count_nodes(const struct plan_input *in, const struct plan_output *out)
{
    int nodes = in->base_nodes - in->base_lost;

    for (int i = 0; i < in->extension_count; i++) {
        const struct plan_extension *ext = &in->extensions[i];

        if (ext->state != PLAN_LEAVING && !plan_is_cancelled(out, ext->job) &&
            !plan_is_ending(in, ext))
            nodes += ext->nodes;
    }
    return nodes;
}

bool plan_replaces(const struct plan_input *in, const struct plan_output *out)
{
    int size = sizes_floor(in->sizes, at_most(in->before_loss, in->target));

    return in->now < in->replace_until &&
           sizes_floor(in->sizes, at_most(plan_strength(in, out, 0).members, in->target)) < size;
}

bool plan_needs_nodes(const struct plan_input *in, const struct plan_output *out)
{
    return plan_replaces(in, out) ||
           (in->base_lost > 0 && sizes_floor(in->sizes, plan_strength(in, out, 0).members) == 0);
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

/* Requests to that pool that wait. */
static int count_waiting(const struct plan_input *in, const struct plan_output *out,
                         const struct plan_pool *pool)
{
    int count = 0;

    for (int i = 0; i < in->extension_count; i++) {
        const struct plan_extension *ext = &in->extensions[i];

        count += plan_is_waiting(ext) && !plan_is_cancelled(out, ext->job) &&
                 (ext->pool == NULL || strcmp(ext->pool, pool->name) == 0);
    }
    return count;
}

/* Ask one pool, if it has room for an increment. */
static void ask_pool(const struct plan_input *in, struct plan_output *out,
                     const struct plan_pool *pool)
{
    int have = plan_count_nodes(in, out) - in->surplus, most = most_nodes(in);
    int room = 0, wanted;
    bool at_once = in->taken > 0 || pool->at_once || plan_needs_nodes(in, out);
    double when = in->now;

    if (count_waiting(in, out, pool) >= in->max_pending)
        return;
    if (most - have > pool->room)
        most = have + pool->room;
    nodes_for(in, have, most, SIZES_NODES_MAX, &room);
    if (room == 0)
        return;
    /* 1, 2, 4, … increments, so that many nodes take few jobs. Never more than half of the rest, so
     * that small extensions come last: then a small preemptor finds a small victim. */
    wanted = in->last_increments * 2;
    if (wanted > (room + 1) / 2)
        wanted = (room + 1) / 2;
    /* What completes a unit of the base goes for itself: nothing else is lost with it. */
    if (wanted < 1 || pool->singly || have % plan_unit(in) != 0)
        wanted = 1;
    /* What is asked for at once is not more than what is taken, if that makes an allowed size. */
    if (in->taken > 0 && !pool->singly)
        out->submit = nodes_for(in, have, at_most(most, have + in->taken), SIZES_NODES_MAX,
                                &out->submit_increments);
    if (out->submit == 0)
        out->submit = nodes_for(in, have, most, in->taken > 0 ? 1 : wanted,
                                &out->submit_increments);
    if (in->setbacks.last >= 0 && !at_once)
        when = later(when, in->setbacks.last + setbacks_pause(&in->setbacks, in->grow_delay));
    if (in->generation_since >= 0 && !at_once)
        when = later(when, in->generation_since + in->snooze);
    out->submit_delay = when - in->now;
}

static void decide_submit(const struct plan_input *in, struct plan_output *out)
{
    if (in->no_pool || plan_count_nodes(in, out) - in->surplus >= in->target)
        return;
    for (out->pool = 0; out->pool < in->pool_count; out->pool++) {
        ask_pool(in, out, &in->pools[out->pool]);
        if (out->submit > 0)
            return;
    }
    out->pool = 0;
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
        } else if (plan_is_waiting(ext) && ext->begin <= in->now) {
            double until = later(ext->since, ext->begin) + PLAN_SETTLE;

            if (in->now < until) {
                wait = true;
                plan_wake_at(in, out, until);
            }
        }
    }
    if (out->submit > 0 && out->submit_delay <= 0) {
        /* One more increment is being asked for at this moment. */
        wait = true;
        plan_wake_at(in, out, in->now + PLAN_SETTLE);
    }
    if (wait)
        plan_wake_at(in, out, limit);
    return wait;
}

bool plan_is_chosen(const struct plan_output *out, int id)
{
    for (int i = 0; i < out->size; i++)
        if (out->order[i] == id)
            return true;
    return false;
}

/* Are nodes on their way that could replace lost ones? A node of the base that is back in time
 * could, but as a rule it is left out for a while. */
static bool any_come(const struct plan_input *in, const struct plan_output *out)
{
    if (out->submit > 0 && in->submit_error == NULL && in->held == NULL)
        return true;
    for (int i = 0; i < in->extension_count; i++) {
        const struct plan_extension *ext = &in->extensions[i];

        if (ext->state < PLAN_JOINED && !plan_is_cancelled(out, ext->job))
            return true;
        /* When it has left, another extension can be asked for. */
        if (ext->state == PLAN_LEAVING && ext->counted && !in->no_pool && in->submit_error == NULL)
            return true;
    }
    return false;
}

/* "1 node", "3 nodes". */
struct count_text {
    char text[48];
};

static struct count_text count_nodes_text(int nodes)
{
    struct count_text text;

    snprintf(text.text, sizeof(text.text), "%d node%s", nodes, nodes == 1 ? "" : "s");
    return text;
}

/* The same of an extension, which may bring less than a unit: see ask_pool(). */
static struct count_text extension_text(const struct plan_input *in, int nodes)
{
    struct count_text text = count_nodes_text(nodes);

    if (nodes % plan_unit(in) != 0)
        text_append(text.text, sizeof(text.text), " to complete a unit");
    return text;
}

static void explain_size(const struct plan_input *in, struct plan_output *out, int current,
                         int usable)
{
    char text[SIZES_TEXT_MAX + 32];

    sizes_format(in->sizes, text, sizeof(text));
    if (plan_unit(in) > 1)
        text_append(text, sizeof(text), ", in units of %d", plan_unit(in));
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
                 out->size - current == 1
                     ? "%s; %d more has joined and takes part in the next generation"
                     : "%s; %d more have joined and take part in the next generation",
                 count_nodes_text(current).text, out->size - current);
    else if (out->retained_nodes > 0)
        snprintf(out->why_size, sizeof(out->why_size),
                 "%d nodes; %d go%s back when others have the state", out->size,
                 out->retained_nodes, out->retained_nodes == 1 ? "es" : "");
    else if (out->size == usable)
        snprintf(out->why_size, sizeof(out->why_size), "%s: all that the job has",
                 count_nodes_text(out->size).text);
    else if (out->size == in->target)
        snprintf(out->why_size, sizeof(out->why_size),
                 "%d of %d nodes: held at %d, as was asked for", out->size, usable, in->target);
    else
        snprintf(out->why_size, sizeof(out->why_size),
                 "%d of %d nodes: the largest allowed size (%s)", out->size, usable, text);
}

static void explain_more(const struct plan_input *in, struct plan_output *out, int current)
{
    char *buf = out->why_not_more;
    size_t size = sizeof(out->why_not_more);
    const struct plan_extension *first = NULL;

    for (int i = 0; i < in->extension_count; i++) {
        const struct plan_extension *ext = &in->extensions[i];

        if (ext->state == PLAN_LEAVING || plan_is_cancelled(out, ext->job))
            continue;
        if (first == NULL || first->state == PLAN_JOINED ||
            (first->begin > in->now && ext->begin <= in->now))
            first = ext;
    }
    if (out->size >= in->sizes->max)
        snprintf(buf, size, "MAX is %d%s", in->sizes->max,
                 current > 0 && out->size > current ? ": the next world has it" : "");
    else if (out->size >= in->target && in->asks)
        snprintf(buf, size, "nobody has asked for more (--elastic-grow=ask, MAX is %d)",
                 in->sizes->max);
    else if (out->size >= in->target)
        snprintf(buf, size, "held at %d, as was asked for (MAX is %d)", in->target, in->sizes->max);
    else if (in->no_pool)
        snprintf(buf, size,
                 "no pool to grow into: name one with --elastic-pool or in elastic.conf");
    else if (first != NULL && first->state == PLAN_BOOTING)
        snprintf(buf, size, "extension job %u (%s) is powering up, %.0f s", first->job,
                 extension_text(in, first->nodes).text, in->now - first->since);
    else if (first != NULL && first->state == PLAN_STARTING)
        snprintf(buf, size, "extension job %u (%s) has started, its agents are joining", first->job,
                 extension_text(in, first->nodes).text);
    else if (first != NULL && plan_is_waiting(first) && first->begin > in->now)
        snprintf(buf, size,
                 "the next extension (%s) becomes eligible in %.0f s (grow-delay, snooze)",
                 extension_text(in, first->nodes).text, first->begin - in->now);
    else if (first != NULL && first->state == PLAN_PENDING)
        snprintf(buf, size, "extension job %u (%s, pool %s) is pending: %s", first->job,
                 extension_text(in, first->nodes).text, first->pool != NULL ? first->pool : "?",
                 first->reason != NULL ? first->reason : "just submitted");
    else if (plan_count_nodes(in, out) - in->surplus >= in->target)
        snprintf(buf, size, "the job has the %s that it may have, and leaves some out",
                 count_nodes_text(in->target).text);
    else if (in->held != NULL)
        snprintf(buf, size, "%s", in->held);
    else if (in->submit_error != NULL)
        snprintf(buf, size, "sbatch refused the last extension: %s", in->submit_error);
    else if (first != NULL && first->state == PLAN_SUBMITTING)
        snprintf(buf, size, "an extension of %s is being submitted",
                 extension_text(in, first->nodes).text);
    else if (in->no_room != NULL)
        snprintf(buf, size, "%s", in->no_room);
    else if (in->retry_at > in->now)
        snprintf(buf, size, "the next extension will be submitted in %.0f s",
                 in->retry_at - in->now);
    else if (in->generation_since < 0)
        snprintf(buf, size, "no extension is submitted before the first world has begun");
    else
        snprintf(buf, size, "the next extension is about to be submitted");
    if (in->failure != NULL && out->size < in->target &&
        (first == NULL || (first->state != PLAN_BOOTING && first->state != PLAN_STARTING))) {
        size_t len = strlen(buf);

        snprintf(buf + len, size - len, "; %s", in->failure);
    }
}

/* Put the units that are new in the world in order along the tree of switches. The order begins
 * near the last unit that stays and ends near rank 0, to which the ring returns. Which members are
 * in the world has been decided before; the first `staying` stay. Rank 0 of a first world is the
 * member that was first. */
static int place_newcomers(const struct plan_input *in, const struct plan_member **list, int size,
                           int staying)
{
    const int unit = plan_unit(in), first = staying > 0 ? staying : unit;
    int count = (size - first) / unit, *order;
    const struct plan_member **placed;
    const char **paths;

    if (count < 2)
        return 0;
    order = calloc((size_t)count, sizeof(*order));
    paths = calloc((size_t)count, sizeof(*paths));
    placed = calloc((size_t)(count * unit), sizeof(*placed));
    if (order != NULL && paths != NULL && placed != NULL) {
        for (int i = 0; i < count; i++)
            paths[i] = list[first + i * unit]->switches;
        tree_order(paths, count, list[first - 1]->switches, list[0]->switches, order);
        for (int i = 0; i < count * unit; i++)
            placed[i] = list[first + order[i / unit] * unit + i % unit];
        memcpy(list + first, placed, (size_t)(count * unit) * sizeof(*placed));
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
                        struct plan_strength all)
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

/* Where no larger size is allowed, some retained units make room for those of newcomers: the last
 * of them, so that at least `keep` members stay. Units with the state are at the front of the list.
 * Members that make up no unit are at its end, and stay there. Returns how many members of the
 * former stay. */
static int make_room(const struct plan_output *out, const struct plan_member **list, int unit,
                     int holders, int count, int keep)
{
    int kept = holders;

    count -= (count - holders) % unit;
    for (int i = holders - unit; i >= 0 && kept > keep && out->size - kept < count - holders;
         i -= unit) {
        bool spared = false;

        for (int k = 0; k < unit; k++)
            spared = spared || is_spared(out, list[i + k]);
        for (int k = 0; k < unit && spared; k++) {
            const struct plan_member *moved = list[i];

            memmove(list + i, list + i + 1, (size_t)(count - 1 - i) * sizeof(*list));
            list[count - 1] = moved;
        }
        kept -= spared ? unit : 0;
    }
    return kept;
}

/* Fill out->order with the eligible members, best first, and out->size. Returns their number, -1
 * when out of memory. */
static int sort_members(const struct plan_input *in, struct plan_output *out, int keep,
                        double *oldest_newcomer)
{
    struct plan_strength all = plan_strength(in, out, 0);
    const struct plan_member **list;
    int count = 0, staying;

    list = calloc((size_t)in->member_count + 1, sizeof(*list));
    out->order = calloc((size_t)in->member_count + 1, sizeof(*out->order));
    if (list == NULL || out->order == NULL) {
        free(list);
        return -1;
    }
    for (int i = 0; i < in->member_count; i++) {
        if (!plan_is_eligible(in, out, &in->members[i]))
            continue;
        list[count++] = &in->members[i];
        if (in->members[i].position < 0 &&
            (*oldest_newcomer < 0 || in->members[i].joined < *oldest_newcomer))
            *oldest_newcomer = in->members[i].joined;
    }
    staying = plan_units_sort(in, out, list, count);
    out->size = size_of_next(in, out, all);
    if (staying >= 0 && out->retained_nodes > 0 && out->size > keep && out->size <= all.holders)
        staying = make_room(out, list, plan_unit(in), at_most(all.holders, staying), count, keep);
    if (staying < 0 || place_newcomers(in, list, out->size, staying) != 0)
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
    out->in_unit = plan_units_create(in);
    if (out->in_unit == NULL)
        return -1;
    plan_drop(in, out, keep);
    return sort_members(in, out, keep, oldest_newcomer);
}

int plan_decide(const struct plan_input *in, struct plan_output *out)
{
    const int unit = plan_unit(in), most = PLAN_HOLDERS * unit;
    int current = plan_count_present(in), staying = 0, lost, usable, holders;
    double oldest_newcomer;

    usable = choose_members(in, out, most, &oldest_newcomer);
    holders = usable >= 0 ? plan_strength(in, out, 0).holders : 0;
    if (out->retained_nodes > 0 && out->size > 0 && out->size <= most && out->size <= holders &&
        usable > holders) {
        /* No world is possible in which newcomers could get the state from that many units: then
         * from one. */
        plan_clear(out);
        usable = choose_members(in, out, unit, &oldest_newcomer);
    }
    if (usable < 0) {
        plan_clear(out);
        return -1;
    }
    lost = current - plan_strength(in, out, 0).present;
    for (int i = 0; i < in->member_count; i++)
        staying += in->members[i].position >= 0 && plan_is_chosen(out, in->members[i].id);
    plan_drop_parked(in, out);
    decide_submit(in, out);
    if (out->size > 0 && plan_replaces(in, out) && any_come(in, out)) {
        out->replaces = true;
        out->size = 0;
        plan_wake_at(in, out, in->replace_until);
    }

    if (lost > 0 || out->size < current) {
        out->change = true;
        out->urgent = true;
    } else if (out->size > current || staying < current) {
        double awake = in->generation_since + in->snooze;

        if (current > 0 && out->retained_nodes == 0 && in->now < awake)
            plan_wake_at(in, out, awake);
        else
            out->change = current == 0 || !settling(in, out, oldest_newcomer);
    }
    explain_size(in, out, current, usable);
    explain_more(in, out, current);
    return 0;
}

void plan_clear(struct plan_output *out)
{
    free(out->order);
    free(out->in_unit);
    out->order = out->in_unit = NULL;
}

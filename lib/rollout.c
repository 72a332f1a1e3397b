/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How replicas come from one version to another (rollout.h). */
#include "lib/rollout.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/number.h"

/* ---- limits ---------------------------------------------------------------------------------- */

int rollout_amount_parse(const char *text, size_t len, struct rollout_amount *amount)
{
    bool percent = len > 0 && text[len - 1] == '%';
    int value;

    if (number_parse(text, len - percent, 0, percent ? 100 : ROLLOUT_REPLICAS_MAX, &value) != 0)
        return -1;
    *amount = (struct rollout_amount){value, percent};
    return 0;
}

static int part(int replicas, const struct rollout_amount *amount, bool up)
{
    if (!amount->percent)
        return amount->value;
    return (replicas * amount->value + (up ? 99 : 0)) / 100;
}

int rollout_limits(int replicas, const struct rollout_amount *surge,
                   const struct rollout_amount *unavailable, struct rollout_limits *limits,
                   struct error *err)
{
    struct rollout_limits found = {part(replicas, surge, true), part(replicas, unavailable, false)};

    if (found.unavailable >= replicas)
        found.unavailable = replicas > 0 ? replicas - 1 : 0;
    if (replicas > 0 && found.surge == 0 && found.unavailable == 0)
        return error_set(err,
                         "max-surge and max-unavailable are both 0 of %d replicas, of which one "
                         "stays ready: no replica can be replaced; raise one of them",
                         replicas);
    *limits = found;
    return 0;
}

/* ---- facts ----------------------------------------------------------------------------------- */

void rollout_begin(struct rollout *rollout, int64_t version)
{
    if (version == (rollout->back ? rollout->before : rollout->version))
        return;
    if (rollout->done && !rollout->back)
        rollout->before = rollout->version;
    rollout->version = version;
    rollout->failures = 0;
    rollout->back = rollout->told = rollout->done = false;
}

void rollout_ready(struct rollout *rollout, int64_t version)
{
    if (version == rollout->version && !rollout->back)
        rollout->failures = 0;
}

void rollout_failed(struct rollout *rollout, int64_t version)
{
    if (rollout->done || rollout->back || version != rollout->version || rollout->fail_fast == 0)
        return;
    if (++rollout->failures >= rollout->fail_fast)
        rollout->back = true;
}

/* ---- what is to be done ---------------------------------------------------------------------- */

struct count {
    int64_t target; /* the version that all are to have */
    int want, floor;
    int total, fresh, fresh_ready, ready, leaving, others;
    bool alone; /* one of the version is to get ready, before more of it start */
};

static struct rollout_action *add(struct rollout_actions *out, enum rollout_action_kind kind)
{
    if (out->count == out->room) {
        int room = out->room > 0 ? 2 * out->room : 16;
        struct rollout_action *more = realloc(out->list, (size_t)room * sizeof(*more));

        if (more == NULL)
            return NULL;
        out->list = more;
        out->room = room;
    }
    out->list[out->count] = (struct rollout_action){.kind = kind};
    return &out->list[out->count++];
}

/* It has that version, or comes to it as it is. */
static bool is_fresh(const struct rollout *rollout, const struct rollout_replica *replica,
                     int64_t target)
{
    return rollout->in_place ? !replica->other : replica->version == target;
}

static struct count count_all(const struct rollout *rollout, const struct rollout_replica *list,
                              int count)
{
    struct count c = {.target = rollout->back ? rollout->before : rollout->version, .total = count};

    c.want = rollout->back && rollout->before == 0 ? 0 : rollout->replicas;
    c.floor = c.want - rollout->limits.unavailable;
    if (c.floor < 1)
        c.floor = c.want > 0;
    for (int i = 0; i < count; i++) {
        bool fresh = is_fresh(rollout, &list[i], c.target);

        if (list[i].leaves) {
            c.leaving++;
            continue;
        }
        c.fresh += fresh;
        c.others += !fresh;
        c.fresh_ready += fresh && list[i].version == c.target && list[i].ready;
        c.ready += list[i].ready;
    }
    c.alone = rollout->one_first && !rollout->in_place && c.want > 0 && c.ready > 0 &&
              c.fresh_ready == 0;
    if (c.alone)
        c.floor = c.want;
    return c;
}

static int start(const struct rollout *rollout, struct count *c, int free,
                 struct rollout_actions *out)
{
    int most = c->want + rollout->limits.surge - c->total;
    int missing = (c->alone ? 1 : c->want) - c->fresh;
    int starts = missing < most ? missing : most;

    if (starts > free) {
        out->lacks = starts - free;
        starts = free;
    }
    for (int i = 0; i < starts; i++) {
        struct rollout_action *action = add(out, ROLLOUT_START);

        if (action == NULL)
            return -1;
        action->version = c->target;
        c->fresh++;
        c->total++;
    }
    return 0;
}

static int drain(const struct rollout_replica *replica, struct count *c,
                 struct rollout_actions *out)
{
    struct rollout_action *action = add(out, ROLLOUT_DRAIN);

    if (action == NULL)
        return -1;
    action->id = replica->id;
    action->version = replica->version;
    c->ready -= replica->ready;
    c->leaving++;
    return 0;
}

/* Those of another version that are not ready are of no use. Of those that are ready as many go as
 * newcomers have no place otherwise, or as there are too many of; with one_first all that may. The
 * last ones go first. */
static int drain_others(const struct rollout *rollout, const struct rollout_replica *list,
                        int count, struct count *c, struct rollout_actions *out)
{
    for (int i = count - 1; i >= 0; i--)
        if (!list[i].leaves && !is_fresh(rollout, &list[i], c->target) && !list[i].ready &&
            drain(&list[i], c, out) != 0)
            return -1;
    for (int i = count - 1; i >= 0; i--) {
        bool needed = c->fresh < c->want ? c->want - c->fresh > c->leaving : c->ready > c->want;

        if ((!needed && !rollout->one_first) || c->ready <= c->floor)
            break;
        if (!list[i].leaves && !is_fresh(rollout, &list[i], c->target) && list[i].ready &&
            drain(&list[i], c, out) != 0)
            return -1;
    }
    return 0;
}

/* Fewer replicas are wanted by now: first those that are not ready. */
static int drain_surplus(const struct rollout *rollout, const struct rollout_replica *list,
                         int count, struct count *c, struct rollout_actions *out)
{
    for (int ready = 0; ready < 2; ready++)
        for (int i = count - 1; i >= 0 && c->fresh > c->want; i--) {
            if (list[i].leaves || !is_fresh(rollout, &list[i], c->target) ||
                list[i].ready != (ready == 1) || (ready == 1 && c->ready <= c->floor))
                continue;
            if (drain(&list[i], c, out) != 0)
                return -1;
            c->fresh--;
        }
    return 0;
}

static int say(struct rollout *rollout, const struct count *c, int before,
               struct rollout_actions *out)
{
    bool moving = out->count > before || c->leaving > 0 || c->fresh > c->fresh_ready;
    struct rollout_action *action;

    if (c->fresh_ready == c->want && c->total == c->want) {
        if (rollout->done)
            return 0;
        rollout->done = true;
        action = add(out, ROLLOUT_DONE);
        if (action != NULL)
            action->version = c->target;
        return action != NULL ? 0 : -1;
    }
    if (moving)
        return 0;
    action = add(out, ROLLOUT_WAIT);
    if (action == NULL)
        return -1;
    snprintf(action->text, sizeof(action->text),
             "waits for room for %d more of its replicas: %d are ready, and %d have to be "
             "(max-unavailable)",
             out->lacks > 0 ? out->lacks : c->want - c->fresh, c->ready, c->floor);
    return 0;
}

static int say_failed(struct rollout *rollout, struct rollout_actions *out)
{
    struct rollout_action *action;

    if (!rollout->back || rollout->told)
        return 0;
    action = add(out, ROLLOUT_FAILED);
    if (action == NULL)
        return -1;
    rollout->told = true;
    snprintf(action->text, sizeof(action->text),
             rollout->in_place ? "%d times in a row a replica did not get its models"
                               : "%d new replicas in a row did not get ready",
             rollout->failures);
    return 0;
}

int rollout_run(struct rollout *rollout, const struct rollout_replica *list, int count, int free,
                struct rollout_actions *out)
{
    struct count c = count_all(rollout, list, count);
    int before = out->count;

    out->lacks = 0;
    if (say_failed(rollout, out) != 0 || start(rollout, &c, free, out) != 0 ||
        drain_others(rollout, list, count, &c, out) != 0 ||
        drain_surplus(rollout, list, count, &c, out) != 0)
        return -1;
    return say(rollout, &c, before, out);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Models of a service that are loaded when somebody asks for them, and not before. */
#include "lib/shard_commands_private.h"

#include <stdlib.h>
#include <string.h>

bool shard_model_is_off(const struct shard_model *model)
{
    return model->removed || model->asleep;
}

void shard_commands_asked(struct shard_commands *s, const char *key)
{
    struct shard_model *model = shard_key_ok(key) ? shard_model_keyed(s, key) : NULL;

    if (model != NULL)
        model->asked = true;
}

void shard_commands_asked_all(struct shard_commands *s)
{
    for (int i = 0; i < s->count; i++)
        s->models[i]->asked = s->models[i]->asked || !s->models[i]->asleep;
}

/* ---- waking and falling asleep --------------------------------------------------------------- */

static void fall_asleep(struct shard_commands *s, struct shard_model *model)
{
    model->asleep = true;
    s->at_once = true;
}

static void note(struct shard_commands *s, struct shard_model *model, double now)
{
    if (model->asked && model->asleep) {
        model->asleep = model->gone = false;
        s->at_once = true;
    }
    if (model->asked || model->asked_at == 0)
        model->asked_at = now;
}

static bool is_idle(const struct shard_commands *s, const struct shard_model *model, double now)
{
    return !model->asked && now - model->asked_at >= s->options.idle;
}

/* When somebody has asked for one of its models last. Nothing of it may be under way, for an update
 * is not left half done. -1: there is no such time. */
static double last_asked(const struct shard *shard)
{
    double last = -1;

    if (shard->update != shard->done || shard->back || shard->closed)
        return -1;
    for (int i = 0; i < shard->now.count; i++) {
        const struct shard_model *model = shard->now.list[i].model;

        if (!shard_model_is_off(model) && model->asked_at > last)
            last = model->asked_at;
    }
    return last;
}

/* Is one of its models wanted, or only about to come? */
static bool is_wanted(const struct shard_commands *s, const struct shard *shard, double now)
{
    for (int i = 0; i < s->count; i++)
        if (s->models[i]->home == shard->number && !is_idle(s, s->models[i], now))
            return true;
    return false;
}

static void end_shard(struct shard_commands *s, const struct shard *shard)
{
    for (int i = 0; i < s->count; i++)
        if (s->models[i]->home == shard->number && !shard_model_is_off(s->models[i]))
            fall_asleep(s, s->models[i]);
}

/* Nobody waits any more for a model that has found no room. */
static void give_up(const struct shard_commands *s, struct shard_model *model, double now)
{
    if (shard_model_is_off(model) || model->home > 0 || model->routed > 0 ||
        !is_idle(s, model, now))
        return;
    model->asleep = model->gone = true;
    if (!model->failed)
        model->why[0] = '\0';
}

void shard_commands_wake(struct shard_commands *s, double now)
{
    if (s->options.idle <= 0)
        return;
    for (int i = 0; i < s->count; i++)
        note(s, s->models[i], now);
    for (int i = 0; i < s->shard_count; i++) {
        double last = last_asked(s->shards[i]);

        if (last >= 0 && now - last >= s->options.idle && !is_wanted(s, s->shards[i], now))
            end_shard(s, s->shards[i]);
    }
    for (int i = 0; i < s->count; i++)
        give_up(s, s->models[i], now);
}

double shard_commands_idle_at(const struct shard_commands *s)
{
    double at = 0;

    for (int i = 0; i < s->shard_count && s->options.idle > 0; i++) {
        double last = last_asked(s->shards[i]);

        if (last >= 0 && (at == 0 || last + s->options.idle < at))
            at = last + s->options.idle;
    }
    return at;
}

/* ---- room ------------------------------------------------------------------------------------ */

/* The one that has not been asked for the longest is the first; of two, that with the smaller name.
 */
static int by_use(const void *a, const void *b)
{
    const struct shard_model *one = *(struct shard_model *const *)a;
    const struct shard_model *other = *(struct shard_model *const *)b;

    if (one->asked_at != other->asked_at)
        return one->asked_at < other->asked_at ? -1 : 1;
    return strcmp(one->name, other->name);
}

/* Models of the shard that may leave, into list. *room: what it has without any of them leaving. */
static int candidates(const struct shard_commands *s, const struct shard *shard, double now,
                      struct shard_model **list, int64_t *room)
{
    int count = 0;

    *room = s->options.capacity;
    for (int i = 0; i < shard->now.count; i++)
        if (!shard_model_is_off(shard->now.list[i].model) &&
            shard->now.list[i].model->home != shard->number)
            *room -= shard->now.list[i].size; /* it moves elsewhere */
    for (int i = 0; i < s->count; i++) {
        struct shard_model *model = s->models[i];

        if (model->home != shard->number || shard_model_is_off(model))
            continue;
        *room -= model->planned_size;
        if (!model->asked && now - model->asked_at >= SHARD_COMMANDS_REST)
            list[count++] = model;
    }
    if (count > 1)
        qsort(list, (size_t)count, sizeof(struct shard_model *), by_use);
    return count;
}

/* How many of the candidates have to leave so that so much has room; -1: all are not enough. */
static int needed(struct shard_model *const *list, int count, int64_t room, int64_t size)
{
    for (int i = 0; i <= count; i++) {
        if (room >= size)
            return i;
        room += i < count ? list[i]->planned_size : 0;
    }
    return -1;
}

/* Out of that shard of which the last one to leave has not been asked for the longest. False: there
 * is none. */
static bool make_room_for(struct shard_commands *s, int64_t size, double now,
                          struct shard_model **list, struct shard_model **best)
{
    int most = 0;

    for (int i = 0; i < s->shard_count; i++) {
        int64_t room;
        int count, leave;

        if (s->shards[i]->closed)
            continue;
        count = candidates(s, s->shards[i], now, list, &room);
        leave = needed(list, count, room, size);
        if (leave <= 0 || (most > 0 && by_use(&list[leave - 1], &best[most - 1]) > 0))
            continue;
        most = leave;
        memcpy(best, list, (size_t)leave * sizeof(struct shard_model *));
    }
    for (int i = 0; i < most; i++)
        fall_asleep(s, best[i]);
    return most > 0;
}

static bool waits_for_room(const struct shard_model *model)
{
    return model->asked && !shard_model_is_off(model) && !model->failed && model->home == 0;
}

int shard_commands_make_room(struct shard_commands *s, double now)
{
    struct shard_model **list, *wants = NULL;
    bool made;

    for (int i = 0; i < s->count && s->options.idle > 0 && wants == NULL; i++)
        if (waits_for_room(s->models[i]))
            wants = s->models[i];
    if (wants == NULL)
        return 0;
    list = calloc(2 * (size_t)s->count + 1, sizeof(struct shard_model *));
    if (list == NULL)
        return -1;
    made = make_room_for(s, wants->size, now, list, list + s->count);
    free(list);
    return made ? 1 : 0;
}

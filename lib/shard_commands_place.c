/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which shard each model of a service belongs to, once operations have been collected. */
#include "lib/shard_commands_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Where the model is by now: its home, if that has been told of it, else where its requests go.
 * NULL: nowhere, so that it may as well be placed elsewhere. */
static struct shard_entry *place_now(const struct shard_commands *s,
                                     const struct shard_model *model, int *number)
{
    const struct shard *home = shard_numbered(s, model->home);
    const struct shard *routed = shard_numbered(s, model->routed);
    struct shard_entry *entry = home != NULL ? shard_list_find(&home->now, model) : NULL;

    *number = entry != NULL ? model->home : 0;
    if (entry != NULL || routed == NULL)
        return entry;
    entry = shard_list_find(&routed->now, model);
    *number = entry != NULL ? model->routed : 0;
    return entry;
}

struct question {
    struct shard_plan_shard *shards;
    struct shard_plan_model *models;
    struct shard_model **of; /* of each model of the question */
    int count;
};

static void end(struct question *q)
{
    free(q->shards);
    free(q->models);
    free(q->of);
}

static int begin(struct question *q, const struct shard_commands *s)
{
    q->shards = calloc((size_t)s->shard_count + 1, sizeof(*q->shards));
    q->models = calloc((size_t)s->count + 1, sizeof(*q->models));
    q->of = calloc((size_t)s->count + 1, sizeof(struct shard_model *));
    return q->shards != NULL && q->models != NULL && q->of != NULL ? 0 : -1;
}

/* What is in a list and belongs elsewhere takes room until it has left. What nobody wants any more
 * leaves with the same list that brings newcomers. */
static void ask_shards(struct question *q, const struct shard_commands *s)
{
    for (int i = 0; i < s->shard_count; i++) {
        const struct shard *shard = s->shards[i];
        struct shard_plan_shard *asked = &q->shards[i];

        *asked = (struct shard_plan_shard){.number = shard->number, .closed = shard->closed};
        for (int j = 0; j < shard->now.count; j++) {
            const struct shard_entry *e = &shard->now.list[j];
            int number;

            if (!shard_model_is_off(e->model) &&
                (place_now(s, e->model, &number) == NULL || number != shard->number))
                asked->leaves += e->size;
        }
    }
}

static void ask_models(struct question *q, const struct shard_commands *s)
{
    for (int i = 0; i < s->count; i++) {
        struct shard_model *model = s->models[i];
        struct shard_plan_model *asked = &q->models[q->count];
        const struct shard_entry *entry;

        if (shard_model_is_off(model))
            continue;
        *asked = (struct shard_plan_model){.name = model->name, .size = model->size};
        entry = place_now(s, model, &asked->shard);
        if (entry != NULL)
            asked->present = entry->size;
        if (model->failed && entry == NULL)
            continue; /* its home is 0 */
        if (model->failed)
            asked->size = entry->size;
        q->of[q->count++] = model;
    }
}

static void say_refused(const struct shard_commands *s, struct shard_model *model,
                        const struct shard_entry *entry)
{
    int length = snprintf(model->why, sizeof(model->why),
                          "%s needs %" PRId64 " bytes: no shard has so much room, and there are at "
                          "most %d",
                          error_value(model->version).text, model->size, s->options.max_shards);

    if (entry != NULL && length > 0 && (size_t)length < sizeof(model->why))
        snprintf(model->why + length, sizeof(model->why) - (size_t)length, "; shard_%d keeps %s",
                 model->home, error_value(entry->version).text);
}

static int take(struct shard_commands *s, struct shard_model *model,
                const struct shard_plan_model *answer)
{
    int number;
    const struct shard_entry *entry = place_now(s, model, &number);
    bool stays = model->failed || answer->refused;

    model->home = answer->to;
    if (answer->refused) {
        say_refused(s, model, entry);
        s->refused++;
    } else if (!model->failed) {
        model->why[0] = '\0';
    }
    if (answer->to == 0)
        return 0;
    if (shard_numbered(s, answer->to) == NULL && shard_add(s, answer->to) == NULL)
        return -1;
    model->planned_size = stays ? entry->size : model->size;
    return shard_text_set(&model->planned, stays ? entry->version : model->version);
}

int shard_commands_place(struct shard_commands *s, double now)
{
    const struct shard_plan_options options = {s->options.capacity, s->options.max_shards};
    struct question q = {0};
    int status = begin(&q, s);

    if (status == 0) {
        ask_shards(&q, s);
        ask_models(&q, s);
        status = (s->repack ? shard_plan_repack : shard_plan)(&options, q.shards, s->shard_count,
                                                              q.models, q.count);
    }
    s->refused = 0;
    for (int i = 0; i < s->count; i++) {
        struct shard_model *model = s->models[i];

        model->gone = shard_model_is_off(model);
        if (model->gone)
            model->home = 0;
    }
    for (int i = 0; status == 0 && i < q.count; i++)
        status = take(s, q.of[i], &q.models[i]);
    end(&q);
    s->pending = s->at_once = s->repack = false;
    s->planned = now;
    return status;
}

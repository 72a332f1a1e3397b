/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a service with shards consists of: names, lists, models, shards. */
#include "lib/shard_commands_private.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lib/text.h"

/* ---- names ----------------------------------------------------------------------------------- */

static bool begins_and_is_made_of(const char *text, const char *others, size_t most)
{
    return text_made_of(text, others) && (isalnum((unsigned char)text[0]) || text[0] == '_') &&
           strlen(text) <= most;
}

/* It is a name of a directory and a word in the text of others, too. */
bool shard_name_ok(const char *name)
{
    return begins_and_is_made_of(name, "._-", SHARD_NAME_MAX);
}

/* It stands in a map of haproxy, and may be a part of a path. */
bool shard_key_ok(const char *key)
{
    return begins_and_is_made_of(key, "._-/:@+", SHARD_KEY_MAX) && strstr(key, "..") == NULL &&
           strstr(key, "//") == NULL;
}

int shard_text_set(char **text, const char *value)
{
    char *copy;

    if (*text != NULL && strcmp(*text, value) == 0)
        return 0;
    copy = strdup(value);
    if (copy == NULL)
        return -1;
    free(*text);
    *text = copy;
    return 0;
}

/* ---- lists ----------------------------------------------------------------------------------- */

struct shard_entry *shard_list_find(const struct shard_list *list, const struct shard_model *model)
{
    int low = 0, high = list->count;

    while (low < high) {
        int middle = low + (high - low) / 2;
        int order = strcmp(list->list[middle].model->name, model->name);

        if (order == 0)
            return &list->list[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

int shard_list_add(struct shard_list *list, struct shard_model *model, const char *version,
                   int64_t size, int64_t since)
{
    struct shard_entry entry = {model, NULL, size, since};

    if (list->count == list->room) {
        int room = list->room > 0 ? 2 * list->room : 16;
        struct shard_entry *more = realloc(list->list, (size_t)room * sizeof(*more));

        if (more == NULL)
            return -1;
        list->list = more;
        list->room = room;
    }
    entry.version = strdup(version);
    if (entry.version == NULL)
        return -1;
    list->list[list->count++] = entry;
    return 0;
}

void shard_list_clear(struct shard_list *list)
{
    for (int i = 0; i < list->count; i++)
        free(list->list[i].version);
    free(list->list);
    *list = (struct shard_list){0};
}

int shard_list_copy(struct shard_list *list, const struct shard_list *from)
{
    struct shard_list copy = {0};

    for (int i = 0; i < from->count; i++) {
        const struct shard_entry *e = &from->list[i];

        if (shard_list_add(&copy, e->model, e->version, e->size, e->since) != 0) {
            shard_list_clear(&copy);
            return -1;
        }
    }
    shard_list_clear(list);
    *list = copy;
    return 0;
}

int64_t shard_list_size(const struct shard_list *list)
{
    int64_t size = 0;

    for (int i = 0; i < list->count; i++)
        size += list->list[i].size;
    return size;
}

/* ---- models ---------------------------------------------------------------------------------- */

/* The place of a text among the models by name, or by key. */
static int place_of(const struct shard_commands *s, const char *text, bool by_key, bool *found)
{
    int low = 0, high = s->count;

    *found = false;
    while (low < high) {
        int middle = low + (high - low) / 2;
        int order = strcmp(by_key ? s->keys[middle]->key : s->models[middle]->name, text);

        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct shard_model *shard_model_named(const struct shard_commands *s, const char *name)
{
    bool found;
    int place = place_of(s, name, false, &found);

    return found ? s->models[place] : NULL;
}

struct shard_model *shard_model_keyed(const struct shard_commands *s, const char *key)
{
    bool found;
    int place = place_of(s, key, true, &found);

    return found ? s->keys[place] : NULL;
}

void shard_model_destroy(struct shard_model *model)
{
    if (model == NULL)
        return;
    free(model->name);
    free(model->key);
    free(model->version);
    free(model->planned);
    free(model);
}

static int make_room(struct shard_commands *s)
{
    int room = s->room > 0 ? 2 * s->room : 64;
    struct shard_model **models, **keys;

    if (s->count < s->room)
        return 0;
    models = realloc(s->models, (size_t)room * sizeof(*models));
    if (models == NULL)
        return -1;
    s->models = models;
    keys = realloc(s->keys, (size_t)room * sizeof(*keys));
    if (keys == NULL)
        return -1;
    s->keys = keys;
    s->room = room;
    return 0;
}

static void insert(struct shard_model **list, int count, int place, struct shard_model *model)
{
    memmove(&list[place + 1], &list[place], (size_t)(count - place) * sizeof(struct shard_model *));
    list[place] = model;
}

/* Neither its name nor its key may be there. */
struct shard_model *shard_model_add(struct shard_commands *s, const char *name, const char *key)
{
    struct shard_model *model = calloc(1, sizeof(*model));
    bool found;

    if (model == NULL || make_room(s) != 0 || shard_text_set(&model->name, name) != 0 ||
        shard_text_set(&model->key, key) != 0) {
        shard_model_destroy(model);
        return NULL;
    }
    insert(s->models, s->count, place_of(s, name, false, &found), model);
    insert(s->keys, s->count, place_of(s, key, true, &found), model);
    s->count++;
    return model;
}

/* ---- shards ---------------------------------------------------------------------------------- */

static int place_of_shard(const struct shard_commands *s, int number)
{
    int low = 0, high = s->shard_count;

    while (low < high) {
        int middle = low + (high - low) / 2;

        if (s->shards[middle]->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct shard *shard_numbered(const struct shard_commands *s, int number)
{
    int place = place_of_shard(s, number);

    return place < s->shard_count && s->shards[place]->number == number ? s->shards[place] : NULL;
}

static void destroy_shard(struct shard *shard)
{
    if (shard == NULL)
        return;
    shard_list_clear(&shard->now);
    shard_list_clear(&shard->good);
    free(shard->application);
    free(shard->good_application);
    free(shard->bad_application);
    free(shard);
}

struct shard *shard_add(struct shard_commands *s, int number)
{
    struct shard *shard = calloc(1, sizeof(*shard));
    int place = place_of_shard(s, number);

    if (shard != NULL && s->shard_count == s->shard_room) {
        int room = s->shard_room > 0 ? 2 * s->shard_room : 16;
        struct shard **more = realloc(s->shards, (size_t)room * sizeof(struct shard *));

        if (more != NULL) {
            s->shards = more;
            s->shard_room = room;
        }
    }
    if (shard == NULL || s->shard_count == s->shard_room ||
        shard_text_set(&shard->application, "") != 0 ||
        shard_text_set(&shard->good_application, "") != 0) {
        destroy_shard(shard);
        return NULL;
    }
    shard->number = number;
    memmove(&s->shards[place + 1], &s->shards[place],
            (size_t)(s->shard_count - place) * sizeof(struct shard *));
    s->shards[place] = shard;
    s->shard_count++;
    return shard;
}

void shard_drop(struct shard_commands *s, int i)
{
    destroy_shard(s->shards[i]);
    s->shard_count--;
    memmove(&s->shards[i], &s->shards[i + 1],
            (size_t)(s->shard_count - i) * sizeof(struct shard *));
}

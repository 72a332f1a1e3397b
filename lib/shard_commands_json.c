/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The record of a service with shards, as a file that a successor reads. */
#include "lib/shard_commands_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json_get.h"

#define EPOCH_MAX (INT64_MAX / 2)

/* ---- writing --------------------------------------------------------------------------------- */

static void add_text(json_object *to, const char *key, const char *text)
{
    if (text != NULL)
        json_object_object_add(to, key, json_object_new_string(text));
}

static void add_number(json_object *to, const char *key, int64_t number)
{
    json_object_object_add(to, key, json_object_new_int64(number));
}

static void add_flag(json_object *to, const char *key, bool flag)
{
    if (flag)
        json_object_object_add(to, key, json_object_new_boolean(true));
}

static json_object *model_json(const struct shard_model *model)
{
    json_object *json = json_object_new_object();

    add_text(json, "name", model->name);
    add_text(json, "key", model->key);
    add_text(json, "version", model->version);
    add_number(json, "size", model->size);
    add_flag(json, "removed", model->removed);
    add_flag(json, "asleep", model->asleep);
    add_flag(json, "gone", model->gone);
    add_flag(json, "failed", model->failed);
    add_number(json, "home", model->home);
    add_text(json, "planned", model->planned);
    add_number(json, "planned_size", model->planned_size);
    add_number(json, "routed", model->routed);
    add_text(json, "why", model->why[0] != '\0' ? model->why : NULL);
    return json;
}

static json_object *list_json(const struct shard_list *list)
{
    json_object *json = json_object_new_array();

    for (int i = 0; i < list->count; i++) {
        json_object *entry = json_object_new_object();

        add_text(entry, "name", list->list[i].model->name);
        add_text(entry, "version", list->list[i].version);
        add_number(entry, "size", list->list[i].size);
        add_number(entry, "since", list->list[i].since);
        json_object_array_add(json, entry);
    }
    return json;
}

static json_object *shard_json(const struct shard *shard)
{
    json_object *json = json_object_new_object();

    add_number(json, "shard", shard->number);
    json_object_object_add(json, "now", list_json(&shard->now));
    json_object_object_add(json, "good", list_json(&shard->good));
    add_number(json, "epoch", shard->epoch);
    add_number(json, "update", shard->update);
    add_number(json, "done", shard->done);
    add_number(json, "route_epoch", shard->route_epoch);
    add_text(json, "application", shard->application);
    add_text(json, "good_application", shard->good_application);
    add_text(json, "bad_application", shard->bad_application);
    add_number(json, "program", shard->program);
    add_number(json, "good_program", shard->good_program);
    add_flag(json, "back", shard->back);
    add_flag(json, "insists", shard->insists);
    add_flag(json, "closed", shard->closed);
    return json;
}

json_object *shard_commands_json(const struct shard_commands *s)
{
    json_object *json = json_object_new_object();
    json_object *models = json_object_new_array(), *shards = json_object_new_array();

    add_number(json, "format", SHARD_COMMANDS_FORMAT);
    add_number(json, "epoch", s->epoch);
    add_number(json, "routed", s->routed);
    add_text(json, "application", s->application);
    add_flag(json, "pending", s->pending || s->at_once);
    add_flag(json, "repack", s->repack);
    for (int i = 0; i < s->count; i++)
        json_object_array_add(models, model_json(s->models[i]));
    for (int i = 0; i < s->shard_count; i++)
        json_object_array_add(shards, shard_json(s->shards[i]));
    json_object_object_add(json, "models", models);
    json_object_object_add(json, "shards", shards);
    return json;
}

/* ---- reading --------------------------------------------------------------------------------- */

static json_object *array_of(json_object *json, const char *key)
{
    json_object *array = json_object_object_get(json, key);

    return json_object_is_type(array, json_type_array) ? array : NULL;
}

static bool number_of(json_object *json, const char *key, int64_t max, int64_t *number)
{
    return json_get_int(json, key, 0, max, number);
}

static bool int_of(json_object *json, const char *key, int *number)
{
    int64_t value;

    if (!number_of(json, key, SHARD_PLAN_SHARDS_MAX, &value))
        return false;
    *number = (int)value;
    return true;
}

static bool flag_of(json_object *json, const char *key)
{
    return json_get_bool(json, key, false);
}

static int read_model(struct shard_commands *s, json_object *json, struct error *err)
{
    const char *name = json_get_string(json, "name"), *key = json_get_string(json, "key");
    const char *version = json_get_string(json, "version");
    const char *planned = json_get_string(json, "planned"), *why = json_get_string(json, "why");
    struct shard_model *model;

    if (!shard_name_ok(name) || !shard_key_ok(key) || !shard_name_ok(version) ||
        (planned != NULL && !shard_name_ok(planned)))
        return error_set(err, "a model has no name, key or version");
    if (shard_model_named(s, name) != NULL || shard_model_keyed(s, key) != NULL ||
        s->count >= SHARD_COMMANDS_MODELS_MAX)
        return error_set(err, "model %s or its key is there twice", error_value(name).text);
    model = shard_model_add(s, name, key);
    if (model == NULL || shard_text_set(&model->version, version) != 0 ||
        (planned != NULL && shard_text_set(&model->planned, planned) != 0))
        return error_set(err, "out of memory");
    model->removed = flag_of(json, "removed");
    model->asleep = flag_of(json, "asleep") && !model->removed && s->options.idle > 0;
    model->gone = shard_model_is_off(model) && flag_of(json, "gone");
    model->failed = flag_of(json, "failed");
    snprintf(model->why, sizeof(model->why), "%s", why != NULL ? why : "");
    error_clean(model->why);
    if (!number_of(json, "size", SHARD_PLAN_SIZE_MAX, &model->size) || model->size < 1 ||
        !number_of(json, "planned_size", SHARD_PLAN_SIZE_MAX, &model->planned_size) ||
        !int_of(json, "home", &model->home) || !int_of(json, "routed", &model->routed))
        return error_set(err, "model %s has no size or no shard", error_value(name).text);
    return 0;
}

/* Each entry is there since an update that has been said: since at most that one. */
static int read_list(struct shard_commands *s, json_object *array, int64_t most,
                     struct shard_list *list)
{
    size_t count = array != NULL ? json_object_array_length(array) : 0;

    if (array == NULL || count > SHARD_COMMANDS_MODELS_MAX)
        return -1;
    for (size_t i = 0; i < count; i++) {
        json_object *json = json_object_array_get_idx(array, i);
        const char *name = json_get_string(json, "name"), *version;
        struct shard_model *model = name != NULL ? shard_model_named(s, name) : NULL;
        int64_t size, since;

        version = json_get_string(json, "version");
        if (model == NULL || !shard_name_ok(version) ||
            (i > 0 && strcmp(list->list[i - 1].model->name, model->name) >= 0) ||
            !number_of(json, "size", SHARD_PLAN_SIZE_MAX, &size) || size < 1 ||
            !number_of(json, "since", most, &since) || since < 1 ||
            shard_list_add(list, model, version, size, since) != 0)
            return -1;
    }
    return 0;
}

static int read_texts(struct shard *shard, json_object *json)
{
    const char *text = json_get_string(json, "application");
    const char *good = json_get_string(json, "good_application");
    const char *bad = json_get_string(json, "bad_application");

    if (text == NULL || good == NULL)
        return -1;
    return shard_text_set(&shard->application, text) != 0 ||
                   shard_text_set(&shard->good_application, good) != 0 ||
                   (bad != NULL && shard_text_set(&shard->bad_application, bad) != 0)
               ? -1
               : 0;
}

/* What its commands have made true: none has an epoch that has not been given yet. */
static bool epochs_of(struct shard *shard, json_object *json, int64_t most)
{
    return number_of(json, "epoch", most, &shard->epoch) &&
           number_of(json, "update", most, &shard->update) &&
           number_of(json, "done", shard->update, &shard->done) &&
           number_of(json, "route_epoch", most, &shard->route_epoch);
}

/* Records of before do not have them. */
static void programs_of(struct shard *shard, json_object *json, int64_t most)
{
    number_of(json, "program", most, &shard->program);
    number_of(json, "good_program", most, &shard->good_program);
}

static int read_shard(struct shard_commands *s, json_object *json, struct error *err)
{
    struct shard *shard;
    int number = 0;

    if (!int_of(json, "shard", &number) || number < 1 || shard_numbered(s, number) != NULL)
        return error_set(err, "a shard has no number, or one is there twice");
    shard = shard_add(s, number);
    if (shard == NULL)
        return error_set(err, "out of memory");
    if (!epochs_of(shard, json, s->epoch) || read_texts(shard, json) != 0 ||
        read_list(s, array_of(json, "now"), shard->update, &shard->now) != 0 ||
        read_list(s, array_of(json, "good"), shard->done, &shard->good) != 0)
        return error_set(err, "shard_%d has no list, application or epoch", number);
    programs_of(shard, json, s->epoch);
    shard->back = flag_of(json, "back");
    shard->insists = flag_of(json, "insists");
    shard->closed = flag_of(json, "closed") && shard->now.count == 0;
    if ((shard->now.count > 0 && shard->epoch == 0) || (shard->back && shard->epoch == 0))
        return error_set(err, "shard_%d has models before its first epoch", number);
    shard->repeat = shard->epoch > 0;
    shard->repeat_route = shard->route_epoch > s->routed;
    return 0;
}

/* A route leads to a shard that has the model, and all of whose replicas have had it. */
static bool has_route(const struct shard *shard, const struct shard_model *model)
{
    const struct shard_entry *entry = shard != NULL ? shard_list_find(&shard->now, model) : NULL;

    return entry != NULL && entry->since <= shard->done;
}

static int check_models(const struct shard_commands *s, struct error *err)
{
    for (int i = 0; i < s->count; i++) {
        const struct shard_model *model = s->models[i];
        const struct shard *home = shard_numbered(s, model->home);
        const struct shard *routed = shard_numbered(s, model->routed);

        if (model->home > 0 &&
            (home == NULL || model->planned == NULL || model->planned_size < 1 || model->gone))
            return error_set(err, "model %s belongs to shard_%d, which there is not",
                             error_value(model->name).text, model->home);
        if (model->routed > 0 && !has_route(routed, model))
            return error_set(err, "requests for model %s go to shard_%d, which does not have it",
                             error_value(model->name).text, model->routed);
    }
    return 0;
}

/* The job before had models on demand, and this one has not. */
static bool wakes_all(const struct shard_commands *s)
{
    for (int i = 0; i < s->count && s->options.idle <= 0; i++)
        if (!s->models[i]->gone && !s->models[i]->failed && s->models[i]->home == 0)
            return true;
    return false;
}

static int read_all(struct shard_commands *s, json_object *record, struct error *err)
{
    const char *application = json_get_string(record, "application");
    json_object *models = array_of(record, "models"), *shards = array_of(record, "shards");
    int64_t format;

    if (!json_get_int(record, "format", SHARD_COMMANDS_FORMAT, SHARD_COMMANDS_FORMAT, &format))
        return error_set(err, "its format is not %d", SHARD_COMMANDS_FORMAT);
    if (application == NULL || models == NULL || shards == NULL ||
        !number_of(record, "epoch", EPOCH_MAX, &s->epoch) ||
        !number_of(record, "routed", s->epoch, &s->routed))
        return error_set(err, "it has no models, shards, application or epoch");
    if (shard_text_set(&s->application, application) != 0)
        return error_set(err, "out of memory");
    for (size_t i = 0; i < json_object_array_length(models); i++)
        if (read_model(s, json_object_array_get_idx(models, i), err) != 0)
            return -1;
    for (size_t i = 0; i < json_object_array_length(shards); i++)
        if (read_shard(s, json_object_array_get_idx(shards, i), err) != 0)
            return -1;
    s->at_once = flag_of(record, "pending") || wakes_all(s);
    s->repack = flag_of(record, "repack");
    return check_models(s, err);
}

struct shard_commands *shard_commands_read(const struct shard_commands_options *options,
                                           json_object *record, struct error *err)
{
    struct shard_commands *s = shard_commands_create(options);

    if (s == NULL) {
        error_set(err, "out of memory");
        return NULL;
    }
    /* Nobody waits for a plan of the last leader. */
    s->planned = -options->window;
    if (read_all(s, record, err) != 0) {
        error_prefix(err, "record of a service");
        shard_commands_destroy(s);
        return NULL;
    }
    return s;
}

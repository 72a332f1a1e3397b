/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The brain of a service with shards (shard_commands.h): models, shards, operations. */
#include "lib/shard_commands_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- life ------------------------------------------------------------------------------------ */

struct shard_commands *shard_commands_create(const struct shard_commands_options *options)
{
    struct shard_commands *s = calloc(1, sizeof(*s));

    if (s == NULL || shard_text_set(&s->application, "") != 0) {
        free(s);
        return NULL;
    }
    s->options = *options;
    return s;
}

void shard_commands_destroy(struct shard_commands *s)
{
    if (s == NULL)
        return;
    while (s->shard_count > 0)
        shard_drop(s, s->shard_count - 1);
    for (int i = 0; i < s->count; i++)
        shard_model_destroy(s->models[i]);
    free(s->models);
    free(s->keys);
    free(s->shards);
    free(s->buckets);
    free(s->application);
    free(s);
}

static void mark(const struct shard_list *list)
{
    for (int i = 0; i < list->count; i++)
        list->list[i].model->used = true;
}

static int keep_used(struct shard_model **list, int count)
{
    int kept = 0;

    for (int i = 0; i < count; i++)
        if (list[i]->used)
            list[kept++] = list[i];
    return kept;
}

static void drop_models(struct shard_commands *s)
{
    int kept = keep_used(s->keys, s->count);

    if (kept == s->count)
        return;
    for (int i = 0, to = 0; i < s->count; i++) {
        if (s->models[i]->used)
            s->models[to++] = s->models[i];
        else
            shard_model_destroy(s->models[i]);
    }
    s->count = kept;
}

/* A shard that never had a list, and one that was deleted. */
static bool is_over(const struct shard *shard)
{
    if (shard->now.count > 0 || shard->want_count > 0 || shard->route_changes)
        return false;
    return shard->epoch == 0 || (shard->closed && shard->update == shard->done && !shard->back);
}

void shard_commands_sweep(struct shard_commands *s, double now)
{
    for (int i = 0; i < s->shard_count; i++) {
        s->shards[i]->want_count = 0;
        s->shards[i]->route_changes = false;
    }
    for (int i = 0; i < s->count; i++) {
        struct shard_model *model = s->models[i];
        struct shard *home = shard_numbered(s, model->home);
        struct shard *routed = shard_numbered(s, model->routed);

        model->used = !model->gone || model->asleep || model->routed > 0;
        if (home != NULL)
            home->want_count++;
        if (routed != NULL)
            routed->route_changes = true; /* it has a route */
    }
    for (int i = s->shard_count - 1; i >= 0; i--) {
        if (!is_over(s->shards[i])) {
            mark(&s->shards[i]->now);
            mark(&s->shards[i]->good);
            continue;
        }
        shard_drop(s, i);
        if (s->refused > 0 && s->options.idle > 0)
            s->at_once = true;
        else if (s->refused > 0)
            shard_commands_wait(s, now);
    }
    drop_models(s);
}

/* ---- operations ------------------------------------------------------------------------------ */

void shard_commands_wait(struct shard_commands *s, double now)
{
    if (!s->pending)
        s->since = now;
    s->pending = true;
}

static int refuse(const struct shard_commands *s, const struct shard_model_spec *spec,
                  const char *key, int64_t size, struct error *err)
{
    const struct shard_model *named, *keyed;

    if (!shard_name_ok(spec->name))
        return error_set(err,
                         "'%s' is no name of a model: up to %d letters, digits and ._-, a letter "
                         "or digit first",
                         error_value(spec->name).text, SHARD_NAME_MAX);
    if (!shard_name_ok(spec->version))
        return error_set(err,
                         "'%s' is no version of %s: up to %d letters, digits and ._-, a letter or "
                         "digit first",
                         error_value(spec->version).text, error_value(spec->name).text,
                         SHARD_NAME_MAX);
    if (!shard_key_ok(key))
        return error_set(err,
                         "'%s' is no key of %s: up to %d letters, digits and ._-/:@+ without '..', "
                         "a letter or digit first",
                         error_value(key).text, error_value(spec->name).text, SHARD_KEY_MAX);
    named = shard_model_named(s, spec->name);
    keyed = shard_model_keyed(s, key);
    if (keyed != NULL && keyed != named)
        return error_set(err, "key '%s' of model %s is the one of model %s: give each its own",
                         error_value(key).text, error_value(spec->name).text,
                         error_value(keyed->name).text);
    if (named != NULL && keyed == NULL)
        return error_set(err, "model %s has the key '%s', not '%s': remove it first",
                         error_value(spec->name).text, error_value(named->key).text,
                         error_value(key).text);
    if (size > s->options.capacity)
        return error_set(err, "%s %s needs %" PRId64 " bytes, and a shard has %" PRId64,
                         error_value(spec->name).text, error_value(spec->version).text, size,
                         s->options.capacity);
    if (named == NULL && s->count >= SHARD_COMMANDS_MODELS_MAX)
        return error_set(err, "model %s is one too many: there are %d",
                         error_value(spec->name).text, s->count);
    return 0;
}

int shard_commands_put(struct shard_commands *s, const struct shard_model_spec *spec, double now,
                       struct error *err)
{
    int64_t size = shard_plan_size(0, spec->given, spec->files, s->options.default_size);
    const char *key = spec->key != NULL ? spec->key : spec->name;
    struct shard_model *model;

    if (refuse(s, spec, key, size, err) != 0)
        return -1;
    model = shard_model_named(s, spec->name);
    /* The same once more. What was measured stays. */
    if (model != NULL && !model->removed && !model->failed &&
        strcmp(model->version, spec->version) == 0)
        return 0;
    if (model == NULL) {
        model = shard_model_add(s, spec->name, key);
        if (model != NULL)
            model->asleep = s->options.idle > 0;
    }
    if (model == NULL || shard_text_set(&model->version, spec->version) != 0)
        return error_set(err, "out of memory");
    model->size = size;
    model->removed = model->failed = false;
    model->gone = model->asleep;
    model->why[0] = '\0';
    s->counts.operations++;
    shard_commands_wait(s, now);
    return 0;
}

int shard_commands_remove(struct shard_commands *s, const char *name, double now, struct error *err)
{
    struct shard_model *model = shard_model_named(s, name);

    if (model == NULL || model->removed)
        return error_set(err, "there is no model '%s'", error_value(name).text);
    model->removed = true;
    model->asleep = false;
    s->counts.operations++;
    shard_commands_wait(s, now);
    return 0;
}

void shard_commands_measured(struct shard_commands *s, const char *name, const char *version,
                             int64_t size, double now)
{
    struct shard_model *model = shard_model_named(s, name);

    size = shard_plan_size(size, 0, 0, 0);
    if (model == NULL || model->removed || size <= 0 || size == model->size ||
        strcmp(model->version, version) != 0)
        return;
    model->size = size;
    /* Its shard may have too little room: that is seen when it is planned. */
    shard_commands_wait(s, now);
}

static void forget_bad_application(struct shard *shard)
{
    free(shard->bad_application);
    shard->bad_application = NULL;
}

static int set_application(struct shard_commands *s, const char *text, double now)
{
    if (shard_text_set(&s->application, text) != 0)
        return -1;
    s->counts.operations++;
    shard_commands_wait(s, now);
    return 0;
}

int shard_commands_application(struct shard_commands *s, const char *text, double now)
{
    bool failed = false;

    for (int i = 0; i < s->shard_count; i++) {
        failed = failed || s->shards[i]->bad_application != NULL;
        forget_bad_application(s->shards[i]);
    }
    return strcmp(s->application, text) != 0 || failed ? set_application(s, text, now) : 0;
}

/* A shard that has that application, or could not get ready with it, stays as it is. */
static int begin_shard(struct shard *shard, const char *text)
{
    if (strcmp(shard->application, text) == 0 ||
        (shard->bad_application != NULL && strcmp(shard->bad_application, text) == 0))
        return 0;
    forget_bad_application(shard);
    return shard_text_set(&shard->application, text) != 0
               ? -1
               : shard_text_set(&shard->good_application, text);
}

int shard_commands_begin(struct shard_commands *s, const char *text, bool anew, double now)
{
    if (strcmp(s->application, text) == 0)
        return 0; /* shards that do not have it come to it */
    for (int i = 0; anew && i < s->shard_count; i++)
        if (begin_shard(s->shards[i], text) != 0)
            return -1;
    return set_application(s, text, now);
}

void shard_commands_flush(struct shard_commands *s)
{
    for (int i = 0; i < s->count; i++)
        s->models[i]->failed = false;
    for (int i = 0; i < s->shard_count; i++) {
        forget_bad_application(s->shards[i]);
        s->shards[i]->insists = s->shards[i]->update != s->shards[i]->done;
    }
    s->at_once = true;
}

void shard_commands_repack(struct shard_commands *s)
{
    s->repack = s->at_once = true;
}

/* Something is about to come to it, or to leave it. */
static bool is_busy(const struct shard_commands *s, const struct shard *shard)
{
    if (shard->update != shard->done || shard->back || shard->closed)
        return true;
    for (int i = 0; i < shard->now.count; i++)
        if (shard->now.list[i].model->home != shard->number)
            return true;
    for (int i = 0; i < s->count; i++)
        if (s->models[i]->home == shard->number &&
            shard_list_find(&shard->now, s->models[i]) == NULL)
            return true;
    return false;
}

static int check_shard(const struct shard_commands *s, int number, struct error *err)
{
    const struct shard *to = shard_numbered(s, number);

    return to != NULL && to->epoch > 0 ? 0 : error_set(err, "there is no shard_%d", number);
}

/* Can it leave its shard for that one? *size: what it needs there. */
static int check_move(const struct shard_commands *s, const struct shard_model *model, int number,
                      int64_t *size, struct error *err)
{
    const struct shard *to = shard_numbered(s, number), *from = shard_numbered(s, model->home);
    const struct shard_entry *entry = from != NULL ? shard_list_find(&from->now, model) : NULL;

    if (entry == NULL || model->routed != model->home || model->removed)
        return error_set(err, "model %s is not served, or moves already", model->name);
    if (is_busy(s, to) || is_busy(s, from))
        return error_set(err, "shard_%d or shard_%d changes: try again when it is done",
                         model->home, number);
    /* It may have been measured since. */
    *size = strcmp(model->planned, entry->version) == 0 ? model->planned_size : entry->size;
    return 0;
}

static int64_t room_of(const struct shard_commands *s, int number)
{
    return s->options.capacity - shard_list_size(&shard_numbered(s, number)->now);
}

/* What it has there comes to the other shard. A later version follows by the next plan. */
static void move(struct shard_commands *s, struct shard_model *model, int shard)
{
    model->home = shard;
    s->counts.operations++;
    s->moved = true;
}

static struct shard_model *find_model(const struct shard_commands *s, const char *name,
                                      struct error *err)
{
    struct shard_model *model = shard_name_ok(name) ? shard_model_named(s, name) : NULL;

    if (model == NULL)
        error_set(err, "there is no model '%s'", error_value(name).text);
    return model;
}

int shard_commands_move(struct shard_commands *s, const char *name, int shard, struct error *err)
{
    struct shard_model *model = find_model(s, name, err);
    int64_t size;

    if (model == NULL || check_shard(s, shard, err) != 0)
        return -1;
    if (model->home == shard)
        return error_set(err, "model %s is in shard_%d already", model->name, shard);
    if (check_move(s, model, shard, &size, err) != 0)
        return -1;
    if (size > room_of(s, shard))
        return error_set(err, "%s needs %" PRId64 " bytes, and shard_%d has room for %" PRId64,
                         model->name, size, shard, room_of(s, shard));
    move(s, model, shard);
    return 0;
}

int shard_commands_move_all(struct shard_commands *s, char *const *names, int shard,
                            struct error *err)
{
    int64_t size = 0, all = 0;
    struct shard_model *model;

    if (check_shard(s, shard, err) != 0)
        return -1;
    for (char *const *name = names; *name != NULL; name++) {
        model = find_model(s, *name, err);
        if (model == NULL)
            return -1;
        if (model->home == shard && !model->removed)
            continue;
        if (check_move(s, model, shard, &size, err) != 0)
            return -1;
        all += size;
    }
    if (all > room_of(s, shard))
        return error_set(err,
                         "they need %" PRId64 " bytes more, and shard_%d has room for %" PRId64,
                         all, shard, room_of(s, shard));
    for (char *const *name = names; *name != NULL; name++) {
        model = shard_model_named(s, *name);
        if (model->home != shard)
            move(s, model, shard);
    }
    return 0;
}

/* ---- facts ----------------------------------------------------------------------------------- */

void shard_commands_ready(struct shard_commands *s, int shard, int ready, int64_t oldest)
{
    struct shard *its = shard_numbered(s, shard);

    if (its == NULL)
        return;
    its->ready = ready;
    its->oldest = oldest;
}

void shard_commands_routed(struct shard_commands *s, int64_t epoch)
{
    if (epoch > s->routed && epoch <= s->epoch)
        s->routed = epoch;
    for (int i = 0; i < s->shard_count; i++)
        if (s->shards[i]->route_epoch <= s->routed)
            s->shards[i]->repeat_route = false;
}

int shard_commands_updated(struct shard_commands *s, int shard, int64_t epoch, double now)
{
    struct shard *its = shard_numbered(s, shard);

    if (its == NULL || epoch != its->update || (its->done == epoch && !its->back))
        return 0;
    if (shard_list_copy(&its->good, &its->now) != 0 ||
        shard_text_set(&its->good_application, its->application) != 0)
        return -1;
    its->good_program = its->program;
    its->done = epoch;
    its->back = its->insists = its->repeat = false;
    shard_commands_sweep(s, now);
    return 0;
}

/* What the shard had of a model before the update that failed, and has had all the time since.
 * NULL: nothing. */
static const struct shard_entry *entry_before(const struct shard *shard,
                                              const struct shard_model *model)
{
    const struct shard_entry *now = shard_list_find(&shard->now, model);
    const struct shard_entry *good = shard_list_find(&shard->good, model);

    return now != NULL && good != NULL && now->since == good->since ? good : NULL;
}

/* The model is as it was before the update that failed. */
static int revert(struct shard_commands *s, struct shard *shard, struct shard_model *model,
                  const char *why)
{
    const struct shard_entry *now = shard_list_find(&shard->now, model);
    const struct shard_entry *before = entry_before(shard, model);
    const struct shard *routed = shard_numbered(s, model->routed);

    /* It was not a part of the update, or is the same in both. */
    if (now == NULL || (before != NULL && strcmp(now->version, before->version) == 0))
        return 0;
    model->failed = strcmp(model->version, now->version) == 0;
    snprintf(model->why, sizeof(model->why), "shard_%d did not get ready with %s: %s",
             shard->number, error_value(now->version).text, why);
    model->home = before != NULL ? shard->number : 0;
    if (before == NULL && routed != NULL && routed != shard) {
        before = shard_list_find(&routed->now, model);
        model->home = before != NULL ? routed->number : 0;
    }
    if (before == NULL)
        return 0;
    model->planned_size = before->size;
    return shard_text_set(&model->planned, before->version);
}

/* The list is as before, without what has left it: that may be gone from running replicas, too. */
static int go_back(struct shard *shard)
{
    struct shard_list list = {0};

    for (int i = 0; i < shard->good.count; i++) {
        const struct shard_entry *e = &shard->good.list[i];

        if (entry_before(shard, e->model) != NULL &&
            shard_list_add(&list, e->model, e->version, e->size, e->since) != 0) {
            shard_list_clear(&list);
            return -1;
        }
    }
    shard_list_clear(&shard->now);
    shard->now = list;
    return shard_list_copy(&shard->good, &shard->now);
}

int shard_commands_failed(struct shard_commands *s, int shard, int64_t epoch, const char *why,
                          double now)
{
    struct shard *its = shard_numbered(s, shard);
    char clean[160];

    if (its == NULL || epoch != its->update || its->done == epoch || its->back)
        return 0;
    snprintf(clean, sizeof(clean), "%s", why != NULL ? why : "");
    error_clean(clean);
    for (int i = 0; i < s->count; i++)
        if (s->models[i]->home == shard && !s->models[i]->removed &&
            revert(s, its, s->models[i], clean) != 0)
            return -1;
    if (strcmp(its->application, its->good_application) != 0 &&
        (shard_text_set(&its->bad_application, its->application) != 0 ||
         shard_text_set(&its->application, its->good_application) != 0))
        return -1;
    its->program = its->good_program;
    if (go_back(its) != 0)
        return -1;
    its->epoch = ++s->epoch;
    its->closed = its->now.count == 0;
    its->update = its->closed ? its->epoch : its->done;
    its->back = its->repeat = true;
    s->at_once = true; /* what was planned beside it may have another place now */
    shard_commands_sweep(s, now);
    return 0;
}

/* ---- what others read ------------------------------------------------------------------------ */

int shard_commands_count(const struct shard_commands *s)
{
    return s->count;
}

static struct shard_model_view view_of(const struct shard_commands *s,
                                       const struct shard_model *model)
{
    const struct shard *home = shard_numbered(s, model->home);
    const struct shard_entry *entry = home != NULL ? shard_list_find(&home->now, model) : NULL;

    return (struct shard_model_view){
        .name = model->name,
        .key = model->key,
        .version = model->version,
        .has = entry != NULL ? entry->version : NULL,
        .shard = model->home,
        .routed = model->routed,
        .size = model->size,
        .why = model->why,
        .removed = model->removed,
        .asleep = model->asleep,
    };
}

struct shard_model_view shard_commands_at(const struct shard_commands *s, int i)
{
    return view_of(s, s->models[i]);
}

struct shard_model_view shard_commands_named(const struct shard_commands *s, const char *name)
{
    const struct shard_model *model = shard_name_ok(name) ? shard_model_named(s, name) : NULL;

    return model != NULL ? view_of(s, model) : (struct shard_model_view){0};
}

int64_t shard_commands_bytes(const struct shard_commands *s, int shard)
{
    const struct shard *its = shard_numbered(s, shard);

    return its != NULL ? shard_list_size(&its->now) : 0;
}

struct shard_program shard_commands_program(const struct shard_commands *s, int shard)
{
    const struct shard *its = shard_numbered(s, shard);

    if (its == NULL)
        return (struct shard_program){0};
    return (struct shard_program){
        .application = its->application,
        .since = its->program,
        .reached = strcmp(its->application, s->application) == 0 &&
                   (its->program == its->good_program || its->done == 0),
        .failed = its->bad_application != NULL && strcmp(its->bad_application, s->application) == 0,
    };
}

const char *shard_commands_wanted(const struct shard_commands *s)
{
    return s->application;
}

int shard_commands_shards(const struct shard_commands *s)
{
    return s->shard_count;
}

struct shard_commands_counts shard_commands_counts(const struct shard_commands *s)
{
    return s->counts;
}

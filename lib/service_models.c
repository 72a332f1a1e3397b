/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A service: the models of its repository, as far as they are served (service.h). */
#include "lib/service_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json_get.h"
#include "lib/shard_plan.h"

static int refuse(struct service *s, const char *name, const char *why)
{
    struct service_refusal *more = realloc(s->refusals,
                                           ((size_t)s->refusal_count + 1) * sizeof(*more));

    if (more == NULL)
        return -1;
    s->refusals = more;
    more += s->refusal_count;
    more->name = strdup(name);
    more->why = strdup(why);
    if (more->name == NULL || more->why == NULL) {
        free(more->name);
        free(more->why);
        return -1;
    }
    error_clean(more->why);
    s->refusal_count++;
    return 0;
}

void service_clear_refusals(struct service *s)
{
    for (int i = 0; i < s->refusal_count; i++) {
        free(s->refusals[i].name);
        free(s->refusals[i].why);
    }
    free(s->refusals);
    s->refusals = NULL;
    s->refusal_count = 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Models that there were, and are not in the repository any more. */
static int remove_others(struct service *s, const char **names, int count, double now)
{
    int all = shard_commands_count(s->brain);
    char **gone = calloc((size_t)all + 1, sizeof(*gone));
    int status = gone != NULL ? 0 : -1, found = 0;

    for (int i = 0; status == 0 && i < all; i++) {
        const char *name = shard_commands_at(s->brain, i).name;

        if (count > 0 && bsearch(&name, names, (size_t)count, sizeof(*names), compare_names))
            continue;
        gone[found] = strdup(name);
        status = gone[found] != NULL ? 0 : -1;
        found += status == 0;
    }
    for (int i = 0; i < found; i++) {
        if (status == 0)
            shard_commands_remove(s->brain, gone[i], now, NULL);
        if (gone[i] != NULL)
            json_object_object_del(s->measured, gone[i]);
        free(gone[i]);
    }
    free(gone);
    return status;
}

/* It would be one more than there may be. */
static bool is_too_many(const struct service *s, const struct service_model *model)
{
    return shard_commands_count(s->brain) >= SHARD_COMMANDS_MODELS_MAX &&
           shard_commands_named(s->brain, model->name).name == NULL;
}

/* One line for all that are. */
static int refuse_others(struct service *s, const char *name)
{
    char why[160];

    snprintf(why, sizeof(why),
             "a service has at most %d models: this one and %d others are left out, all the rest "
             "goes on",
             SHARD_COMMANDS_MODELS_MAX, s->left_out - 1);
    return refuse(s, name, why);
}

/* From now on servers may say how much it takes, or may not. */
static void note_given(struct service *s, const struct service_model *model)
{
    json_object *said;
    bool known = json_object_object_get_ex(s->measured, model->name, &said);

    if (model->given > 0 && (!known || said != NULL))
        json_object_object_add(s->measured, model->name, NULL);
    else if (model->given <= 0 && known && said == NULL)
        json_object_object_del(s->measured, model->name);
}

static int put(struct service *s, const struct service_model *model, double now)
{
    const struct shard_model_spec spec = {model->name, model->version, model->key, model->given,
                                          model->files};
    struct error err = {""};

    if (model->why != NULL)
        return refuse(s, model->name, model->why);
    if (shard_commands_put(s->brain, &spec, now, &err) != 0)
        return refuse(s, model->name, err.text);
    /* Of a version that there was already: somebody has measured it. */
    note_given(s, model);
    if (model->given > 0)
        shard_commands_measured(s->brain, model->name, model->version, model->given, now);
    return 0;
}

/* A version that has failed is tried again only when somebody asks for it (flush). */
static bool has_failed(const struct service *s, const struct service_model *model)
{
    struct shard_model_view view = shard_commands_named(s->brain, model->name);

    return view.name != NULL && view.why[0] != '\0' && !view.removed &&
           strcmp(view.version, model->version) == 0;
}

static bool is_withdrawn(const struct service *s, const char *name)
{
    return json_object_object_get_ex(s->withdrawn, name, NULL);
}

/* -1: out of memory. */
static int put_all(struct service *s, const struct service_model *list, int count, double now)
{
    const char *first = NULL;
    int status = 0;

    s->left_out = 0;
    for (int i = 0; status == 0 && i < count; i++) {
        if (is_withdrawn(s, list[i].name)) {
            status = refuse(s, list[i].name, "it has been withdrawn: `selastic serve` serves it");
            continue;
        }
        if (list[i].why == NULL && is_too_many(s, &list[i])) {
            first = s->left_out++ == 0 ? list[i].name : first;
            continue;
        }
        if (list[i].why != NULL || !has_failed(s, &list[i]))
            status = put(s, &list[i], now);
    }
    return status == 0 && first != NULL ? refuse_others(s, first) : status;
}

/* What is not in the repository any more is forgotten. */
static int keep_withdrawn(struct service *s, const struct service_model *list, int count)
{
    json_object *kept = json_object_new_object(), *key;

    for (int i = 0; i < count; i++)
        if (json_object_object_get_ex(s->withdrawn, list[i].name, &key))
            json_object_object_add(kept, list[i].name, json_object_get(key));
    if (json_object_object_length(kept) != json_object_object_length(s->withdrawn))
        s->record_due = true;
    json_object_put(s->withdrawn);
    s->withdrawn = kept;
    return kept != NULL ? 0 : -1;
}

int service_models(struct service *s, const struct service_model *list, int count, double now)
{
    const char **names = calloc((size_t)count + 1, sizeof(*names));
    int status = names != NULL ? keep_withdrawn(s, list, count) : -1, there = 0;

    if (status != 0) {
        free(names);
        return -1;
    }
    service_clear_refusals(s);
    for (int i = 0; i < count; i++)
        if (!is_withdrawn(s, list[i].name))
            names[there++] = list[i].name;
    qsort(names, (size_t)there, sizeof(*names), compare_names);
    /* First what goes: its key may be another one's now. */
    status = remove_others(s, names, there, now);
    if (status == 0)
        status = put_all(s, list, count, now);
    free(names);
    if (s->fresh && count > 0) {
        s->fresh = false;
        shard_commands_flush(s->brain);
    }
    return status;
}

/* NULL: there is none. */
static const char *model_with_key(const struct service *s, const char *key)
{
    for (int i = 0; i < shard_commands_count(s->brain); i++) {
        struct shard_model_view view = shard_commands_at(s->brain, i);

        if (strcmp(view.key, key) == 0 && !view.removed)
            return view.name;
    }
    json_object_object_foreach (s->withdrawn, name, its)
        if (strcmp(json_object_get_string(its), key) == 0)
            return name;
    return NULL;
}

const char *service_model(const struct service *s, const char *name, const char *key,
                          struct error *err)
{
    if (name != NULL && shard_name_ok(name) &&
        (is_withdrawn(s, name) || shard_commands_named(s->brain, name).name != NULL))
        return name;
    if (name == NULL && key != NULL && (name = model_with_key(s, key)) != NULL)
        return name;
    error_set(err, "there is no model%s '%s'", name == NULL ? " with the key" : "",
              error_value(name != NULL  ? name
                          : key != NULL ? key
                                        : "")
                  .text);
    return NULL;
}

int service_withdraw(struct service *s, const char *model, double now)
{
    struct shard_model_view view = shard_commands_named(s->brain, model);
    json_object *key;

    if (is_withdrawn(s, model) || view.name == NULL)
        return 0;
    key = json_object_new_string(view.key);
    if (key == NULL || json_object_object_add(s->withdrawn, model, key) != 0) {
        json_object_put(key);
        return -1;
    }
    s->record_due = true;
    shard_commands_remove(s->brain, view.name, now, NULL);
    return 0;
}

static bool is_named(char *const *names, const char *name)
{
    while (*names != NULL && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

int service_place(struct service *s, int shard, char *const *names, double now, int *changes,
                  struct error *err)
{
    int64_t before = shard_commands_counts(s->brain).operations;

    if (shard_commands_move_all(s->brain, names, shard, err) != 0)
        return -1;
    for (int i = 0; i < shard_commands_count(s->brain); i++) {
        struct shard_model_view view = shard_commands_at(s->brain, i);

        if (view.shard == shard && !view.removed && !is_named(names, view.name) &&
            service_withdraw(s, view.name, now) != 0)
            return error_set(err, "out of memory");
    }
    *changes = (int)(shard_commands_counts(s->brain).operations - before);
    return 0;
}

void service_serve(struct service *s, const char *model)
{
    if (!is_withdrawn(s, model))
        return;
    json_object_object_del(s->withdrawn, model);
    s->record_due = true;
}

static void measured(struct service *s, const char *name, const char *version, int64_t bytes,
                     double now)
{
    struct shard_model_view view = shard_commands_named(s->brain, name);
    json_object *before, *said;
    int64_t most = 0;

    if (view.name == NULL || strcmp(view.version, version) != 0)
        return;
    if (json_object_object_get_ex(s->measured, name, &before)) {
        const char *of = json_get_string(before, "version");

        if (before == NULL)
            return;
        if (of != NULL && strcmp(of, version) == 0)
            json_get_int(before, "bytes", 1, SHARD_PLAN_SIZE_MAX, &most);
    }
    if (bytes <= most)
        return;
    said = json_object_new_object();
    json_object_object_add(said, "version", json_object_new_string(version));
    json_object_object_add(said, "bytes", json_object_new_int64(bytes));
    json_object_object_add(s->measured, name, said);
    shard_commands_measured(s->brain, name, version, bytes, now);
}

void service_measured(struct service *s, json_object *sizes, double now)
{
    if (!json_object_is_type(sizes, json_type_object))
        return;
    json_object_object_foreach (sizes, name, said) {
        const char *version = json_get_string(said, "version");
        int64_t bytes;

        if (version != NULL && shard_name_ok(name) &&
            json_get_int(said, "bytes", 1, SHARD_PLAN_SIZE_MAX, &bytes))
            measured(s, name, version, bytes, now);
    }
}

int service_left_out(const struct service *s)
{
    return s->left_out;
}

char *service_used(const struct service *s)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    for (int i = 0; out != NULL && i < shard_commands_count(s->brain); i++) {
        struct shard_model_view view = shard_commands_at(s->brain, i);

        fprintf(out, "%s/%s\n", view.name, view.version);
        if (view.has != NULL && strcmp(view.has, view.version) != 0)
            fprintf(out, "%s/%s\n", view.name, view.has);
    }
    for (int i = 0; out != NULL && i < s->shard_count; i++)
        for (int k = 0; k < s->shards[i].count; k++)
            fprintf(out, "%s/%s\n", s->shards[i].items[k].name, s->shards[i].items[k].version);
    if (out != NULL && fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

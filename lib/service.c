/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A service: its life, and what is said to it (service.h). */
#include "lib/service_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json_get.h"
#include "lib/shard_plan.h"

/* ---- shards ---------------------------------------------------------------------------------- */

struct service_shard *service_shard(const struct service *s, int number)
{
    for (int i = 0; i < s->shard_count; i++)
        if (s->shards[i].number == number)
            return &s->shards[i];
    return NULL;
}

struct service_shard *service_shard_add(struct service *s, int number)
{
    struct service_shard *shard = service_shard(s, number);
    int i = s->shard_count;

    if (shard != NULL)
        return shard;
    if (s->shard_count == s->shard_room) {
        int room = s->shard_room > 0 ? 2 * s->shard_room : 16;
        struct service_shard *more = realloc(s->shards, (size_t)room * sizeof(*more));

        if (more == NULL)
            return NULL;
        s->shards = more;
        s->shard_room = room;
    }
    for (; i > 0 && s->shards[i - 1].number > number; i--)
        s->shards[i] = s->shards[i - 1];
    s->shard_count++;
    s->shards[i] = (struct service_shard){.number = number};
    s->shards[i].rollout.fail_fast = s->options.fail_fast;
    return &s->shards[i];
}

/* ---- models ---------------------------------------------------------------------------------- */

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

static void clear_refusals(struct service *s)
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
    clear_refusals(s);
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

struct shard_commands *service_brain(struct service *s)
{
    return s->brain;
}

/* ---- routers --------------------------------------------------------------------------------- */

bool service_router_lives(const struct service *s, const struct service_router *router, double now)
{
    (void)s;
    return router->name[0] != '\0' && now - router->heard < SERVICE_ROUTER_SILENT;
}

bool service_has_router(const struct service *s, double now)
{
    for (int i = 0; i < s->router_count; i++)
        if (service_router_lives(s, &s->routers[i], now))
            return true;
    return false;
}

static struct service_router *router_of(struct service *s, const char *name, double now)
{
    struct service_router *free_one = NULL;

    for (int i = 0; i < s->router_count; i++) {
        if (strcmp(s->routers[i].name, name) == 0)
            return &s->routers[i];
        if (!service_router_lives(s, &s->routers[i], now))
            free_one = &s->routers[i];
    }
    if (free_one == NULL && s->router_count < SERVICE_ROUTERS_MAX)
        free_one = &s->routers[s->router_count++];
    if (free_one == NULL)
        return NULL;
    json_object_put(free_one->asked);
    *free_one = (struct service_router){.heard = now};
    snprintf(free_one->name, sizeof(free_one->name), "%s", name);
    s->record_due = true;
    for (int i = 0; i < s->known_count; i++) /* what the one before has said is not its word */
        s->known[i].drained &= ~(1u << (free_one - s->routers));
    return free_one;
}

static bool is_named(json_object *names, const struct service_replica *replica)
{
    struct service_name name = service_replica_name(replica->shard, replica->start);

    for (size_t i = 0; i < json_object_array_length(names); i++) {
        json_object *one = json_object_array_get_idx(names, i);

        if (json_object_is_type(one, json_type_string) &&
            strcmp(json_object_get_string(one), name.text) == 0)
            return true;
    }
    return false;
}

/* A word about a table from before may be of a replica that was to get requests again since. */
static bool counts(const struct service *s, const struct service_known *known, int64_t revision)
{
    if (s->frozen)
        return true;
    if (known->replica.state != SERVICE_LEAVES && !known->ended)
        return false;
    return revision < 0 || (known->drains > 0 && revision >= known->drains);
}

bool service_routed(struct service *s, const char *router, int64_t epoch, int64_t revision,
                    json_object *drained, double now)
{
    struct service_router *own = router_of(s, router, now);

    if (own == NULL)
        return false;
    own->heard = now;
    if (epoch > own->epoch && epoch <= s->epoch)
        own->epoch = epoch;
    for (int i = 0; json_object_is_type(drained, json_type_array) && i < s->known_count; i++)
        if (counts(s, &s->known[i], revision) && is_named(drained, &s->known[i].replica))
            s->known[i].drained |= 1u << (own - s->routers);
    return true;
}

static bool is_drained_by_all(const struct service *s, const struct service_known *known,
                              double now)
{
    for (int i = 0; i < s->router_count; i++)
        if (service_router_lives(s, &s->routers[i], now) && (known->drained & (1u << i)) == 0)
            return false;
    return true;
}

bool service_is_drained(const struct service *s, int id, int start, double now)
{
    const struct service_known *known = NULL;

    for (int i = 0; known == NULL && i < s->known_count; i++)
        if (s->known[i].replica.id == id && s->known[i].replica.start == start)
            known = &s->known[i];
    if (!service_has_router(s, now) || service_holds(s)) /* nobody knows it so far */
        return true;
    if (known == NULL) /* it has come and is to go since the last run */
        return false;
    if (!known->served)
        return true;
    if (known->replica.state != SERVICE_LEAVES)
        return false;
    return s->router_count > 0 && is_drained_by_all(s, known, now);
}

void service_sessions(struct service *s, const char *router, json_object *sessions)
{
    for (int i = 0; i < s->router_count; i++) {
        if (strcmp(s->routers[i].name, router) != 0)
            continue;
        for (int k = 0; k < s->shard_count; k++) {
            char name[24];
            int64_t count = 0;

            snprintf(name, sizeof(name), "shard_%d", s->shards[k].number);
            json_get_int(sessions, name, 0, UINT32_MAX, &count);
            s->shards[k].sessions[i] = count;
        }
    }
}

void service_asked(struct service *s, const char *router, json_object *keys, bool all)
{
    for (int i = 0; i < s->router_count; i++) {
        if (strcmp(s->routers[i].name, router) != 0)
            continue;
        json_object_put(s->routers[i].asked);
        s->routers[i].asked = json_object_is_type(keys, json_type_array) ? json_object_get(keys)
                                                                         : NULL;
        s->routers[i].asked_all = all;
    }
}

/* ---- handover -------------------------------------------------------------------------------- */

void service_freeze(struct service *s, bool frozen)
{
    s->frozen = frozen;
    for (int i = 0; frozen && i < s->known_count; i++)
        if (s->known[i].replica.state != SERVICE_LEAVES && !s->known[i].ended)
            s->known[i].drained = 0;
}

bool service_is_left(const struct service *s, double now)
{
    for (int i = 0; s->frozen && i < s->known_count; i++)
        if (s->known[i].served && !is_drained_by_all(s, &s->known[i], now))
            return false;
    return s->frozen;
}

void service_hold(struct service *s, enum service_hold hold)
{
    if (!s->told)
        s->hold = hold;
}

bool service_holds(const struct service *s)
{
    return s->hold != SERVICE_HOLD_NONE;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct service_name service_replica_name(int shard, int start)
{
    struct service_name name;

    snprintf(name.text, sizeof(name.text), "shard_%d.%d", shard, start);
    return name;
}

int64_t service_revision(const struct service *s)
{
    return s->revision;
}

struct service *service_create(const struct service_options *options, json_object *record,
                               json_object *table, double now, struct error *err)
{
    struct service *s = calloc(1, sizeof(*s));
    bool made;

    if (s == NULL) {
        error_set(err, "out of memory");
        return NULL;
    }
    s->options = *options;
    s->name = strdup(options->name);
    s->keys = json_object_new_object();
    s->withdrawn = json_object_new_object();
    s->measured = json_object_new_object();
    s->fresh = record == NULL;
    s->first = true;
    made = s->name != NULL && s->keys != NULL && s->withdrawn != NULL && s->measured != NULL;
    if (made && record != NULL) {
        made = service_read(s, record, table, now, err) == 0;
    } else if (made) {
        s->brain = shard_commands_create(&options->brain);
        made = s->brain != NULL;
    }
    if (made && shard_commands_application(s->brain, options->application, now) != 0)
        made = false;
    s->options.name = s->options.application = NULL; /* the caller's */
    if (made)
        return s;
    if (record == NULL || s->brain != NULL)
        error_set(err, "out of memory");
    service_destroy(s);
    return NULL;
}

void service_destroy(struct service *s)
{
    if (s == NULL)
        return;
    shard_commands_destroy(s->brain);
    for (int i = 0; i < s->shard_count; i++) {
        for (int k = 0; k < s->shards[i].count; k++) {
            free(s->shards[i].items[k].name);
            free(s->shards[i].items[k].version);
        }
        free(s->shards[i].items);
    }
    free(s->shards);
    for (int i = 0; i < s->known_count; i++)
        free((char *)(uintptr_t)s->known[i].replica.address);
    free(s->known);
    for (int i = 0; i < s->router_count; i++)
        json_object_put(s->routers[i].asked);
    clear_refusals(s);
    json_object_put(s->keys);
    json_object_put(s->withdrawn);
    json_object_put(s->measured);
    free(s->ends);
    free(s->table);
    free(s->name);
    free(s);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A service: its record, its table of routes, and what users see of it (service.h). */
#include "lib/service_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json_get.h"
#include "lib/shard_plan.h"

#define NUMBER_MAX (INT64_MAX / 2)

static void add_text(json_object *to, const char *key, const char *text)
{
    json_object_object_add(to, key, json_object_new_string(text));
}

static void add_number(json_object *to, const char *key, int64_t number)
{
    json_object_object_add(to, key, json_object_new_int64(number));
}

static void add_flag(json_object *to, const char *key, bool flag)
{
    json_object_object_add(to, key, json_object_new_boolean(flag));
}

static void add_shard(json_object *to, const char *key, int number)
{
    char name[24];

    snprintf(name, sizeof(name), "shard_%d", number);
    add_text(to, key, name);
}

/* A new string, and the object is put. NULL: out of memory. */
static char *text_of(json_object *json, int flags)
{
    const char *text = json_object_to_json_string_ext(json, flags | JSON_C_TO_STRING_NOSLASHESCAPE);
    char *copy = text != NULL ? strdup(text) : NULL;

    json_object_put(json);
    return copy;
}

/* ---- record ---------------------------------------------------------------------------------- */

static json_object *shard_json(const struct service_shard *shard)
{
    const struct rollout *rollout = &shard->rollout;
    json_object *json = json_object_new_object(), *list = json_object_new_array();

    add_number(json, "shard", shard->number);
    add_number(json, "version", rollout->version);
    add_number(json, "before", rollout->before);
    add_number(json, "failures", rollout->failures);
    add_flag(json, "back", rollout->back);
    add_flag(json, "told", rollout->told);
    add_flag(json, "done", rollout->done);
    add_number(json, "epoch", shard->epoch);
    add_number(json, "replicas", shard->scale.replicas);
    for (int i = 0; i < shard->count; i++) {
        json_object *item = json_object_new_object();

        add_text(item, "name", shard->items[i].name);
        add_text(item, "version", shard->items[i].version);
        json_object_array_add(list, item);
    }
    json_object_object_add(json, "list", list);
    return json;
}

/* Who has been told to end is not to be ready again for the next leader: a router may have drained
 * it. */
static json_object *ends_json(const struct service *s)
{
    json_object *list = json_object_new_array();

    for (int i = 0; i < s->known_count; i++)
        if (s->known[i].replica.start > 0 &&
            (s->known[i].ended || s->known[i].replica.state == SERVICE_LEAVES))
            json_object_array_add(list, json_object_new_int(s->known[i].replica.start));
    return list;
}

static json_object *routers_json(const struct service *s, double now)
{
    json_object *list = json_object_new_array();

    for (int i = 0; i < s->router_count; i++)
        if (service_router_lives(s, &s->routers[i], now)) {
            json_object *one = json_object_new_object();

            add_text(one, "name", s->routers[i].name);
            add_number(one, "epoch", s->routers[i].epoch);
            json_object_array_add(list, one);
        }
    return list;
}

char *service_record_text(const struct service *s, double now)
{
    json_object *json = json_object_new_object(), *shards = json_object_new_array();

    add_number(json, "format", SERVICE_FORMAT);
    add_number(json, "revision", s->revision);
    json_object_object_add(json, "routers", routers_json(s, now));
    add_number(json, "job", s->options.job);
    json_object_object_add(json, "ends", ends_json(s));
    json_object_object_add(json, "withdrawn", json_object_get(s->withdrawn));
    service_add_applied(s, json);
    for (int i = 0; i < s->shard_count; i++)
        json_object_array_add(shards, shard_json(&s->shards[i]));
    json_object_object_add(json, "shards", shards);
    json_object_object_add(json, "brain", shard_commands_json(s->brain));
    return text_of(json, JSON_C_TO_STRING_PLAIN);
}

/* The brain does not always say it again. */
static int read_list(struct service_shard *shard, json_object *list)
{
    size_t count = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;

    if (!json_object_is_type(list, json_type_array) || count > SHARD_COMMANDS_MODELS_MAX)
        return -1;
    shard->items = calloc(count + 1, sizeof(*shard->items));
    for (size_t i = 0; shard->items != NULL && i < count; i++) {
        json_object *one = json_object_array_get_idx(list, i);
        const char *name = json_get_string(one, "name"), *version = json_get_string(one, "version");
        struct shard_item *item = &shard->items[shard->count++];

        if (!shard_name_ok(name) || !shard_name_ok(version))
            return -1;
        item->name = strdup(name);
        item->version = strdup(version);
        if (item->name == NULL || item->version == NULL)
            return -1;
    }
    return shard->items != NULL ? 0 : -1;
}

static int read_shard(struct service *s, json_object *json, struct error *err)
{
    struct service_shard *shard;
    struct rollout *rollout;
    int64_t number, failures, replicas = 0;

    if (!json_get_int(json, "shard", 1, SHARD_PLAN_SHARDS_MAX, &number) ||
        service_shard(s, (int)number) != NULL)
        return error_set(err, "a shard has no number, or is there twice");
    shard = service_shard_add(s, (int)number);
    if (shard == NULL)
        return error_set(err, "out of memory");
    rollout = &shard->rollout;
    if (!json_get_int(json, "version", 0, NUMBER_MAX, &rollout->version) ||
        !json_get_int(json, "before", 0, NUMBER_MAX, &rollout->before) ||
        !json_get_int(json, "failures", 0, ROLLOUT_REPLICAS_MAX, &failures))
        return error_set(err, "shard_%d has no version", (int)number);
    rollout->failures = (int)failures;
    rollout->back = json_get_bool(json, "back", false);
    rollout->told = json_get_bool(json, "told", false);
    rollout->done = json_get_bool(json, "done", false);
    if (!json_get_int(json, "epoch", 0, NUMBER_MAX, &shard->epoch) ||
        read_list(shard, json_object_object_get(json, "list")) != 0)
        return error_set(err, "shard_%d has no list", (int)number);
    if (!json_get_int(json, "replicas", 0, ROLLOUT_REPLICAS_MAX, &replicas) ||
        replicas < s->options.scale.least)
        replicas = s->options.scale.least;
    if (replicas > s->options.scale.most)
        replicas = s->options.scale.most;
    shard->scale.replicas = (int)replicas;
    rollout->replicas = shard->count > 0 ? (int)replicas : 0;
    return rollout_limits((int)replicas, &s->options.surge, &s->options.unavailable,
                          &rollout->limits, err);
}

/* Those of another job are not ours, though they have the same numbers. */
static int read_ends(struct service *s, json_object *record)
{
    json_object *list = json_object_object_get(record, "ends");
    size_t count = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
    int64_t job = 0;

    if (!json_get_int(record, "job", 0, UINT32_MAX, &job) || job != s->options.job)
        count = 0;
    s->ends = calloc(count + 1, sizeof(*s->ends));
    for (size_t i = 0; s->ends != NULL && i < count; i++)
        s->ends[s->end_count++] = json_object_get_int(json_object_array_get_idx(list, i));
    return s->ends != NULL ? 0 : -1;
}

/* They are taken to have been heard just now: who has gone is not waited for in vain for long. */
static void read_routers(struct service *s, json_object *list, double now)
{
    for (size_t i = 0; json_object_is_type(list, json_type_array) &&
                       i < json_object_array_length(list) && i < SERVICE_ROUTERS_MAX;
         i++) {
        json_object *one = json_object_array_get_idx(list, i);
        const char *name = json_get_string(one, "name");
        struct service_router *router = &s->routers[s->router_count];

        if (name == NULL || name[0] == '\0' || strlen(name) >= sizeof(router->name))
            continue;
        *router = (struct service_router){.heard = now};
        snprintf(router->name, sizeof(router->name), "%s", name);
        json_get_int(one, "epoch", 0, NUMBER_MAX, &router->epoch);
        s->router_count++;
    }
}

/* What routers were told last: a file that is not there, or is torn, is no harm. */
static void read_table(struct service *s, json_object *table)
{
    json_object *routes = NULL;
    int64_t revision;

    if (json_get_int(table, "revision", 0, NUMBER_MAX, &revision) && revision > s->revision)
        s->revision = revision;
    json_get_int(table, "epoch", 0, NUMBER_MAX, &s->epoch);
    if (!json_object_object_get_ex(table, "routes", &routes) ||
        !json_object_is_type(routes, json_type_array))
        return;
    for (size_t i = 0; i < json_object_array_length(routes); i++) {
        json_object *one = json_object_array_get_idx(routes, i);
        const char *key = json_get_string(one, "key"), *shard = json_get_string(one, "shard");
        int number = shard != NULL && strncmp(shard, "shard_", 6) == 0 ? atoi(shard + 6) : 0;

        if (shard_key_ok(key) && number > 0 && number <= SHARD_PLAN_SHARDS_MAX)
            json_object_object_add(s->keys, key, json_object_new_int(number));
    }
}

/* What is no model is none that there is either. */
static int read_withdrawn(struct service *s, json_object *record)
{
    json_object *models = json_object_object_get(record, "withdrawn");

    if (!json_object_is_type(models, json_type_object))
        return 0;
    json_object_object_foreach (models, name, key)
        if (shard_name_ok(name) && json_object_is_type(key, json_type_string) &&
            json_object_object_add(s->withdrawn, name, json_object_get(key)) != 0)
            return -1;
    return 0;
}

int service_read(struct service *s, json_object *record, json_object *table, double now,
                 struct error *err)
{
    json_object *shards, *brain;
    int64_t format;

    if (!json_get_int(record, "format", SERVICE_FORMAT, SERVICE_FORMAT, &format) ||
        !json_object_object_get_ex(record, "shards", &shards) ||
        !json_object_is_type(shards, json_type_array) ||
        !json_object_object_get_ex(record, "brain", &brain) ||
        !json_get_int(record, "revision", 0, NUMBER_MAX, &s->revision))
        return error_set(err, "record of a service: its format is not %d, or it has no shards",
                         SERVICE_FORMAT);
    s->brain = shard_commands_read(&s->options.brain, brain, err);
    if (s->brain == NULL)
        return -1;
    for (size_t i = 0; i < json_object_array_length(shards); i++)
        if (read_shard(s, json_object_array_get_idx(shards, i), err) != 0) {
            error_prefix(err, "record of a service");
            shard_commands_destroy(s->brain);
            s->brain = NULL;
            return -1;
        }
    if (read_ends(s, record) != 0 || read_withdrawn(s, record) != 0)
        return error_set(err, "out of memory");
    read_table(s, table);
    s->revision++; /* whatever was told after the record */
    read_routers(s, json_object_object_get(record, "routers"), now);
    return 0;
}

/* ---- table of routes ------------------------------------------------------------------------- */

static json_object *replica_json(const struct service_known *known)
{
    const struct service_replica *replica = &known->replica;
    json_object *json = json_object_new_object();

    add_text(json, "name", service_replica_name(replica->shard, replica->start).text);
    add_text(json, "address", replica->address != NULL ? replica->address : "");
    add_number(json, "port", replica->port);
    add_text(json, "state",
             replica->state == SERVICE_READY && !known->ended ? "ready" : "draining");
    return json;
}

static json_object *replicas_json(const struct service *s, int number)
{
    json_object *list = json_object_new_array();

    for (int i = 0; i < s->known_count; i++) {
        const struct service_known *known = &s->known[i];
        bool ready = known->replica.state == SERVICE_READY;

        if (known->replica.shard == number && known->replica.port > 0 &&
            (ready ||
             (known->served && known->replica.state == SERVICE_LEAVES && !known->replica.failed)))
            json_object_array_add(list, replica_json(known));
    }
    return list;
}

/* Keys that go nowhere by now. Routers tell whether somebody asks for them. */
static json_object *asleep_json(const struct service *s)
{
    json_object *list = json_object_new_array();

    for (int i = 0; i < shard_commands_count(s->brain); i++) {
        struct shard_model_view view = shard_commands_at(s->brain, i);

        if (!view.removed && !json_object_object_get_ex(s->keys, view.key, NULL))
            json_object_array_add(list, json_object_new_string(view.key));
    }
    return list;
}

char *service_table_text(const struct service *s, int64_t revision)
{
    json_object *json = json_object_new_object(), *shards = json_object_new_array();
    json_object *routes = json_object_new_array();

    add_text(json, "service", s->name);
    add_number(json, "revision", revision);
    add_number(json, "epoch", s->epoch);
    for (int i = 0; i < s->shard_count; i++) {
        json_object *shard = json_object_new_object();

        add_shard(shard, "name", s->shards[i].number);
        json_object_object_add(shard, "replicas", replicas_json(s, s->shards[i].number));
        json_object_array_add(shards, shard);
    }
    json_object_object_foreach (s->keys, key, number) {
        json_object *route = json_object_new_object();

        add_text(route, "key", key);
        add_shard(route, "shard", json_object_get_int(number));
        json_object_array_add(routes, route);
    }
    json_object_object_add(json, "shards", shards);
    json_object_object_add(json, "routes", routes);
    if (s->options.brain.idle > 0)
        json_object_object_add(json, "asleep", asleep_json(s));
    return text_of(json, JSON_C_TO_STRING_PLAIN);
}

/* ---- for users ------------------------------------------------------------------------------- */

static json_object *model_json(const struct shard_model_view *view)
{
    json_object *json = json_object_new_object();

    add_text(json, "name", view->name);
    add_text(json, "key", view->key);
    add_text(json, "version", view->version);
    add_text(json, "has", view->has != NULL ? view->has : "");
    add_number(json, "shard", view->shard);
    add_number(json, "routed", view->routed);
    add_number(json, "size", view->size);
    add_text(json, "why",
             view->removed                          ? "it has been removed"
             : view->asleep && view->why[0] == '\0' ? "nobody asks for it"
                                                    : view->why);
    return json;
}

static json_object *shard_view(const struct service *s, const struct service_shard *shard)
{
    const struct rollout *rollout = &shard->rollout;
    json_object *json = json_object_new_object();

    add_shard(json, "name", shard->number);
    add_number(json, "shard", shard->number);
    add_number(json, "models", shard->count);
    add_number(json, "bytes", shard_commands_bytes(s->brain, shard->number));
    add_number(json, "capacity", s->options.brain.capacity);
    add_number(json, "version", rollout->version);
    add_number(json, "ready", shard->ready);
    add_number(json, "replicas", rollout->replicas);
    add_number(json, "updated", service_updated_count(s, shard));
    add_number(json, "program", shard_commands_program(s->brain, shard->number).since);
    add_text(json, "update", rollout->done ? "done" : rollout->back ? "goes back" : "goes on");
    add_text(json, "waits", shard->waits);
    return json;
}

json_object *service_counts(const struct service *s)
{
    struct shard_commands_counts counts = shard_commands_counts(s->brain);
    json_object *json = json_object_new_object();

    add_number(json, "operations", counts.operations);
    add_number(json, "lists", counts.lists);
    add_number(json, "updates", counts.updates);
    add_number(json, "disruptive", counts.disruptive);
    add_number(json, "routes", counts.routes);
    return json;
}

void service_describe(const struct service *s, double now, json_object *into)
{
    json_object *models = json_object_new_array(), *shards = json_object_new_array();
    json_object *refused = json_object_new_array();

    for (int i = 0; i < shard_commands_count(s->brain); i++) {
        struct shard_model_view view = shard_commands_at(s->brain, i);

        json_object_array_add(models, model_json(&view));
    }
    for (int i = 0; i < s->shard_count; i++)
        json_object_array_add(shards, shard_view(s, &s->shards[i]));
    for (int i = 0; i < s->refusal_count; i++) {
        json_object *one = json_object_new_object();

        add_text(one, "name", s->refusals[i].name);
        add_text(one, "why", s->refusals[i].why);
        json_object_array_add(refused, one);
    }
    add_text(into, "service", s->name);
    add_number(into, "epoch", s->epoch);
    add_number(into, "revision", s->revision);
    json_object_object_add(into, "counts", service_counts(s));
    service_describe_program(s, into);
    json_object_object_add(into, "models", models);
    json_object_object_add(into, "shards", shards);
    json_object_object_add(into, "refused", refused);
    json_object_object_add(into, "routers", routers_json(s, now));
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A service: its life, and what is said to it (service.h). */
#include "lib/service_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json_get.h"

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

void service_stop(struct service *s)
{
    s->stops = true;
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
    if (made && service_begin_application(s, options->application, record, now) != 0)
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
    service_clear_refusals(s);
    json_object_put(s->keys);
    json_object_put(s->withdrawn);
    json_object_put(s->measured);
    free(s->ends);
    free(s->table);
    free(s->name);
    free(s->file);
    free(s->applied.from);
    free(s->applied.to);
    free(s);
}

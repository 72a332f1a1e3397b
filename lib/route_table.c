/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table that a leader makes for routers (route_table.h). */
#include "lib/route_table.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/haproxy_answers.h"
#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/number.h"
#include "lib/shard_commands.h"
#include "lib/shard_plan.h"
#include "lib/world.h"

#define PORT_MAX    65535
#define REPLICA_MAX 128 /* of a replica, so that its server's name fits */
#define JOB_MAX     32
#define WHAT_MAX    256

#define PREFIX "shard_"
/* How a path with a key ends, after what is before the key. */
#define KEY_PATTERN "([^/]+)"

/* ---- names ----------------------------------------------------------------------------------- */

/* 0: it is no name of a shard. */
static int shard_number(const char *name)
{
    return name != NULL ? haproxy_shard_number(name, (int)strlen(name)) : 0;
}

static bool address_ok(const char *address)
{
    struct in6_addr parsed;

    return address != NULL && (inet_pton(AF_INET, address, &parsed) == 1 ||
                               inet_pton(AF_INET6, address, &parsed) == 1);
}

char *route_server_name(const struct route_replica *replica, char name[ROUTE_SERVER_NAME])
{
    int begin = snprintf(name, ROUTE_SERVER_NAME, "%s-", replica->name);

    snprintf(name + begin, ROUTE_SERVER_NAME - (size_t)begin, "%s-%d", replica->address,
             replica->port);
    for (char *c = name + begin; *c != '\0'; c++)
        if (*c == ':')
            *c = '_';
    return name;
}

bool route_server_address(const char *name, char address[ROUTE_ADDRESS], int *port)
{
    const char *last = strrchr(name, '-'), *before;

    if (last == NULL || number_parse(last + 1, strlen(last + 1), 1, PORT_MAX, port) != 0)
        return false;
    before = memrchr(name, '-', (size_t)(last - name));
    if (before == NULL || before == name || last - before - 1 >= ROUTE_ADDRESS)
        return false;
    snprintf(address, ROUTE_ADDRESS, "%.*s", (int)(last - before - 1), before + 1);
    for (char *c = address; *c != '\0'; c++)
        if (*c == '_')
            *c = ':';
    return address_ok(address);
}

/* ---- reading --------------------------------------------------------------------------------- */

static json_object *array_of(json_object *json, const char *key)
{
    json_object *value = NULL;

    return json_object_object_get_ex(json, key, &value) &&
                   json_object_is_type(value, json_type_array)
               ? value
               : NULL;
}

static int copy_text(char **to, const char *text, struct error *err)
{
    *to = strdup(text);
    return *to != NULL ? 0 : error_set(err, "out of memory");
}

static int read_head(struct route_table *table, json_object *json, struct error *err)
{
    const char *service = json_get_string(json, "service"), *job = json_get_string(json, "job");

    if (!shard_name_ok(service))
        return error_set(err, "service '%s' is no name of a service", error_value(service).text);
    if (job == NULL || strlen(job) > JOB_MAX || strspn(job, "0123456789_") != strlen(job))
        return error_set(err, "job '%s' is no job", error_value(job).text);
    if (!json_get_int(json, "term", 0, INT64_MAX, &table->term) ||
        !json_get_int(json, "revision", 0, INT64_MAX, &table->revision) ||
        !json_get_int(json, "epoch", 0, INT64_MAX, &table->epoch))
        return error_set(err, "term, revision and epoch have to be numbers from 0");
    return copy_text(&table->service, service, err) != 0 ? -1 : copy_text(&table->job, job, err);
}

/* ^/v2/models/([^/]+): haproxy is told what is before the key. */
static int read_pattern(struct route_table *table, const char *pattern, struct error *err)
{
    size_t length = strlen(pattern), end = strlen(KEY_PATTERN);

    if (pattern[0] != '^' || length <= end || strcmp(pattern + length - end, KEY_PATTERN) != 0)
        return error_set(err,
                         "route-by path '%s' has to be ^, a path that ends with /, and " KEY_PATTERN
                         ": ^/v2/models/" KEY_PATTERN,
                         error_value(pattern).text);
    table->by = HAPROXY_PATH;
    table->what = strndup(pattern + 1, length - end - 1);
    if (table->what == NULL)
        return error_set(err, "out of memory");
    if (length > WHAT_MAX || !haproxy_what_ok(HAPROXY_PATH, table->what))
        return error_set(err, "route-by path '%s' has to be of letters, digits and /._-",
                         error_value(pattern).text);
    return 0;
}

static int read_route_by(struct route_table *table, json_object *json, struct error *err)
{
    json_object *by = NULL;
    const char *header, *path, *member;

    json_object_object_get_ex(json, "route-by", &by);
    header = json_get_string(by, "header");
    path = json_get_string(by, "path");
    member = json_get_string(by, "json");
    if ((header != NULL) + (path != NULL) + (member != NULL) != 1)
        return error_set(err, "route-by has to say one of header, path and json");
    if (path != NULL)
        return read_pattern(table, path, err);
    table->by = header != NULL ? HAPROXY_HEADER : HAPROXY_JSON;
    if (!haproxy_what_ok(table->by, header != NULL ? header : member) ||
        strlen(header != NULL ? header : member) > WHAT_MAX)
        return error_set(err,
                         "route-by '%s' has to be a header of letters, digits, - and _, or a "
                         "member of the body such as $.model",
                         error_value(header != NULL ? header : member).text);
    return copy_text(&table->what, header != NULL ? header : member, err);
}

static int read_state(const char *state, bool *draining)
{
    *draining = state != NULL && strcmp(state, "draining") == 0;
    return *draining || (state != NULL && strcmp(state, "ready") == 0) ? 0 : -1;
}

static int read_replica(struct route_replica *replica, json_object *json, struct error *err)
{
    const char *name = json_get_string(json, "name"), *address = json_get_string(json, "address");
    int64_t port;

    if (!world_name_ok(name) || strlen(name) > REPLICA_MAX)
        return error_set(err, "'%s' is no name of a replica", error_value(name).text);
    if (!address_ok(address))
        return error_set(err, "replica %s has no address that is a number: '%s'", name,
                         error_value(address).text);
    if (!json_get_int(json, "port", 1, PORT_MAX, &port))
        return error_set(err, "replica %s has no port from 1 to %d", name, PORT_MAX);
    if (read_state(json_get_string(json, "state"), &replica->draining) != 0)
        return error_set(err, "replica %s is neither ready nor draining: '%s'", name,
                         error_value(json_get_string(json, "state")).text);
    replica->port = (int)port;
    return copy_text(&replica->name, name, err) != 0 ? -1
                                                     : copy_text(&replica->address, address, err);
}

static int read_shard(struct route_shard *shard, json_object *json, struct error *err)
{
    const char *name = json_get_string(json, "name"), *check = json_get_string(json, "check");
    json_object *replicas = array_of(json, "replicas");
    size_t count = replicas != NULL ? json_object_array_length(replicas) : 0;

    shard->number = shard_number(name);
    if (shard->number == 0)
        return error_set(err, "'%s' is no shard: shard_1 to shard_%d", error_value(name).text,
                         SHARD_PLAN_SHARDS_MAX);
    if (!haproxy_path_ok(check) || strlen(check) > WHAT_MAX)
        return error_set(err,
                         "%s has no check, a path of letters, digits and /._- that begins with /: "
                         "'%s'",
                         name, error_value(check).text);
    if (replicas == NULL || count > ROUTE_TABLE_REPLICAS_MAX)
        return error_set(err, "%s has no list of at most %d replicas", name,
                         ROUTE_TABLE_REPLICAS_MAX);
    shard->replicas = calloc(count + 1, sizeof(*shard->replicas));
    if (shard->replicas == NULL || copy_text(&shard->check, check, err) != 0)
        return error_set(err, "out of memory");
    for (size_t i = 0; i < count; i++) {
        shard->count = (int)i + 1;
        if (read_replica(&shard->replicas[i], json_object_array_get_idx(replicas, i), err) != 0)
            return error_prefix(err, "%s", name);
    }
    return 0;
}

static int compare_shards(const void *a, const void *b)
{
    const struct route_shard *x = a, *y = b;

    return (x->number > y->number) - (x->number < y->number);
}

static int read_shards(struct route_table *table, json_object *json, struct error *err)
{
    json_object *shards = array_of(json, "shards");
    size_t count = shards != NULL ? json_object_array_length(shards) : 0;

    if (shards == NULL || count > SHARD_PLAN_SHARDS_MAX)
        return error_set(err, "there is no list of at most %d shards", SHARD_PLAN_SHARDS_MAX);
    table->shards = calloc(count + 1, sizeof(*table->shards));
    if (table->shards == NULL)
        return error_set(err, "out of memory");
    for (size_t i = 0; i < count; i++) {
        table->shard_count = (int)i + 1;
        if (read_shard(&table->shards[i], json_object_array_get_idx(shards, i), err) != 0)
            return -1;
    }
    qsort(table->shards, count, sizeof(*table->shards), compare_shards);
    for (size_t i = 1; i < count; i++)
        if (table->shards[i].number == table->shards[i - 1].number)
            return error_set(err, "shard_%d is there twice", table->shards[i].number);
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A report names replicas, so no two have the same name. */
static int check_replicas(const struct route_table *table, struct error *err)
{
    size_t count = 0, next = 0;
    char **names;
    int status = 0;

    for (int i = 0; i < table->shard_count; i++)
        count += (size_t)table->shards[i].count;
    if (count > ROUTE_TABLE_REPLICAS_MAX)
        return error_set(err, "there are %zu replicas: at most %d", count,
                         ROUTE_TABLE_REPLICAS_MAX);
    names = calloc(count + 1, sizeof(*names));
    if (names == NULL)
        return error_set(err, "out of memory");
    for (int i = 0; i < table->shard_count; i++)
        for (int k = 0; k < table->shards[i].count; k++)
            names[next++] = table->shards[i].replicas[k].name;
    qsort(names, count, sizeof(*names), compare_names);
    for (size_t i = 1; i < count && status == 0; i++)
        if (strcmp(names[i], names[i - 1]) == 0)
            status = error_set(err, "replica %s is there twice", names[i]);
    free(names);
    return status;
}

static int read_route(const struct route_table *table, struct haproxy_route *route,
                      json_object *json, struct error *err)
{
    const char *key = json_get_string(json, "key"), *shard = json_get_string(json, "shard");

    if (!shard_key_ok(key))
        return error_set(err, "'%s' is no key of a model", error_value(key).text);
    route->shard = shard_number(shard);
    if (route_table_shard(table, route->shard) == NULL)
        return error_set(err, "key %s goes to '%s', which is no shard of the table",
                         error_value(key).text, error_value(shard).text);
    route->key = strdup(key);
    return route->key != NULL ? 0 : error_set(err, "out of memory");
}

static int read_asleep(struct haproxy_route *route, json_object *json, struct error *err)
{
    const char *key = json_object_is_type(json, json_type_string) ? json_object_get_string(json)
                                                                  : NULL;

    if (!shard_key_ok(key))
        return error_set(err, "'%s' is no key of a model", error_value(key).text);
    route->key = strdup(key);
    return route->key != NULL ? 0 : error_set(err, "out of memory");
}

static int read_each(struct route_table *table, json_object *routes, json_object *asleep,
                     struct error *err)
{
    size_t count = json_object_array_length(routes);
    size_t others = asleep != NULL ? json_object_array_length(asleep) : 0;

    for (size_t i = 0; i < count; i++, table->route_count++)
        if (read_route(table, &table->routes[i], json_object_array_get_idx(routes, i), err) != 0)
            return -1;
    for (size_t i = 0; i < others; i++, table->route_count++)
        if (read_asleep(&table->routes[count + i], json_object_array_get_idx(asleep, i), err) != 0)
            return -1;
    return 0;
}

static int read_routes(struct route_table *table, json_object *json, struct error *err)
{
    json_object *routes = array_of(json, "routes"), *asleep = array_of(json, "asleep");
    size_t count = routes != NULL ? json_object_array_length(routes) : 0;

    count += asleep != NULL ? json_object_array_length(asleep) : 0;
    table->on_demand = asleep != NULL;
    if (routes == NULL || count > ROUTE_TABLE_ROUTES_MAX)
        return error_set(err, "there is no list of at most %d routes", ROUTE_TABLE_ROUTES_MAX);
    table->routes = calloc(count + 1, sizeof(*table->routes));
    if (table->routes == NULL)
        return error_set(err, "out of memory");
    if (read_each(table, routes, asleep, err) != 0)
        return -1;
    qsort(table->routes, count, sizeof(*table->routes), haproxy_compare_routes);
    for (size_t i = 1; i < count; i++)
        if (haproxy_compare_routes(&table->routes[i - 1], &table->routes[i]) == 0)
            return error_set(err, "key %s is there twice", error_value(table->routes[i].key).text);
    return 0;
}

struct route_table *route_table_read(json_object *json, struct error *err)
{
    struct route_table *table;

    if (!json_object_is_type(json, json_type_object)) {
        error_set(err, "a table of routes is an object");
        return NULL;
    }
    table = calloc(1, sizeof(*table));
    if (table == NULL) {
        error_set(err, "out of memory");
        return NULL;
    }
    if (read_head(table, json, err) != 0 || read_route_by(table, json, err) != 0 ||
        read_shards(table, json, err) != 0 || check_replicas(table, err) != 0 ||
        read_routes(table, json, err) != 0) {
        route_table_destroy(table);
        return NULL;
    }
    return table;
}

struct route_table *route_table_parse(const char *text, size_t length, struct error *err)
{
    struct route_table *table = NULL;
    json_object *json = NULL;

    if (length > ROUTE_TABLE_TEXT_MAX)
        error_set(err, "a table of routes has at most %d bytes", ROUTE_TABLE_TEXT_MAX);
    else
        json = json_text_parse(text, length, err);
    if (json != NULL)
        table = route_table_read(json, err);
    json_object_put(json);
    return table;
}

/* ---- the way back ---------------------------------------------------------------------------- */

static json_object *shard_name(int number)
{
    char name[32];

    snprintf(name, sizeof(name), PREFIX "%d", number);
    return json_object_new_string(name);
}

static json_object *route_by_json(const struct route_table *table)
{
    json_object *json = json_object_new_object();
    char pattern[512];

    switch (table->by) {
    case HAPROXY_HEADER:
        json_object_object_add(json, "header", json_object_new_string(table->what));
        break;
    case HAPROXY_PATH:
        snprintf(pattern, sizeof(pattern), "^%s" KEY_PATTERN, table->what);
        json_object_object_add(json, "path", json_object_new_string(pattern));
        break;
    case HAPROXY_JSON:
        json_object_object_add(json, "json", json_object_new_string(table->what));
        break;
    }
    return json;
}

static json_object *shard_json(const struct route_shard *shard)
{
    json_object *json = json_object_new_object(), *replicas = json_object_new_array();

    json_object_object_add(json, "name", shard_name(shard->number));
    json_object_object_add(json, "check", json_object_new_string(shard->check));
    for (int i = 0; i < shard->count; i++) {
        const struct route_replica *replica = &shard->replicas[i];
        json_object *one = json_object_new_object();

        json_object_object_add(one, "name", json_object_new_string(replica->name));
        json_object_object_add(one, "address", json_object_new_string(replica->address));
        json_object_object_add(one, "port", json_object_new_int(replica->port));
        json_object_object_add(one, "state",
                               json_object_new_string(replica->draining ? "draining" : "ready"));
        json_object_array_add(replicas, one);
    }
    json_object_object_add(json, "replicas", replicas);
    return json;
}

json_object *route_table_json(const struct route_table *table)
{
    json_object *json = json_object_new_object(), *shards = json_object_new_array();
    json_object *routes = json_object_new_array(), *asleep = json_object_new_array();

    json_object_object_add(json, "service", json_object_new_string(table->service));
    json_object_object_add(json, "job", json_object_new_string(table->job));
    json_object_object_add(json, "term", json_object_new_int64(table->term));
    json_object_object_add(json, "revision", json_object_new_int64(table->revision));
    json_object_object_add(json, "epoch", json_object_new_int64(table->epoch));
    json_object_object_add(json, "route-by", route_by_json(table));
    for (int i = 0; i < table->shard_count; i++)
        json_object_array_add(shards, shard_json(&table->shards[i]));
    for (int i = 0; i < table->route_count; i++) {
        json_object *one;

        if (table->routes[i].shard == 0) {
            json_object_array_add(asleep, json_object_new_string(table->routes[i].key));
            continue;
        }
        one = json_object_new_object();
        json_object_object_add(one, "key", json_object_new_string(table->routes[i].key));
        json_object_object_add(one, "shard", shard_name(table->routes[i].shard));
        json_object_array_add(routes, one);
    }
    json_object_object_add(json, "shards", shards);
    json_object_object_add(json, "routes", routes);
    if (table->on_demand)
        json_object_object_add(json, "asleep", asleep);
    else
        json_object_put(asleep);
    return json;
}

/* ---- others ---------------------------------------------------------------------------------- */

const struct route_shard *route_table_shard(const struct route_table *table, int number)
{
    const struct route_shard wanted = {.number = number};

    if (table->shard_count == 0)
        return NULL;
    return bsearch(&wanted, table->shards, (size_t)table->shard_count, sizeof(wanted),
                   compare_shards);
}

bool route_table_follows(const struct route_table *table, const struct route_table *held)
{
    if (held == NULL)
        return true;
    return table->term != held->term ? table->term > held->term : table->revision > held->revision;
}

struct route_table *route_table_share(struct route_table *table)
{
    table->holders++;
    return table;
}

static void clear_shard(struct route_shard *shard)
{
    for (int i = 0; i < shard->count; i++) {
        free(shard->replicas[i].name);
        free(shard->replicas[i].address);
    }
    free(shard->replicas);
    free(shard->check);
}

void route_table_destroy(struct route_table *table)
{
    if (table == NULL || table->holders-- > 0)
        return;
    for (int i = 0; i < table->shard_count; i++)
        clear_shard(&table->shards[i]);
    haproxy_routes_free(table->routes, table->route_count);
    free(table->shards);
    free(table->service);
    free(table->job);
    free(table->what);
    free(table);
}

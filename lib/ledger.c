/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the policy of pools has learnt, and what the job has cost (ledger.h). */
#include "lib/ledger.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/json_get.h"
#include "lib/json_text.h"

#define VERSION 1
/* More than any job has, and far from what a double cannot count. */
#define MOST 1e15

struct ledger_pool *ledger_pool(struct ledger *ledger, const char *name)
{
    struct ledger_pool *pool;
    int i = 0;

    while (i < ledger->pool_count && strcmp(ledger->pools[i].name, name) != 0)
        i++;
    if (i == POOLS_MAX)
        return NULL;
    pool = &ledger->pools[i];
    if (i == ledger->pool_count) {
        ledger->pool_count++;
        *pool = (struct ledger_pool){0};
        snprintf(pool->name, sizeof(pool->name), "%s", name);
    }
    return pool;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* No more than can be read again. */
static void add_number(json_object *obj, const char *key, double value)
{
    json_object_object_add(obj, key, json_object_new_double(fmin(value, MOST)));
}

static json_object *spending_json(const struct spending *spending)
{
    json_object *array = json_object_new_array();

    for (int i = 0; i < spending->count; i++) {
        const struct spending_pool *pool = &spending->pools[i];
        json_object *obj = json_object_new_object();

        json_object_object_add(obj, "pool", json_object_new_string(pool->name));
        json_object_object_add(obj, "nodes", json_object_new_int(pool->nodes));
        add_number(obj, "price", pool->price);
        add_number(obj, "suspend", pool->suspend);
        add_number(obj, "node_seconds", pool->node_seconds);
        add_number(obj, "tail_seconds", pool->tail_seconds);
        add_number(obj, "cost", pool->cost);
        json_object_array_add(array, obj);
    }
    return array;
}

static json_object *speed_json(const struct speed *speed)
{
    json_object *array = json_object_new_array();

    for (int i = 0; i < speed->count; i++) {
        json_object *obj = json_object_new_object();

        json_object_object_add(obj, "nodes", json_object_new_int(speed->points[i].nodes));
        add_number(obj, "rate", speed->points[i].rate);
        add_number(obj, "seconds", speed->points[i].seconds);
        json_object_array_add(array, obj);
    }
    return array;
}

/* unix_zero: Unix time at 0 of the leader's clock. */
static void add_retry(json_object *obj, const char *key, const struct retry *retry,
                      double unix_zero)
{
    json_object *said;

    if (retry->pause <= 0)
        return;
    said = json_object_new_object();
    add_number(said, "until", unix_zero + retry->after);
    add_number(said, "pause", retry->pause);
    json_object_object_add(obj, key, said);
}

static json_object *pools_json(const struct ledger *ledger, double unix_zero)
{
    json_object *obj = json_object_new_object();

    for (int i = 0; i < ledger->pool_count; i++) {
        const struct ledger_pool *pool = &ledger->pools[i];
        json_object *said = json_object_new_object();

        add_number(said, "boot", pool->boot);
        add_retry(said, "refused", &pool->refused, unix_zero);
        add_retry(said, "failed", &pool->failed, unix_zero);
        json_object_object_add(said, "why", json_object_new_string(pool->why));
        json_object_object_add(obj, pool->name, said);
    }
    return obj;
}

static json_object *memory_json(const struct pools_memory *memory, double now)
{
    json_object *obj = json_object_new_object();

    json_object_object_add(obj, "spot", json_object_new_int(memory->spot));
    json_object_object_add(obj, "before_loss", json_object_new_int(memory->before_loss));
    if (memory->below)
        add_number(obj, "below_for", now - memory->below_since);
    json_object_object_add(obj, "exhausted", json_object_new_boolean(memory->exhausted));
    return obj;
}

char *ledger_text(const struct ledger *ledger, const struct ledger_run *own, double now,
                  double unix_now)
{
    json_object *obj = json_object_new_object();
    char *text;

    json_object_object_add(obj, "version", json_object_new_int(VERSION));
    json_object_object_add(obj, "job", json_object_new_int64(own->job));
    json_object_object_add(obj, "restarts", json_object_new_int64(own->restarts));
    add_number(obj, "time", unix_now - (now - ledger->spending.at));
    json_object_object_add(obj, "spending", spending_json(&ledger->spending));
    json_object_object_add(obj, "speed", speed_json(&ledger->speed));
    json_object_object_add(obj, "pools", pools_json(ledger, unix_now - now));
    json_object_object_add(obj, "memory", memory_json(&ledger->memory, now));
    text = strdup(json_object_to_json_string_ext(obj, JSON_C_TO_STRING_PLAIN));
    json_object_put(obj);
    return text;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The number under key, if it is one that can be: 0 to MOST. */
static bool get_number(json_object *obj, const char *key, double *value)
{
    *value = json_get_double(obj, key, -1);
    return *value >= 0 && *value <= MOST;
}

static bool get_count(json_object *obj, const char *key, int *value)
{
    int64_t number;

    if (!json_get_int(obj, key, 0, SIZES_NODES_MAX, &number))
        return false;
    *value = (int)number;
    return true;
}

/* The array under key with at most so many objects; its length, -1 if there is none. */
static int get_array(json_object *obj, const char *key, int most, json_object **array)
{
    size_t length;

    if (!json_object_object_get_ex(obj, key, array) ||
        !json_object_is_type(*array, json_type_array))
        return -1;
    length = json_object_array_length(*array);
    return length <= (size_t)most ? (int)length : -1;
}

static bool read_spending(struct spending *spending, json_object *obj)
{
    json_object *array;
    int count = get_array(obj, "spending", SPENDING_MAX, &array);

    for (int i = 0; i < count; i++) {
        json_object *said = json_object_array_get_idx(array, (size_t)i);
        struct spending_pool *pool = &spending->pools[i];
        const char *name = json_get_string(said, "pool");

        if (name == NULL || strlen(name) > SPENDING_NAME_MAX ||
            !get_count(said, "nodes", &pool->nodes) || !get_number(said, "price", &pool->price) ||
            !get_number(said, "suspend", &pool->suspend) ||
            !get_number(said, "node_seconds", &pool->node_seconds) ||
            !get_number(said, "tail_seconds", &pool->tail_seconds) ||
            !get_number(said, "cost", &pool->cost))
            return false;
        strcpy(pool->name, name);
    }
    spending->count = count;
    return count >= 0;
}

static bool read_speed(struct speed *speed, json_object *obj)
{
    json_object *array;
    int count = get_array(obj, "speed", SPEED_POINTS_MAX, &array);

    for (int i = 0; i < count; i++) {
        json_object *said = json_object_array_get_idx(array, (size_t)i);
        double rate, seconds;
        int nodes;

        if (!get_count(said, "nodes", &nodes) || !get_number(said, "rate", &rate) ||
            !get_number(said, "seconds", &seconds))
            return false;
        speed_add(speed, nodes, rate * seconds, seconds);
    }
    return count >= 0;
}

static bool read_retry(struct retry *retry, json_object *obj, const char *key, double unix_zero)
{
    json_object *said;

    if (!json_object_object_get_ex(obj, key, &said))
        return true;
    if (!get_number(said, "until", &retry->after) || !get_number(said, "pause", &retry->pause))
        return false;
    retry->after = fmax(retry->after - unix_zero, 0);
    return true;
}

static bool read_pool(struct ledger_pool *pool, json_object *said, double unix_zero)
{
    const char *why = json_get_string(said, "why");

    snprintf(pool->why, sizeof(pool->why), "%s", why != NULL ? why : "");
    return why != NULL && get_number(said, "boot", &pool->boot) &&
           read_retry(&pool->refused, said, "refused", unix_zero) &&
           read_retry(&pool->failed, said, "failed", unix_zero);
}

static bool read_pools(struct ledger *ledger, json_object *obj, double unix_zero)
{
    json_object *pools;

    if (!json_object_object_get_ex(obj, "pools", &pools) ||
        !json_object_is_type(pools, json_type_object) ||
        json_object_object_length(pools) > POOLS_MAX)
        return false;
    json_object_object_foreach (pools, name, said)
        if (policy_check_pool_name(name, NULL) != 0 ||
            !read_pool(ledger_pool(ledger, name), said, unix_zero))
            return false;
    return true;
}

static bool read_memory(struct pools_memory *memory, json_object *obj, double now)
{
    json_object *said;
    double below;

    if (!json_object_object_get_ex(obj, "memory", &said) ||
        !get_count(said, "spot", &memory->spot) ||
        !get_count(said, "before_loss", &memory->before_loss))
        return false;
    memory->below = get_number(said, "below_for", &below);
    memory->below_since = memory->below ? now - below : 0;
    memory->exhausted = json_get_bool(said, "exhausted", false);
    return true;
}

/* Another run of the job has none of the nodes of the run before, and has lost none. */
static void begin_anew(struct ledger *ledger, double now)
{
    bool exhausted = ledger->memory.exhausted;

    spending_give_back(&ledger->spending);
    ledger->spending.at = now;
    ledger->memory = (struct pools_memory){.exhausted = exhausted};
}

int ledger_parse(struct ledger *ledger, const char *text, size_t len, const struct ledger_run *own,
                 double now, double unix_now, bool takeover, struct error *err)
{
    struct ledger read = {.spending = {0}};
    json_object *obj = json_text_parse(text, len, err);
    int64_t version, job = 0, restarts = 0;
    double time = 0;
    bool good;

    if (obj == NULL)
        return -1;
    if (json_get_int(obj, "version", 1, INT32_MAX, &version) && version != VERSION) {
        json_object_put(obj);
        return error_set(err, "it is of version %d, this release reads version %d", (int)version,
                         VERSION);
    }
    good = json_get_int(obj, "version", VERSION, VERSION, &version) &&
           json_get_int(obj, "job", 0, UINT32_MAX, &job) &&
           json_get_int(obj, "restarts", 0, UINT32_MAX, &restarts) &&
           get_number(obj, "time", &time) && read_spending(&read.spending, obj) &&
           read_speed(&read.speed, obj) && read_pools(&read, obj, unix_now - now) &&
           read_memory(&read.memory, obj, now);
    json_object_put(obj);
    if (!good)
        return error_set(err, "not the record of a job's pools");
    if (job != own->job)
        return error_set(err, "the record of the pools of job %" PRId64, job);
    read.spending.at = now - fmin(fmax(unix_now - time, 0), LEDGER_GAP_MAX);
    if (!takeover || restarts != own->restarts)
        begin_anew(&read, now);
    spending_run(&read.spending, now);
    *ledger = read;
    return 0;
}

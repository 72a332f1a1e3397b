/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the policy of pools has learnt, and what the job has cost (ledger.h). */
#include "lib/ledger.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/json_get.h"
#include "lib/json_text.h"

#define VERSION 1
/* More than any job has, and far from what a double cannot count. */
#define MOST 1e15

double ledger_boot(const struct ledger *ledger, const char *pool)
{
    for (int i = 0; i < ledger->boot_count; i++)
        if (strcmp(ledger->boots[i].name, pool) == 0)
            return ledger->boots[i].seconds;
    return 0;
}

void ledger_set_boot(struct ledger *ledger, const char *pool, double seconds)
{
    int i = 0;

    while (i < ledger->boot_count && strcmp(ledger->boots[i].name, pool) != 0)
        i++;
    if (i == POOLS_MAX)
        return;
    if (i == ledger->boot_count)
        ledger->boot_count++;
    snprintf(ledger->boots[i].name, sizeof(ledger->boots[i].name), "%s", pool);
    ledger->boots[i].seconds = seconds;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void add_number(json_object *obj, const char *key, double value)
{
    json_object_object_add(obj, key, json_object_new_double(value));
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

static json_object *boots_json(const struct ledger *ledger)
{
    json_object *obj = json_object_new_object();

    for (int i = 0; i < ledger->boot_count; i++)
        add_number(obj, ledger->boots[i].name, ledger->boots[i].seconds);
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

char *ledger_text(const struct ledger *ledger, double now, double unix_now)
{
    json_object *obj = json_object_new_object();
    char *text;

    json_object_object_add(obj, "version", json_object_new_int(VERSION));
    add_number(obj, "time", unix_now - (now - ledger->spending.at));
    json_object_object_add(obj, "spending", spending_json(&ledger->spending));
    json_object_object_add(obj, "speed", speed_json(&ledger->speed));
    json_object_object_add(obj, "boots", boots_json(ledger));
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

static bool read_boots(struct ledger *ledger, json_object *obj)
{
    json_object *boots;

    if (!json_object_object_get_ex(obj, "boots", &boots) ||
        !json_object_is_type(boots, json_type_object) ||
        json_object_object_length(boots) > POOLS_MAX)
        return false;
    json_object_object_foreach (boots, name, value) {
        double seconds;

        (void)value;
        if (policy_check_pool_name(name, NULL) != 0 || !get_number(boots, name, &seconds))
            return false;
        ledger_set_boot(ledger, name, seconds);
    }
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

int ledger_parse(struct ledger *ledger, const char *text, size_t len, double now, double unix_now,
                 bool goes_on, struct error *err)
{
    struct ledger read = {.spending = {0}};
    json_object *obj = json_text_parse(text, len, err);
    int64_t version;
    double time = 0;
    bool good;

    if (obj == NULL)
        return -1;
    good = json_get_int(obj, "version", VERSION, VERSION, &version) &&
           get_number(obj, "time", &time) && read_spending(&read.spending, obj) &&
           read_speed(&read.speed, obj) && read_boots(&read, obj) &&
           read_memory(&read.memory, obj, now);
    json_object_put(obj);
    if (!good)
        return error_set(err, "not the record of a job's pools");
    read.spending.at = fmin(now - (unix_now - time), now);
    if (!goes_on)
        begin_anew(&read, now);
    spending_run(&read.spending, now);
    *ledger = read;
    return 0;
}

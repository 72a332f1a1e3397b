/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a replica needs, in messages, files and requests (role_needs.h). */
#include "lib/role_needs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json_get.h"
#include "lib/roles.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MIB          1048576.0

/* The most that a job file can say. */
static const struct {
    const char *key;
    int64_t max;
} limits[] = {
    {"cpus", 65535}, {"gpus", 1024}, {"memory", INT64_C(1) << 40}, {"processes", ROLES_TASKS_MAX}};

/* ---- a whole gang ---------------------------------------------------------------------------- */

void role_needs_add(json_object *into, const struct slots_gang *gang)
{
    json_object *needs = json_object_new_object();

    json_object_object_add(needs, "cpus", json_object_new_int(gang->size.cpus));
    json_object_object_add(needs, "gpus", json_object_new_int(gang->size.gpus));
    json_object_object_add(needs, "memory", json_object_new_int64(gang->size.memory));
    json_object_object_add(needs, "tasks", json_object_new_int(gang->tasks));
    json_object_object_add(needs, "per_node", json_object_new_int(gang->per_node));
    if (gang->owned)
        json_object_object_add(needs, "owned", json_object_new_boolean(true));
    json_object_object_add(into, "needs", needs);
}

bool role_needs_read(json_object *from, struct slots_gang *gang)
{
    int64_t cpus, gpus, memory, tasks, per_node;
    json_object *needs;

    if (!json_object_object_get_ex(from, "needs", &needs))
        return true;
    if (!json_get_int(needs, "cpus", 0, limits[0].max, &cpus) ||
        !json_get_int(needs, "gpus", 0, limits[1].max, &gpus) ||
        !json_get_int(needs, "memory", 0, limits[2].max, &memory) ||
        !json_get_int(needs, "tasks", 1, ROLES_TASKS_MAX, &tasks) ||
        !json_get_int(needs, "per_node", 0, ROLES_TASKS_MAX, &per_node))
        return false;
    *gang = (struct slots_gang){
        .size = {.cpus = (int)cpus, .gpus = (int)gpus, .memory = memory},
        .tasks = (int)tasks,
        .per_node = (int)per_node,
        .owned = json_get_bool(needs, "owned", false),
    };
    return true;
}

/* ---- quantities ------------------------------------------------------------------------------ */

static bool parse(const char *text, double *quantity)
{
    static const struct {
        const char *suffix;
        double times;
    } units[] = {{"", 1},
                 {"n", 1e-9},
                 {"u", 1e-6},
                 {"m", 1e-3},
                 {"k", 1e3},
                 {"M", 1e6},
                 {"G", 1e9},
                 {"T", 1e12},
                 {"P", 1e15},
                 {"E", 1e18},
                 {"Ki", 1024.0},
                 {"Mi", MIB},
                 {"Gi", 1024 * MIB},
                 {"Ti", 1024 * 1024 * MIB},
                 {"Pi", 1125899906842624.0},
                 {"Ei", 1152921504606846976.0}};
    char *end;

    /* strtod() knows more than numbers in decimals. */
    if (text[strspn(text, "0123456789.eEinukmMGTPK+-")] != '\0' || strspn(text, "0123456789.") == 0)
        return false;
    *quantity = strtod(text, &end);
    for (size_t i = 0; end != text && i < COUNT(units); i++)
        if (strcmp(end, units[i].suffix) == 0) {
            *quantity *= units[i].times;
            return isfinite(*quantity);
        }
    return false;
}

bool role_quantity(json_object *value, double *quantity)
{
    if (json_object_is_type(value, json_type_string))
        return parse(json_object_get_string(value), quantity) && *quantity >= 0;
    if (!json_object_is_type(value, json_type_int) && !json_object_is_type(value, json_type_double))
        return false;
    *quantity = json_object_get_double(value);
    return isfinite(*quantity) && *quantity >= 0;
}

/* ---- of a request ---------------------------------------------------------------------------- */

/* Does a text end with a digit? Then it has no unit. */
static bool is_bare(json_object *value)
{
    const char *text = json_object_get_string(value);
    size_t length = strlen(text);

    return length > 0 && strchr("0123456789.", text[length - 1]) != NULL;
}

int role_needs_value(struct role_needs *needs, const char *key, json_object *value,
                     struct error *err)
{
    int64_t *const into[] = {&needs->cpus, &needs->gpus, &needs->memory, &needs->processes};
    double quantity;

    for (size_t i = 0; i < COUNT(limits); i++) {
        bool memory = into[i] == &needs->memory;

        if (strcmp(key, limits[i].key) != 0)
            continue;
        if (!role_quantity(value, &quantity))
            return error_set(err, "%s: a quantity is expected, such as %s", key,
                             memory ? "200 (MiB) or 200Mi" : "2 or 0.5");
        if (memory && !is_bare(value))
            quantity /= MIB;
        quantity = ceil(quantity - 1e-9);
        if (quantity < 0 || quantity > (double)limits[i].max)
            return error_set(err, "%s: from 0 to %lld%s are allowed", key, (long long)limits[i].max,
                             memory ? " MiB" : "");
        *into[i] = (int64_t)quantity;
        return 0;
    }
    return error_set(err, "'%s' is no need of a task", key);
}

void role_needs_ask(json_object *order, const struct role_needs *needs)
{
    const int64_t said[] = {needs->cpus, needs->gpus, needs->memory, needs->processes};
    json_object *object = json_object_new_object();

    for (size_t i = 0; i < COUNT(limits); i++)
        if (said[i] >= 0)
            json_object_object_add(object, limits[i].key, json_object_new_int64(said[i]));
    if (json_object_object_length(object) > 0)
        json_object_object_add(order, "needs", object);
    else
        json_object_put(object);
}

int role_needs_apply(const struct role_needs *needs, struct slots_gang *gang, struct error *err)
{
    if (needs->cpus >= 0)
        gang->size.cpus = (int)needs->cpus;
    if (needs->gpus >= 0)
        gang->size.gpus = (int)needs->gpus;
    if (needs->memory >= 0)
        gang->size.memory = needs->memory;
    if (needs->processes > 0) {
        gang->tasks = (int)needs->processes;
        gang->size.gpus = 1;
        gang->owned = true;
    }
    return gang->size.cpus > 0 || gang->size.gpus > 0
               ? 0
               : error_set(err, "a task has CPUs or GPUs: at least 1");
}

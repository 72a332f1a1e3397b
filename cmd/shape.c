/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The JSON that selastic prints, copied field by field (shape.h). */
#include "cmd/shape.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/terminal_text.h"
#include "lib/text.h"

#define ENTRIES_MAX 65536 /* of an array: more nodes than Slurm allows a job */
#define DEPTH_MAX   8     /* of a free-form value */

enum kind {
    KIND_INT,     /* integer */
    KIND_NUMBER,  /* finite, integer or not */
    KIND_BOOL,    /* true, false */
    KIND_TEXT,    /* string */
    KIND_TEXTS,   /* array of strings */
    KIND_OBJECT,  /* object of a shape */
    KIND_OBJECTS, /* array of objects of the same shape */
    KIND_INTS,    /* object of integers, without fixed keys */
    KIND_FREE,    /* object without fixed keys */
};

struct shape {
    const char *key; /* NULL ends the table */
    enum kind kind;
    const struct shape *of; /* of KIND_OBJECT, and of the entries of KIND_OBJECTS */
};

static const struct shape member_shape[] = {
    {"node", KIND_TEXT, NULL},  {"job", KIND_INT, NULL},      {"role", KIND_TEXT, NULL},
    {"pool", KIND_TEXT, NULL},  {"slots", KIND_INT, NULL},    {"first_rank", KIND_INT, NULL},
    {"state", KIND_TEXT, NULL}, {"taken", KIND_NUMBER, NULL}, {NULL, KIND_INT, NULL},
};

static const struct shape extension_shape[] = {
    {"job", KIND_INT, NULL},      {"nodes", KIND_INT, NULL},    {"role", KIND_TEXT, NULL},
    {"pool", KIND_TEXT, NULL},    {"state", KIND_TEXT, NULL},   {"reason", KIND_TEXT, NULL},
    {"begin", KIND_NUMBER, NULL}, {"since", KIND_NUMBER, NULL}, {NULL, KIND_INT, NULL},
};

static const struct shape pool_shape[] = {
    {"pool", KIND_TEXT, NULL},    {"fallback", KIND_BOOL, NULL},
    {"zone", KIND_TEXT, NULL},    {"price", KIND_NUMBER, NULL},
    {"ready", KIND_INT, NULL},    {"booting", KIND_INT, NULL},
    {"pending", KIND_INT, NULL},  {"boot", KIND_NUMBER, NULL},
    {"why", KIND_TEXT, NULL},     {"paused_until", KIND_NUMBER, NULL},
    {"failure", KIND_TEXT, NULL}, {"node_hours", KIND_NUMBER, NULL},
    {NULL, KIND_INT, NULL},
};

static const struct shape cost_shape[] = {
    {"so_far", KIND_NUMBER, NULL}, {"per_hour", KIND_NUMBER, NULL}, {"expected", KIND_NUMBER, NULL},
    {"budget", KIND_NUMBER, NULL}, {NULL, KIND_INT, NULL},
};

static const struct shape deadline_shape[] = {
    {"time", KIND_NUMBER, NULL}, {"expected", KIND_NUMBER, NULL}, {"in_time", KIND_BOOL, NULL},
    {"why", KIND_TEXT, NULL},    {NULL, KIND_INT, NULL},
};

static const struct shape progress_shape[] = {
    {"done", KIND_INT, NULL},    {"total", KIND_INT, NULL},   {"unit", KIND_TEXT, NULL},
    {"time", KIND_NUMBER, NULL}, {"rate", KIND_NUMBER, NULL}, {NULL, KIND_INT, NULL},
};

static const struct shape straggler_shape[] = {
    {"rank", KIND_INT, NULL},   {"node", KIND_TEXT, NULL}, {"factor", KIND_NUMBER, NULL},
    {"cause", KIND_TEXT, NULL}, {"why", KIND_TEXT, NULL},  {"since", KIND_NUMBER, NULL},
    {NULL, KIND_INT, NULL},
};

static const struct shape state_shape[] = {
    {"job", KIND_INT, NULL},
    {"incarnation", KIND_TEXT, NULL},
    {"user", KIND_TEXT, NULL},
    {"name", KIND_TEXT, NULL},
    {"phase", KIND_TEXT, NULL},
    {"generation", KIND_INT, NULL},
    {"size", KIND_INT, NULL},
    {"sizes", KIND_TEXT, NULL},
    {"min", KIND_INT, NULL},
    {"max", KIND_INT, NULL},
    {"target", KIND_INT, NULL},
    {"world_size", KIND_INT, NULL},
    {"step", KIND_INT, NULL},
    {"steps", KIND_INT, NULL},
    {"progress", KIND_OBJECT, progress_shape},
    {"since", KIND_NUMBER, NULL},
    {"restarts", KIND_INT, NULL},
    {"members", KIND_OBJECTS, member_shape},
    {"extensions", KIND_OBJECTS, extension_shape},
    {"pools", KIND_OBJECTS, pool_shape},
    {"cost", KIND_OBJECT, cost_shape},
    {"deadline", KIND_OBJECT, deadline_shape},
    {"roles", KIND_TEXT, NULL},
    {"group", KIND_TEXT, NULL},
    {"why_size", KIND_TEXT, NULL},
    {"why_not_more", KIND_TEXT, NULL},
    {"next_world", KIND_TEXT, NULL},
    {"policy", KIND_FREE, NULL},
    {"state_dir", KIND_TEXT, NULL},
    {"checkpoint_dir", KIND_TEXT, NULL},
    {"pmix", KIND_TEXT, NULL},
    {"conf", KIND_TEXT, NULL},
    {"newcomers", KIND_TEXT, NULL},
    {"left_out", KIND_TEXT, NULL},
    {"advised", KIND_TEXT, NULL},
    {"stragglers", KIND_OBJECTS, straggler_shape},
    {"leader", KIND_TEXT, NULL},
    {"term", KIND_INT, NULL},
    {"release", KIND_TEXT, NULL},
    {NULL, KIND_INT, NULL},
};

static const struct shape generation_shape[] = {
    {"generation", KIND_INT, NULL},
    {"time", KIND_NUMBER, NULL},
    {"kind", KIND_TEXT, NULL},
    {"size", KIND_INT, NULL},
    {"workers", KIND_INT, NULL},
    {"nodes", KIND_TEXTS, NULL},
    {"pools", KIND_TEXTS, NULL},
    {"reason", KIND_TEXT, NULL},
    {"steps", KIND_INT, NULL},
    {"pause", KIND_NUMBER, NULL},
    {"until", KIND_NUMBER, NULL},
    {"cost", KIND_NUMBER, NULL},
    {"on_demand_hours", KIND_NUMBER, NULL},
    {"stragglers", KIND_TEXTS, NULL},
    {NULL, KIND_INT, NULL},
};

static const struct shape role_shape[] = {
    {"name", KIND_TEXT, NULL}, {"kind", KIND_TEXT, NULL}, {"leads", KIND_BOOL, NULL},
    {"min", KIND_INT, NULL},   {"max", KIND_INT, NULL},   {"target", KIND_INT, NULL},
    {"tasks", KIND_INT, NULL}, {"owned", KIND_INT, NULL}, {"ready", KIND_INT, NULL},
    {"size", KIND_TEXT, NULL}, {"more", KIND_TEXT, NULL}, {NULL, KIND_INT, NULL},
};

static const struct shape roles_shape[] = {
    {"job", KIND_INT, NULL},
    {"epoch", KIND_INT, NULL},
    {"roles", KIND_OBJECTS, role_shape},
    {NULL, KIND_INT, NULL},
};

static const struct shape task_shape[] = {
    {"task", KIND_INT, NULL},   {"node", KIND_TEXT, NULL},  {"address", KIND_TEXT, NULL},
    {"state", KIND_TEXT, NULL}, {"ports", KIND_INTS, NULL}, {NULL, KIND_INT, NULL},
};

static const struct shape replica_shape[] = {
    {"name", KIND_TEXT, NULL},
    {"role", KIND_TEXT, NULL},
    {"index", KIND_INT, NULL},
    {"id", KIND_INT, NULL},
    {"state", KIND_TEXT, NULL},
    {"start", KIND_INT, NULL},
    {"since", KIND_NUMBER, NULL},
    {"reason", KIND_TEXT, NULL},
    {"cpus", KIND_INT, NULL},
    {"gpus", KIND_INT, NULL},
    {"memory", KIND_INT, NULL},
    {"owner", KIND_TEXT, NULL},
    {"tasks", KIND_OBJECTS, task_shape},
    {NULL, KIND_INT, NULL},
};

static const struct shape replicas_shape[] = {
    {"job", KIND_INT, NULL},
    {"epoch", KIND_INT, NULL},
    {"replicas", KIND_OBJECTS, replica_shape},
    {NULL, KIND_INT, NULL},
};

int64_t field_int(json_object *object, const char *key, int64_t missing)
{
    json_object *value = NULL;
    json_object_object_get_ex(object, key, &value);
    return json_object_is_type(value, json_type_int) ? json_object_get_int64(value) : missing;
}

static double number(json_object *value)
{
    bool is_number = json_object_is_type(value, json_type_int) ||
                     json_object_is_type(value, json_type_double);
    double x = is_number ? json_object_get_double(value) : (double)NAN;
    return isfinite(x) ? x : (double)NAN;
}

double field_double(json_object *object, const char *key)
{
    json_object *value = NULL;
    json_object_object_get_ex(object, key, &value);
    return number(value);
}

json_object *field_array(json_object *object, const char *key)
{
    json_object *value = NULL;
    json_object_object_get_ex(object, key, &value);
    return json_object_is_type(value, json_type_array) ? value : NULL;
}

size_t field_count(json_object *object, const char *key)
{
    json_object *array = field_array(object, key);
    return array != NULL ? json_object_array_length(array) : 0;
}

json_object *shape_double(double value)
{
    static char digits[] = "%.15g"; /* 0.1, where json-c's own 17 digits show 0.10000000000000001 */
    json_object *object = text_need(json_object_new_double(value));
    json_object_set_serializer(object, json_object_double_to_json_string, digits, NULL);
    return object;
}

/* A number as it was written. null when it is no number, since JSON has neither NaN nor
 * infinity. */
static json_object *copy_number(json_object *value)
{
    if (isnan(number(value)))
        return NULL;
    if (json_object_is_type(value, json_type_int))
        return json_object_new_int64(json_object_get_int64(value));
    return shape_double(json_object_get_double(value));
}

static json_object *copy_text(json_object *value)
{
    if (!json_object_is_type(value, json_type_string))
        return NULL;
    return json_object_new_string_len(json_object_get_string(value),
                                      json_object_get_string_len(value));
}

static json_object *copy_free(json_object *value, int depth)
{
    json_object *copy = NULL;
    switch (depth > DEPTH_MAX ? json_type_null : json_object_get_type(value)) {
    case json_type_null:
        return NULL;
    case json_type_boolean:
        return json_object_new_boolean(json_object_get_boolean(value));
    case json_type_int:
    case json_type_double:
        return copy_number(value);
    case json_type_string:
        return copy_text(value);
    case json_type_array:
        copy = json_object_new_array();
        for (size_t i = 0; i < json_object_array_length(value) && i < ENTRIES_MAX; i++)
            json_object_array_add(copy, copy_free(json_object_array_get_idx(value, i), depth + 1));
        return copy;
    case json_type_object:
        copy = json_object_new_object();
        json_object_object_foreach (value, key, member) {
            json_object_object_add(copy, key, copy_free(member, depth + 1));
        }
        return copy;
    }
    return copy;
}

/* Without those that are no integers. */
static json_object *copy_ints(json_object *value)
{
    json_object *copy = text_need(json_object_new_object());
    if (!json_object_is_type(value, json_type_object))
        return copy;
    json_object_object_foreach (value, key, member) {
        if (json_object_is_type(member, json_type_int))
            json_object_object_add(copy, key, copy_number(member));
    }
    return copy;
}

static json_object *copy_shape(const struct shape *shape, json_object *object);

/* The entries of an array that have the right type. */
static json_object *copy_array(const struct shape *field, json_object *value)
{
    json_object *copy = json_object_new_array();
    if (!json_object_is_type(value, json_type_array))
        return copy;
    enum json_type wanted = field->kind == KIND_TEXTS ? json_type_string : json_type_object;
    for (size_t i = 0; i < json_object_array_length(value) && i < ENTRIES_MAX; i++) {
        json_object *entry = json_object_array_get_idx(value, i);
        if (json_object_is_type(entry, wanted))
            json_object_array_add(copy, field->of != NULL ? copy_shape(field->of, entry)
                                                          : copy_text(entry));
    }
    return copy;
}

static json_object *copy_field(const struct shape *field, json_object *value)
{
    switch (field->kind) {
    case KIND_INT:
        return json_object_is_type(value, json_type_int) ? copy_number(value) : NULL;
    case KIND_NUMBER:
        return copy_number(value);
    case KIND_BOOL:
        return json_object_is_type(value, json_type_boolean)
                   ? text_need(json_object_new_boolean(json_object_get_boolean(value)))
                   : NULL;
    case KIND_TEXT:
        return copy_text(value);
    case KIND_OBJECT:
        return json_object_is_type(value, json_type_object) ? copy_shape(field->of, value) : NULL;
    case KIND_TEXTS:
    case KIND_OBJECTS:
        return copy_array(field, value);
    case KIND_INTS:
        return copy_ints(value);
    case KIND_FREE:
        return json_object_is_type(value, json_type_object) ? copy_free(value, 0) : NULL;
    }
    return NULL;
}

static json_object *copy_shape(const struct shape *shape, json_object *object)
{
    json_object *copy = text_need(json_object_new_object());
    for (; shape->key != NULL; shape++) {
        json_object *value = NULL;
        json_object_object_get_ex(object, shape->key, &value);
        json_object_object_add(copy, shape->key, copy_field(shape, value));
    }
    return copy;
}

json_object *shape_state(json_object *answer)
{
    return copy_shape(state_shape, answer);
}

json_object *shape_roles(json_object *answer)
{
    return copy_shape(roles_shape, answer);
}

json_object *shape_replicas(json_object *answer)
{
    return copy_shape(replicas_shape, answer);
}

json_object *shape_generation(json_object *generation)
{
    if (field_int(generation, "generation", -1) < 0 || isnan(field_double(generation, "time")))
        return NULL;
    return copy_shape(generation_shape, generation);
}

json_object *shape_history(uint32_t job, json_object *answer)
{
    json_object *history = text_need(json_object_new_object());
    json_object *copy = text_need(json_object_new_array());
    json_object *generations = field_array(answer, "generations");
    size_t count = field_count(answer, "generations");
    for (size_t i = 0; i < count && i < ENTRIES_MAX; i++) {
        json_object *generation = shape_generation(json_object_array_get_idx(generations, i));
        if (generation != NULL)
            json_object_array_add(copy, generation);
    }
    json_object_object_add(history, "job", json_object_new_int64(job));
    json_object_object_add(history, "generations", copy);
    return history;
}

/* In serialised JSON a byte above 0x7e can only be part of a string, where \u means the same. */
char *shape_serialize(json_object *object, int json_flags)
{
    const char *json = text_need((void *)json_object_to_json_string_ext(object, json_flags));
    char *ascii = NULL;
    size_t size = 0;
    FILE *out = text_need(open_memstream(&ascii, &size));
    for (const unsigned char *s = (const unsigned char *)json; *s; s++) {
        uint32_t code = *s;
        if (*s < 0x7f) {
            fputc(*s, out);
            continue;
        }
        int length = *s == 0x7f ? 1
                                : (int)text_utf8_decode((const char *)s,
                                                        strnlen((const char *)s, 4), &code);
        if (length == 0)
            code = 0xfffd;
        else
            s += length - 1;
        if (code >= 0x10000) {
            fprintf(out, "\\u%04x", 0xd800 + ((code - 0x10000) >> 10));
            code = 0xdc00 + ((code - 0x10000) & 0x3ff);
        }
        fprintf(out, "\\u%04x", code);
    }
    fclose(out);
    return text_need(ascii);
}

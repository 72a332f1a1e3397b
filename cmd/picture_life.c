/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a picture of a job's life shows, as numbers (picture_life.h). */
#include "cmd/picture_life.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/shape.h"
#include "cmd/terminal_text.h"
#include "lib/json_get.h"
#include "lib/number.h"

#define LENGTH_MAX 1e10 /* seconds: keeps hostile times inside the range of the calculation */
#define NODES_MOST 65536

/* The label of entry i of "pools". Nodes of a history without them are all alike. */
static const char *label_of(json_object *generation, size_t i)
{
    json_object *pools = field_array(generation, "pools");
    const char *name = i < field_count(generation, "pools")
                           ? json_object_get_string(json_object_array_get_idx(pools, i))
                           : NULL;
    if (name == NULL || strcmp(name, "-") == 0)
        return field_count(generation, "pools") > 0 ? "no pool" : "nodes";
    return name[0] != '\0' ? name : "base";
}

static int pool_index(struct life *life, const char *label)
{
    int i = 0;
    while (i < life->pool_count && strcmp(life->pools[i], label) != 0)
        i++;
    if (i < life->pool_count)
        return i;
    if (life->pool_count == LIFE_POOLS_MAX - 1)
        label = "others";
    else if (life->pool_count == LIFE_POOLS_MAX)
        return LIFE_POOLS_MAX - 1;
    life->pools[life->pool_count] = label;
    return life->pool_count++;
}

static int row_index(json_object *rows, json_object *row_of, const char *name)
{
    json_object *known;
    if (json_object_object_get_ex(row_of, name, &known))
        return (int)json_object_get_int64(known);
    int row = (int)json_object_array_length(rows);
    json_object_object_add(row_of, name, json_object_new_int64(row));
    json_object_array_add(rows, text_need(json_object_new_string(name)));
    return row;
}

/* Each node once: a hostile list may name one many times. */
static void take_nodes(struct life *life, struct life_part *part, json_object *row_of)
{
    json_object *names = field_array(part->json, "nodes");
    size_t count = field_count(part->json, "nodes");
    json_object *seen = text_need(json_object_new_object());
    part->nodes = text_need(calloc(count + 1, sizeof(int)));
    part->pools = text_need(calloc(count + 1, sizeof(int)));
    for (size_t i = 0; i < count; i++) {
        const char *name = json_object_get_string(json_object_array_get_idx(names, i));
        if (name == NULL || json_object_object_get_ex(seen, name, NULL))
            continue;
        json_object_object_add(seen, name, NULL);
        part->nodes[part->node_count] = row_index(life->rows, row_of, name);
        part->pools[part->node_count++] = pool_index(life, label_of(part->json, i));
    }
    json_object_put(seen);
}

static double rate_of(const struct life_part *part)
{
    int64_t steps = field_int(part->json, "steps", -1);
    double seconds = part->end - part->begin - part->pause;
    return steps < 0 || !(seconds > 0) ? -1 : (double)steps / seconds;
}

static void take_part(struct life *life, int i, json_object *generations, json_object *row_of)
{
    struct life_part *part = &life->parts[i];
    const char *kind, *reason;
    part->json = json_object_array_get_idx(generations, (size_t)i);
    kind = json_get_string(part->json, "kind");
    reason = json_get_string(part->json, "reason");
    part->kind = kind != NULL ? kind : "";
    part->reason = reason != NULL ? reason : "";
    part->generation = (int)number_clamp((double)field_int(part->json, "generation", 0), 0, 2e9);
    part->size = (int)number_clamp((double)field_int(part->json, "size", 0), 0, NODES_MOST);
    part->begin = number_clamp(field_double(part->json, "time") - life->start, 0, LENGTH_MAX);
    if (i > 0 && part->begin < part[-1].begin)
        part->begin = part[-1].begin; /* a clock that was set back must not change their order */
    if (part->size > life->size_max)
        life->size_max = part->size;
    take_nodes(life, part, row_of);
}

/* Where the last generation ends. Without an end a tenth of the time is drawn. */
static double last_end(const struct life *life, double end)
{
    const struct life_part *last = &life->parts[life->count - 1];
    double until = field_double(last->json, "until");
    if (isnan(until) && end > 0)
        until = end;
    if (isnan(until) || until - life->start < last->begin)
        return last->begin + fmax(1, last->begin / 10);
    return number_clamp(until - life->start, last->begin, LENGTH_MAX);
}

static void take_times(struct life *life, double end)
{
    life->rate_max = -1;
    for (int i = 0; i < life->count; i++) {
        struct life_part *part = &life->parts[i];
        bool last = i == life->count - 1;
        double next = last ? last_end(life, end) : part[1].begin;
        double until = field_double(part->json, "until") - life->start;
        part->end = last || isnan(until) ? next : number_clamp(until, part->begin, next);
        life->away += next - part->end;
        part->pause = number_clamp(field_double(part->json, "pause"), 0, part->end - part->begin);
        part->rate = rate_of(part);
        life->rate_max = fmax(life->rate_max, part->rate);
        life->changes += field_double(part->json, "pause") >= 0;
        life->paused += part->pause;
    }
    life->length = fmax(life->parts[life->count - 1].end, 1);
}

struct life *life_create(json_object *generations, double end)
{
    size_t count = generations != NULL ? json_object_array_length(generations) : 0;
    if (count == 0)
        return NULL;
    struct life *life = text_need(calloc(1, sizeof(*life)));
    json_object *row_of = text_need(json_object_new_object());
    life->count = (int)count;
    life->parts = text_need(calloc(count, sizeof(*life->parts)));
    life->rows = text_need(json_object_new_array());
    life->start = field_double(json_object_array_get_idx(generations, 0), "time");
    for (int i = 0; i < life->count; i++)
        take_part(life, i, generations, row_of);
    life->row_count = (int)json_object_array_length(life->rows);
    take_times(life, end);
    json_object_put(row_of);
    return life;
}

void life_destroy(struct life *life)
{
    if (life == NULL)
        return;
    for (int i = 0; i < life->count; i++) {
        free(life->parts[i].nodes);
        free(life->parts[i].pools);
    }
    free(life->parts);
    json_object_put(life->rows);
    free(life);
}

double life_goodput(const struct life *life)
{
    return number_clamp(1 - (life->paused + life->away) / life->length, 0, 1);
}

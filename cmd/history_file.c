/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text of a job's history.jsonl (doc/internals/protocol.md, "Files of a job") as a history.
 * Pure. */
#include "cmd/history_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cmd/shape.h"
#include "cmd/terminal_text.h"
#include "lib/json_get.h"
#include "lib/json_text.h"

#define LINE_MAX_BYTES (1024 * 1024)
#define STRAGGLERS_MAX 64

struct reading {
    json_object *generations;
    /* Number → the newest generation with it: a requeued job may count from the start again. */
    json_object *newest;
    long weight; /* of the generations */
    struct history_losses *losses;
};

struct key {
    char text[24];
};

static struct key key_of(json_object *line)
{
    struct key key;
    snprintf(key.text, sizeof(key.text), "%" PRId64, field_int(line, "generation", -1));
    return key;
}

/* Lines that come later change nothing of it. */
static long weight_of(json_object *generation)
{
    return HISTORY_GENERATION_WEIGHT + (long)field_count(generation, "nodes") +
           (long)field_count(generation, "pools");
}

/* Half of them at once: each costs the move of all others. */
static void leave_out_oldest(struct reading *reading)
{
    json_object *newest;
    size_t count = json_object_array_length(reading->generations), old = 0;
    for (; reading->weight > HISTORY_WEIGHT_MAX / 2 && old + 1 < count; old++) {
        json_object *generation = json_object_array_get_idx(reading->generations, old);
        struct key key = key_of(generation);
        reading->weight -= weight_of(generation);
        if (json_object_object_get_ex(reading->newest, key.text, &newest) && newest == generation)
            json_object_object_del(reading->newest, key.text);
    }
    json_object_array_del_idx(reading->generations, 0, old);
    reading->losses->left_out += (int)old;
}

/* The end of a generation is the end of the job, if the leader lived to write it down. Else it is
 * the start of the next generation. */
static void add_generation(struct reading *reading, json_object *generation)
{
    json_object *generations = reading->generations;
    size_t count = json_object_array_length(generations);
    json_object *last = count ? json_object_array_get_idx(generations, count - 1) : NULL;
    if (last != NULL && isnan(field_double(last, "until")))
        json_object_object_add(last, "until", shape_double(field_double(generation, "time")));
    json_object_object_add(generation, "until", NULL);
    json_object_array_add(generations, generation);
    json_object_object_add(reading->newest, key_of(generation).text, json_object_get(generation));
    reading->weight += weight_of(generation);
    if (reading->weight > HISTORY_WEIGHT_MAX)
        leave_out_oldest(reading);
}

/* Take a number that was written later than its generation. */
static bool add_number(json_object *generation, json_object *line, const char *key)
{
    double number = field_double(line, key);
    if (isnan(number) || number < 0)
        return false;
    json_object_object_add(generation, key, shape_double(number));
    return true;
}

/* … and a reason. */
static bool add_reason(json_object *generation, json_object *line)
{
    const char *reason = json_get_string(line, "reason");
    if (reason == NULL)
        return false;
    json_object_object_add(generation, "reason", text_need(json_object_new_string(reason)));
    return true;
}

/* … and what was said of a slow worker. */
static bool add_straggler(json_object *generation, json_object *line)
{
    const char *said = json_get_string(line, "straggler");
    json_object *list = field_array(generation, "stragglers");
    if (said == NULL || list == NULL || json_object_array_length(list) >= STRAGGLERS_MAX)
        return false;
    json_object_array_add(list, text_need(json_object_new_string(said)));
    return true;
}

/* How many steps it has made. */
static bool add_steps(json_object *generation, json_object *line)
{
    int64_t steps = field_int(line, "steps", -1);
    if (steps < 0)
        return false;
    json_object_object_add(generation, "steps", json_object_new_int64(steps));
    return true;
}

/* False when the line is neither a generation nor the pause, reason or end of a generation. */
static bool take_line(struct reading *reading, json_object *line)
{
    json_object *generation = shape_generation(line);
    if (generation != NULL) {
        add_generation(reading, generation);
        return true;
    }
    if (!json_object_object_get_ex(reading->newest, key_of(line).text, &generation))
        return false;
    bool steps = add_steps(generation, line);
    return add_number(generation, line, "pause") || add_number(generation, line, "until") ||
           add_reason(generation, line) || add_straggler(generation, line) || steps;
}

json_object *history_file_parse(uint32_t job, const char *text, size_t len,
                                struct history_losses *losses)
{
    struct reading reading = {.generations = text_need(json_object_new_array()),
                              .newest = text_need(json_object_new_object()),
                              .losses = losses};
    const char *end = text + len;
    *losses = (struct history_losses){0};
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t length = (size_t)((newline != NULL ? newline : end) - text);
        /* A torn line ends inside the object. Bytes behind the object mean that two writers wrote
         * at once. */
        json_object *line = length <= LINE_MAX_BYTES ? json_text_parse(text, length, NULL) : NULL;
        if (length > 0 && !take_line(&reading, line))
            losses->skipped++;
        json_object_put(line);
        text += length + (newline != NULL);
    }
    json_object_put(reading.newest);
    json_object *history = text_need(json_object_new_object());
    json_object_object_add(history, "job", json_object_new_int64(job));
    json_object_object_add(history, "generations", reading.generations);
    return history;
}

void history_end(json_object *history, double when)
{
    json_object *generations = field_array(history, "generations");
    size_t count = field_count(history, "generations");
    if (count == 0)
        return;
    json_object *last = json_object_array_get_idx(generations, count - 1);
    if (isnan(field_double(last, "until")) && when >= field_double(last, "time"))
        json_object_object_add(last, "until", shape_double(when));
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The five lines of `selastic doctor --job` (doctor_job.h). Pure. */
#include "cmd/doctor_job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cmd/shape.h"
#include "cmd/terminal_text.h"
#include "lib/json_get.h"

#define LINE_BYTES 1024

static const char *text_of(json_object *object, const char *key)
{
    const char *text = json_get_string(object, key);
    return text != NULL && text[0] != '\0' ? text : "not known";
}

static void add(json_object *lines, const char *key, const char *text)
{
    json_object_object_add(lines, key, json_from_string(text));
}

/* The last change: when, how, why, and how long training paused. */
static void last_change(json_object *history, time_t now, char *buf, size_t size)
{
    size_t count = field_count(history, "generations");
    json_object *last = count > 0 ? json_object_array_get_idx(field_array(history, "generations"),
                                                              count - 1)
                                  : NULL;
    double pause = field_double(last, "pause"), when = field_double(last, "time");
    char ago[32], paused[32];
    if (last == NULL) {
        snprintf(buf, size, "not known");
        return;
    }
    int used = snprintf(buf, size, "%s ago: %s to %lld nodes: %.700s",
                        text_duration((double)now - when, ago, sizeof(ago)), text_of(last, "kind"),
                        (long long)field_int(last, "size", 0), text_of(last, "reason"));
    if (pause > 0 && used > 0 && (size_t)used < size)
        snprintf(buf + used, size - (size_t)used, "; training paused for %s",
                 text_duration(pause, paused, sizeof(paused)));
}

/* What is about to happen, or is in the way of it. */
static void next_change(json_object *state, char *buf, size_t size)
{
    static const char *const keys[] = {"next_world", "newcomers", "left_out"};
    static const char *const words[] = {"", "a newcomer was refused: ", "left out: "};
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        const char *text = json_get_string(state, keys[i]);
        if (text != NULL && text[0] != '\0') {
            snprintf(buf, size, "%s%.900s", words[i], text);
            return;
        }
    }
    size_t pending = 0, count = field_count(state, "extensions");
    for (size_t i = 0; i < count; i++) {
        json_object *extension = json_object_array_get_idx(field_array(state, "extensions"), i);
        pending += strcmp(text_of(extension, "state"), "pending") == 0;
    }
    if (pending > 0)
        snprintf(buf, size, "%zu extension job%s in the queue", pending, pending == 1 ? "" : "s");
    else
        snprintf(buf, size, "no change is under way");
}

json_object *doctor_job_lines(json_object *state, json_object *history, time_t now)
{
    json_object *lines = text_need(json_object_new_object());
    char text[LINE_BYTES];
    long long size = (long long)field_int(state, "size", 0);
    snprintf(text, sizeof(text), "%s, %lld node%s, allowed %.64s", text_of(state, "phase"), size,
             size == 1 ? "" : "s", text_of(state, "sizes"));
    add(lines, "size", text);
    add(lines, "why", text_of(state, "why_size"));
    add(lines, "why_not_more", text_of(state, "why_not_more"));
    last_change(history, now, text, sizeof(text));
    add(lines, "last", text);
    next_change(state, text, sizeof(text));
    add(lines, "next", text);
    return lines;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slow workers in `selastic show` and `selastic history` (render_parts.h). */
#include <math.h>
#include <stdio.h>

#include "cmd/render_parts.h"
#include "cmd/shape.h"
#include "lib/json_get.h"

#define LINE_SIZE 512

void render_stragglers(FILE *out, json_object *state, int width)
{
    json_object *stragglers = field_array(state, "stragglers");
    for (size_t i = 0; i < field_count(state, "stragglers"); i++) {
        json_object *one = json_object_array_get_idx(stragglers, i);
        const char *node = json_get_string(one, "node"), *why = json_get_string(one, "why");
        double factor = field_double(one, "factor");
        char line[LINE_SIZE];
        if (node == NULL || isnan(factor))
            continue;
        snprintf(line, sizeof(line),
                 "rank %lld on %.100s needs %.1f times as long for a step as the others%s%.200s",
                 (long long)field_int(one, "rank", -1), node, factor,
                 why != NULL && *why ? ": " : "", why != NULL ? why : "");
        render_line(out, "Slow", line, width);
    }
}

void render_slow_history(FILE *out, json_object *generations, int width)
{
    for (size_t i = 0; i < json_object_array_length(generations); i++) {
        json_object *generation = json_object_array_get_idx(generations, i);
        json_object *said = field_array(generation, "stragglers");
        for (size_t k = 0; k < field_count(generation, "stragglers"); k++) {
            json_object *one = json_object_array_get_idx(said, k);
            char line[LINE_SIZE];
            if (!json_object_is_type(one, json_type_string))
                continue;
            snprintf(line, sizeof(line), "generation %lld: %.400s",
                     (long long)field_int(generation, "generation", -1),
                     json_object_get_string(one));
            render_line(out, "Slow", line, width);
        }
    }
}

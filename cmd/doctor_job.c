/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic doctor --job JOB` (doctor_job.h). */
#include "cmd/doctor_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/deadline.h"
#include "cmd/query.h"
#include "cmd/shape.h"
#include "cmd/terminal_text.h"
#include "lib/json_get.h"

static void print_lines(json_object *lines)
{
    static const struct {
        const char *key, *title;
    } rows[] = {{"size", "Size"},
                {"why", "Why this size"},
                {"why_not_more", "Why not more"},
                {"last", "What happened last"},
                {"next", "What comes next"}};
    int width = terminal_width();
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char *clean = text_clean(json_get_string(lines, rows[i].key), 0);
        printf("%-18s  ", rows[i].title);
        text_print_wrapped(stdout, clean, 20, width);
        putchar('\n');
        free(clean);
    }
}

enum exit_status doctor_job(const struct arguments *arguments)
{
    struct error err, unimportant;
    deadline_start();
    json_object *state = query_answer(arguments->job_id, request_new("show"), "state", &err);
    if (state == NULL)
        return failed(&err);
    json_object *answer = query_answer(arguments->job_id, request_new("history"), "history",
                                       &unimportant);
    json_object *shaped = shape_state(state);
    json_object *history = answer != NULL ? shape_history(arguments->job_id, answer) : NULL;
    json_object *lines = doctor_job_lines(shaped, history, time(NULL));
    if (arguments->json) {
        json_object_object_add(lines, "job", json_object_new_int64(arguments->job_id));
        print_json(json_object_get(lines), false);
    } else
        print_lines(lines);
    json_object_put(lines);
    json_object_put(history);
    json_object_put(shaped);
    json_object_put(answer);
    json_object_put(state);
    return STATUS_OK;
}

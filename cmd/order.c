/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands that change a job (order.h). */
#include "cmd/order.h"

#include <stdio.h>
#include <stdlib.h>

#include "cmd/query.h"
#include "cmd/terminal_text.h"
#include "lib/json_get.h"

/* At once: in a pipe an error about the next change would come first. */
static void report(const struct arguments *arguments, const char *message)
{
    if (arguments->json) {
        json_object *report = text_need(json_object_new_object());
        json_object_object_add(report, "job", json_object_new_int64(arguments->job_id));
        json_object_object_add(report, "message", json_from_string(message));
        /* One line each where there may be several. */
        print_json(report, arguments->scale_count > 1);
    } else {
        char *clean = text_clean(message != NULL ? message : "done", 0);
        puts(clean);
        free(clean);
    }
    fflush(stdout);
}

int order(const struct arguments *arguments, json_object *request, struct error *err)
{
    json_object *answer = query_answer(arguments->job_id, request, "done", err);
    if (answer == NULL)
        return -1;
    report(arguments, json_get_string(answer, "message"));
    json_object_put(answer);
    return 0;
}

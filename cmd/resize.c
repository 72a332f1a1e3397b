/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic resize JOB N|+K|-K`: ask the leader for another size. */
#include <stdio.h>
#include <stdlib.h>

#include "cmd/command.h"
#include "cmd/deadline.h"
#include "cmd/query.h"
#include "cmd/terminal_text.h"
#include "lib/json_get.h"

/* The leader's message names the job. */
static void report(const struct arguments *arguments, const char *message)
{
    if (arguments->json) {
        json_object *report = text_need(json_object_new_object());
        json_object_object_add(report, "job", json_object_new_int64(arguments->job_id));
        json_object_object_add(report, "message", json_from_string(message));
        print_json(report, false);
        return;
    }
    char *clean = text_clean(message != NULL ? message : "done", 0);
    puts(clean);
    free(clean);
}

static enum exit_status run(const struct arguments *arguments)
{
    struct error err;
    json_object *request = request_new("resize");
    json_object_object_add(request, arguments->relative ? "delta" : "nodes",
                           json_object_new_int(arguments->nodes));
    deadline_start();
    json_object *answer = query_answer(arguments->job_id, request, "done", &err);
    if (answer == NULL)
        return failed(&err);
    report(arguments, json_get_string(answer, "message"));
    json_object_put(answer);
    return STATUS_OK;
}

const struct command resize_command = {
    .name = "resize",
    .summary = "set the number of nodes that a job aims at",
    .help = "Usage: selastic resize JOB N|+K|-K [--json]\n"
            "\n"
            "Set the number of nodes that a running elastic job aims at: N nodes, or K nodes\n"
            "more or fewer than now. The job must allow this size. A growth needs free nodes\n"
            "and may take time; 'selastic show JOB' says what the job waits for.\n"
            "\n"
            "      --json       print the answer as JSON\n"
            "  -h, --help       print this text\n",
    .run = run,
};

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic reports`: what the programs of a job have reported. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cmd/command.h"
#include "cmd/deadline.h"
#include "cmd/query.h"
#include "cmd/report_list.h"
#include "common/log.h"
#include "lib/json_get.h"
#include "lib/reports.h"

#define PAUSE_S 2 /* between two looks */

static void print(json_object *reports, const struct arguments *arguments, bool titles)
{
    struct render_options options = {.width = terminal_width(), .now = time(NULL)};
    json_object *list = json_object_object_get(reports, "reports");

    if (arguments->json && !arguments->follow) {
        print_json(json_object_get(reports), false);
        return;
    }
    if (!arguments->json) {
        print_text(render_reports(reports, titles, &options));
        return;
    }
    for (size_t i = 0; i < json_object_array_length(list); i++)
        print_json(json_object_get(json_object_array_get_idx(list, i)), true);
}

static void say_missed(json_object *answer)
{
    int64_t missed;

    if (json_get_int(answer, "missed", 1, INT32_MAX, &missed))
        log_error("%d reports before the first one are kept no more: the job keeps the last %d, or "
                  "%d KiB of them",
                  (int)missed, REPORTS_MAX, REPORTS_BYTES / 1024);
}

/* All after that number, which becomes that of the last one. */
static enum query_result look(const struct arguments *arguments, int *after, bool titles,
                              struct error *err)
{
    json_object *request = request_new("reports"), *shaped;
    struct query query = {0};
    struct site *site;
    enum query_result result;
    const char *type, *message;
    int64_t last;

    if (*after > 0)
        json_object_object_add(request, "after", json_object_new_int(*after));
    deadline_start();
    site = site_create(err);
    if (site == NULL) {
        json_object_put(request);
        return QUERY_FAILED;
    }
    result = query_leader(site, arguments->job_id, request, &query, err);
    type = json_get_string(query.answer, "t");
    message = json_get_string(query.answer, "message");
    if (result == QUERY_ANSWERED && (type == NULL || strcmp(type, "reports") != 0)) {
        result = QUERY_REFUSED;
        error_set(err, "%s", message != NULL ? message : "the leader says nothing of reports");
    }
    if (result == QUERY_ANSWERED) {
        say_missed(query.answer);
        shaped = reports_of(query.answer, arguments->name);
        print(shaped, arguments, titles);
        json_object_put(shaped);
        if (json_get_int(query.answer, "last", 0, INT32_MAX, &last))
            *after = (int)last;
    }
    query_clear(&query);
    site_destroy(site);
    return result;
}

/* Another node may take over: silence is no end. */
static enum exit_status run(const struct arguments *arguments)
{
    const struct timespec pause = {.tv_sec = PAUSE_S};
    struct error err;
    int after = arguments->after;
    enum query_result result = look(arguments, &after, true, &err);

    if (result != QUERY_ANSWERED)
        return failed(&err);
    while (arguments->follow && (result == QUERY_ANSWERED || result == QUERY_SILENT)) {
        if (fflush(stdout) != 0)
            return STATUS_FAILED;
        nanosleep(&pause, NULL);
        result = look(arguments, &after, false, &err);
    }
    return !arguments->follow || result == QUERY_NOT_THERE || result == QUERY_UNKNOWN
               ? STATUS_OK
               : failed(&err);
}

const struct command reports_command = {
    .name = "reports",
    .summary = "show what the programs of a job have reported",
    .help = "Usage: selastic reports JOB [ROLE|REPLICA] [--after N] [--follow] [--json]\n"
            "\n"
            "Show what programs of a job with roles have reported: path, size and other values\n"
            "of what they have made. The job keeps the last 1000, or 256 KiB of them. With a\n"
            "role (collector) or a replica (collector-3): only its reports.\n"
            "\n"
            "      --after N    only those of higher numbers\n"
            "  -f, --follow     go on as more is reported, until the job has ended\n"
            "      --json       print JSON; with --follow, a line for each report\n"
            "  -h, --help       print this text\n",
    .run = run,
};

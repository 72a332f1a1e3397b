/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic show JOB`: what a job is doing, and why. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cmd/command.h"
#include "cmd/deadline.h"
#include "cmd/query.h"
#include "cmd/render.h"
#include "cmd/shape.h"
#include "common/release_own.h"

#define CLEAR_SCREEN "\033[H\033[2J"

static int look(const struct arguments *arguments, struct error *err)
{
    deadline_start();
    json_object *answer = query_answer(arguments->job_id, request_new("show"), "state", err);
    if (answer == NULL)
        return -1;
    json_object *state = shape_state(answer);
    json_object_put(answer);
    if (arguments->watch > 0 && isatty(STDOUT_FILENO))
        fputs(CLEAR_SCREEN, stdout);
    if (arguments->json) {
        print_json(state, arguments->watch > 0);
        return 0;
    }
    struct render_options options = {
        .width = terminal_width(), .now = time(NULL), .release = release_own()->name};
    print_text(render_state(state, &options));
    json_object_put(state);
    return 0;
}

static void wait_for(double seconds)
{
    struct timespec pause = {.tv_sec = (time_t)seconds};
    pause.tv_nsec = (long)((seconds - (double)pause.tv_sec) * 1e9);
    nanosleep(&pause, NULL);
}

static enum exit_status run(const struct arguments *arguments)
{
    struct error err;
    if (look(arguments, &err) < 0)
        return failed(&err);
    while (arguments->watch > 0) {
        if (fflush(stdout) != 0)
            return STATUS_FAILED;
        wait_for(arguments->watch);
        if (!arguments->json && !isatty(STDOUT_FILENO))
            putchar('\n');
        /* Ends with the job: the message says so. */
        if (look(arguments, &err) < 0)
            return failed(&err);
    }
    return STATUS_OK;
}

const struct command show_command = {
    .name = "show",
    .summary = "show what a job is doing, and why",
    .help = "Usage: selastic show JOB [--watch[=S]] [--json]\n"
            "\n"
            "Show what a running elastic job is doing: nodes, generation, policy and extension\n"
            "jobs. Two lines say why it has this size, and why it has not more nodes.\n"
            "\n"
            "      --watch[=S]  repeat every S seconds (default 2) until the job has ended\n"
            "      --json       print JSON; with --watch, one line each time\n"
            "  -h, --help       print this text\n",
    .run = run,
};

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic show JOB`: what a job is doing, and why. */
#include "cmd/command.h"
#include "cmd/shape.h"
#include "cmd/view.h"

static json_object *shape(json_object *answer, const struct arguments *arguments, struct error *err)
{
    (void)arguments;
    (void)err;
    return shape_state(answer);
}

static enum exit_status run(const struct arguments *arguments)
{
    static const struct view view = {"show", "state", shape, render_state};
    return view_run(&view, arguments);
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

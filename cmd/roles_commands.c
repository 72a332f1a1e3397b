/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic roles`, `replicas` and `endpoints`: three looks at one answer of the leader. */
#include <stdlib.h>

#include "cmd/command.h"
#include "cmd/endpoints.h"
#include "cmd/replicas.h"
#include "cmd/shape.h"
#include "cmd/view.h"

static json_object *shape_of_roles(json_object *answer, const struct arguments *arguments,
                                   struct error *err)
{
    (void)arguments;
    (void)err;
    return shape_roles(answer);
}

static json_object *shape_of_replicas(json_object *answer, const struct arguments *arguments,
                                      struct error *err)
{
    return replicas_of(answer, arguments->role, err);
}

static enum exit_status run_roles(const struct arguments *arguments)
{
    static const struct view view = {"roles", "roles", shape_of_roles, render_roles};
    return view_run(&view, arguments);
}

static enum exit_status run_replicas(const struct arguments *arguments)
{
    static const struct view view = {"roles", "roles", shape_of_replicas, render_replicas};
    return view_run(&view, arguments);
}

const struct command roles_command = {
    .name = "roles",
    .summary = "show the roles of a job, and why they have their sizes",
    .help = "Usage: selastic roles JOB [--watch[=S]] [--json]\n"
            "\n"
            "Show the roles of a running elastic job: how many replicas are ready, how many\n"
            "there should be, MIN and MAX. Two lines say why a role has this size, and why it\n"
            "has not more replicas.\n"
            "\n"
            "      --watch[=S]  repeat every S seconds (default 2) until the job has ended\n"
            "      --json       print JSON; with --watch, one line each time\n"
            "  -h, --help       print this text\n",
    .run = run_roles,
};

const struct command replicas_command = {
    .name = "replicas",
    .summary = "show the replicas of a job's roles",
    .help = "Usage: selastic replicas JOB [ROLE] [--watch[=S]] [--json]\n"
            "\n"
            "Show the replicas of a running elastic job, or those of one role: the state, for\n"
            "how long, the number of the start, the nodes, and the ports of the first task. A\n"
            "second line says why a replica is in its state.\n"
            "\n"
            "      --watch[=S]  repeat every S seconds (default 2) until the job has ended\n"
            "      --json       print JSON; with --watch, one line each time\n"
            "  -h, --help       print this text\n",
    .run = run_replicas,
};

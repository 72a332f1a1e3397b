/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic resize JOB N|+K|-K`: ask the leader for another size. */
#include "cmd/deadline.h"
#include "cmd/order.h"

static enum exit_status run(const struct arguments *arguments)
{
    struct error err;
    json_object *request = request_new("resize");
    json_object_object_add(request, arguments->relative ? "delta" : "nodes",
                           json_object_new_int(arguments->nodes));
    deadline_start();
    return order(arguments, request, &err) == 0 ? STATUS_OK : failed(&err);
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

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic fail JOB REPLICA`: tell the leader that a replica is of no use any more. */
#include "cmd/deadline.h"
#include "cmd/order.h"
#include "lib/json_get.h"

static enum exit_status run(const struct arguments *arguments)
{
    struct error err;
    json_object *request = request_new("fail");
    json_object_object_add(request, "replica", json_from_string(arguments->replica));
    deadline_start();
    return order(arguments, request, &err) == 0 ? STATUS_OK : failed(&err);
}

const struct command fail_command = {
    .name = "fail",
    .summary = "have a replica replaced",
    .help = "Usage: selastic fail JOB REPLICA [--json]\n"
            "\n"
            "Have a replica of a running elastic job replaced, as if it had failed: its tasks\n"
            "are ended, and it is started again.\n"
            "\n"
            "      --json       print the answer as JSON\n"
            "  -h, --help       print this text\n",
    .run = run,
};

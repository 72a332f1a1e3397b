/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic fail` and `selastic remove`: have the leader replace a replica, or do without it. */
#include "cmd/deadline.h"
#include "cmd/order.h"
#include "lib/json_get.h"

static enum exit_status ask(const struct arguments *arguments, const char *what)
{
    struct error err;
    json_object *request = request_new(what);
    json_object_object_add(request, "replica", json_from_string(arguments->replica));
    deadline_start();
    return order(arguments, request, &err) == 0 ? STATUS_OK : failed(&err);
}

static enum exit_status run_fail(const struct arguments *arguments)
{
    return ask(arguments, "fail");
}

static enum exit_status run_remove(const struct arguments *arguments)
{
    return ask(arguments, "remove");
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
    .run = run_fail,
};

const struct command remove_command = {
    .name = "remove",
    .summary = "do without a replica from now on",
    .help = "Usage: selastic remove JOB REPLICA [--json]\n"
            "\n"
            "Have a replica of a running elastic job end, and its role be smaller by it. MIN of\n"
            "the role must allow it.\n"
            "\n"
            "      --json       print the answer as JSON\n"
            "  -h, --help       print this text\n",
    .run = run_remove,
};

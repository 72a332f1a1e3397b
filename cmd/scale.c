/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic scale JOB ROLE=N…`: ask the leader for other numbers of replicas. */
#include <stdio.h>

#include "cmd/deadline.h"
#include "cmd/order.h"
#include "lib/text.h"

static json_object *request_of(const struct scale *scale)
{
    json_object *request = request_new("scale");
    json_object_object_add(request, "role",
                           json_object_new_string_len(scale->text, scale->role_length));
    json_object_object_add(request, scale->relative ? "delta" : "count",
                           json_object_new_int(scale->replicas));
    return request;
}

/* The changes before it have been made, and stay. */
static enum exit_status stopped(const struct arguments *arguments, int at, struct error *err)
{
    char done[512] = "";
    for (int i = 0; i < at; i++)
        text_append(done, sizeof(done), "%s%s", i > 0 ? ", " : "", arguments->scales[i].text);
    if (arguments->scale_count > 1)
        error_prefix(err, "%s (done before it: %s)", arguments->scales[at].text,
                     at > 0 ? done : "nothing");
    return failed(err);
}

static enum exit_status run(const struct arguments *arguments)
{
    struct error err;
    deadline_start();
    for (int i = 0; i < arguments->scale_count; i++)
        if (order(arguments, request_of(&arguments->scales[i]), &err) < 0)
            return stopped(arguments, i, &err);
    return STATUS_OK;
}

const struct command scale_command = {
    .name = "scale",
    .summary = "set the number of replicas of roles",
    .help = "Usage: selastic scale JOB ROLE=N|ROLE=+K|ROLE=-K... [--json]\n"
            "\n"
            "Set the number of replicas that a role of a running elastic job aims at: N\n"
            "replicas, or K more or fewer than now. MIN and MAX of the role must allow it.\n"
            "New replicas may take time; 'selastic roles JOB' says what a role waits for. The\n"
            "leader takes several changes one after the other, and the command ends at the\n"
            "first that it refuses.\n"
            "\n"
            "      --json       print the answer as JSON; of several changes, one line each\n"
            "  -h, --help       print this text\n",
    .run = run,
};

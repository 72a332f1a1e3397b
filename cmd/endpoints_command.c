/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic endpoints JOB`: where the replicas of a job that are ready can be reached. */
#include "cmd/command.h"
#include "cmd/deadline.h"
#include "cmd/endpoints.h"
#include "cmd/query.h"
#include "cmd/replicas.h"

static json_object *ask(const struct arguments *arguments, struct error *err)
{
    deadline_start();
    json_object *answer = query_answer(arguments->job_id, request_new("roles"), "roles", err);
    if (answer == NULL)
        return NULL;
    json_object *replicas = replicas_of(answer, arguments->role, err);
    json_object_put(answer);
    if (replicas == NULL)
        return NULL;
    json_object *endpoints = endpoints_of(replicas, err);
    json_object_put(replicas);
    return endpoints;
}

static void print(json_object *endpoints, enum endpoints_format format)
{
    struct render_options options = {.width = terminal_width()};
    switch (format) {
    case ENDPOINTS_TEXT:
        print_text(endpoints_text(endpoints, &options));
        return;
    case ENDPOINTS_JSON:
        print_json(json_object_get(endpoints), false);
        return;
    case ENDPOINTS_HOSTS:
        print_text(endpoints_hosts(endpoints));
        return;
    case ENDPOINTS_PROMETHEUS:
        print_json(endpoints_prometheus(endpoints), false);
        return;
    case ENDPOINTS_HAPROXY:
        print_text(endpoints_haproxy(endpoints));
        return;
    }
}

static enum exit_status run(const struct arguments *arguments)
{
    struct error err;
    json_object *endpoints = ask(arguments, &err);
    if (endpoints == NULL)
        return failed(&err);
    print(endpoints, arguments->json ? ENDPOINTS_JSON : arguments->format);
    json_object_put(endpoints);
    return STATUS_OK;
}

const struct command endpoints_command = {
    .name = "endpoints",
    .summary = "show where the ready replicas of a job can be reached",
    .help = "Usage: selastic endpoints JOB [--role ROLE] [--format=FORMAT] [--json]\n"
            "\n"
            "Print the addresses and ports of the replicas of a running elastic job that are\n"
            "ready.\n"
            "\n"
            "      --role ROLE      only of this role\n"
            "      --format=FORMAT  text: a line for each task and port (default)\n"
            "                       json: the same as JSON\n"
            "                       hosts: lines of /etc/hosts, ADDRESS REPLICA,\n"
            "                       for other tasks of a gang ADDRESS REPLICA.TASK\n"
            "                       prometheus: a file for file_sd_configs of Prometheus\n"
            "                       haproxy: lines of a backend, server REPLICA ADDRESS:PORT\n"
            "                       haproxy has the first port of the first task of each\n"
            "                       replica\n"
            "      --json           as --format=json\n"
            "  -h, --help           print this text\n",
    .run = run,
};

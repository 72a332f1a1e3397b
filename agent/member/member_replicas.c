/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The replicas of this node between workers and leader (member_internal.h). */
#include <string.h>
#include <unistd.h>

#include "agent/member/api.h"
#include "agent/member/member_internal.h"
#include "agent/member/replicas.h"
#include "agent/paths.h"
#include "common/log.h"
#include "lib/json_get.h"

static void describe(struct workers_options *options, void *arg)
{
    group_describe(arg, options);
}

static void send_message(json_object *msg, void *arg)
{
    member_send(arg, msg);
}

static void output(const char *name, int stream, int fd, const char *data, size_t len, void *arg)
{
    member_output(arg, name, stream, fd, data, len);
}

static void output_ended(int stream, void *arg)
{
    member_output_ended(arg, stream);
}

static void none(void *arg)
{
    member_drained(arg);
}

static int open_api(const char **url, const char **socket, struct error *err, void *arg)
{
    struct member *m = arg;
    const struct api_options options = {
        .program = paths_of(PATHS_HTTP),
        .node = m->options->node,
        .run_dir = m->run_dir,
        .state_dir = m->job.state_dir,
        .job = m->options->base_job,
        .restarts = m->options->base_restarts,
    };

    if (m->api == NULL) {
        m->api = api_create(m->loop, &options, err);
        if (m->api == NULL)
            return error_prefix(err, "no HTTP interface");
        m->open_handles++;
        api_leader(m->api, m->leader.address, m->leader.port);
    }
    *url = api_url(m->api);
    *socket = api_socket(m->api);
    return 0;
}

void member_replicas_end(struct member *m)
{
    if (m->api != NULL)
        api_destroy(m->api, member_piece_gone, m);
    m->api = NULL;
}

int member_replicas_welcomed(struct member *m, json_object *msg)
{
    static const struct replicas_hooks hooks = {
        .describe = describe,
        .send = send_message,
        .output = output,
        .output_ended = output_ended,
        .api = open_api,
        .none = none,
    };
    const char *roles = json_get_string(msg, "roles");
    struct error err = {""};

    if (roles == NULL)
        return 0;
    if (m->replicas == NULL) {
        m->job.roles = strdup(roles);
        m->replicas = replicas_create(m->loop, roles, environ, &hooks, m, &err);
    }
    if (m->replicas != NULL)
        replicas_set_shield(m->replicas, m->options->shield);
    if (m->replicas == NULL || m->job.roles == NULL) {
        log_error("%s: the leader's roles cannot be used: %s", m->options->node, err.text);
        return -1;
    }
    if (m->api != NULL)
        api_leader(m->api, m->leader.address, m->leader.port);
    replicas_welcomed(m->replicas, m->own_address);
    return 0;
}

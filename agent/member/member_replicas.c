/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The replicas of this node between workers and leader (member_internal.h). */
#include <string.h>
#include <unistd.h>

#include "agent/member/member_internal.h"
#include "agent/member/replicas.h"
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

int member_replicas_welcomed(struct member *m, json_object *msg)
{
    static const struct replicas_hooks hooks = {
        .describe = describe,
        .send = send_message,
        .output = output,
        .output_ended = output_ended,
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
    replicas_welcomed(m->replicas, m->own_address);
    return 0;
}

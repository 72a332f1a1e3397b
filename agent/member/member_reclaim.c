/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A node that is about to be taken away, or that had better be replaced (reclaim.h).
 *
 * The leader is told. It forms a world without a node that is taken away, and replaces a node first
 * that its cloud advises to replace. Each leader is told anew, but for a service that is of no use:
 * that one leader has said. */
#include "agent/member/member_internal.h"
#include "agent/member/reclaim.h"
#include "common/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void on_notice(const char *from, double left, void *arg)
{
    struct member *m = arg;
    char when[32] = "";

    if (left >= 0)
        snprintf(when, sizeof(when), " in %.0f s", left);
    log_info("%s: is about to be taken away%s (%s)", m->options->node, when, from);
    m->taken.comes = true;
    m->taken.at = left >= 0 ? member_now(m) + left : -1;
    member_reclaim_welcomed(m);
}

static void on_advice(const char *from, void *arg)
{
    struct member *m = arg;

    log_debug("%s: %s advises to replace the node", m->options->node, from);
    m->taken.advised = true;
    member_reclaim_welcomed(m);
}

/* The same is true on all nodes, most likely: the leader says so once. */
static void on_silence(const char *why, bool of_advice, void *arg)
{
    struct member *m = arg;

    free(m->taken.silence[of_advice]);
    m->taken.silence[of_advice] = strdup(why);
    member_reclaim_welcomed(m);
}

void member_reclaim_begin(struct member *m)
{
    static const struct reclaim_handlers handlers = {on_notice, on_advice, on_silence};

    m->reclaim = reclaim_create(m->loop, m->options->conf, &handlers, m);
    m->open_handles += m->reclaim != NULL;
}

static void send_silence(struct member *m, bool of_advice)
{
    json_object *msg;

    if (m->taken.silence[of_advice] == NULL)
        return;
    msg = member_message("silence");
    json_object_object_add(msg, "why", json_object_new_string(m->taken.silence[of_advice]));
    json_object_object_add(msg, "advice", json_object_new_boolean(of_advice));
    member_send(m, msg);
    free(m->taken.silence[of_advice]);
    m->taken.silence[of_advice] = NULL;
}

void member_reclaim_welcomed(struct member *m)
{
    double left = m->taken.at - member_now(m);

    if (!m->welcomed || m->ending || m->link == NULL || member_seeks(m))
        return;
    send_silence(m, false);
    send_silence(m, true);
    if (m->taken.comes) {
        json_object *msg = member_message("reclaim");

        if (m->taken.at >= 0)
            json_object_object_add(msg, "left", json_object_new_double(left > 0 ? left : 0));
        member_send(m, msg);
    } else if (m->taken.advised) {
        member_send(m, member_message("advice"));
    }
}

void member_reclaim_end(struct member *m)
{
    if (m->reclaim != NULL)
        reclaim_destroy(m->reclaim, member_piece_gone);
    m->reclaim = NULL;
    free(m->taken.silence[0]);
    free(m->taken.silence[1]);
    m->taken.silence[0] = m->taken.silence[1] = NULL;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A node that is about to be taken away (reclaim.h).
 *
 * The leader is told, and forms a world without this node. */
#include "agent/member/member_internal.h"
#include "agent/member/reclaim.h"
#include "common/log.h"

#include <stdio.h>

static void on_notice(const char *from, double left, void *arg)
{
    struct member *m = arg;
    char when[32] = "";

    if (left >= 0)
        snprintf(when, sizeof(when), " in %.0f s", left);
    log_info("%s: is about to be taken away%s (%s)", m->options->node, when, from);
    m->reclaimed = true;
    m->reclaimed_at = left >= 0 ? member_now(m) + left : -1;
    member_reclaim_welcomed(m);
}

void member_reclaim_begin(struct member *m)
{
    m->reclaim = reclaim_create(m->loop, m->options->conf, on_notice, m);
    m->open_handles += m->reclaim != NULL;
}

void member_reclaim_welcomed(struct member *m)
{
    json_object *msg;
    double left = m->reclaimed_at - member_now(m);

    if (!m->reclaimed || !m->welcomed || m->ending)
        return;
    msg = member_message("reclaim");
    if (m->reclaimed_at >= 0)
        json_object_object_add(msg, "left", json_object_new_double(left > 0 ? left : 0));
    member_send(m, msg);
}

void member_reclaim_end(struct member *m)
{
    if (m->reclaim != NULL)
        reclaim_destroy(m->reclaim, member_piece_gone);
    m->reclaim = NULL;
}

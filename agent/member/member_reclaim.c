/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A node that is about to be taken away (reclaim.h).
 *
 * The leader is told, and forms a world without this node. */
#include "agent/member/member_internal.h"
#include "agent/member/reclaim.h"
#include "common/log.h"

static void on_notice(const char *from, void *arg)
{
    struct member *m = arg;

    log_info("%s: is about to be taken away (%s)", m->options->node, from);
    m->reclaimed = true;
    member_reclaim_welcomed(m);
}

void member_reclaim_begin(struct member *m)
{
    m->reclaim = reclaim_create(m->loop, m->options->conf, on_notice, m);
    m->open_handles += m->reclaim != NULL;
}

void member_reclaim_welcomed(struct member *m)
{
    if (m->reclaimed && m->welcomed && !m->ending)
        member_send(m, member_message("reclaim"));
}

void member_reclaim_end(struct member *m)
{
    if (m->reclaim != NULL)
        reclaim_destroy(m->reclaim, member_piece_gone);
    m->reclaim = NULL;
}

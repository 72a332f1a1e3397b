/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Is this node about to be taken away?
 *
 * A cloud announces that before, through its metadata service (lib/notice.h), a program of the site
 * or an address of the site (reclaim of elastic.conf). They are asked again and again. Where the
 * site wants it, a service is asked for advice to replace the node as well. */
#ifndef ELASTIC_AGENT_MEMBER_RECLAIM_H
#define ELASTIC_AGENT_MEMBER_RECLAIM_H

#include <stdbool.h>

#include <uv.h>

#include "lib/conf.h"

struct reclaim;

/* What is called from the loop. from is a word for the log. */
struct reclaim_handlers {
    /* The node is about to be taken away, in so many seconds (< 0: not known). Called once; it is
     * the last call. */
    void (*notice)(const char *from, double left, void *arg);
    /* The cloud advises to replace the node. Called once. */
    void (*advice)(const char *from, void *arg);
    /* The service is of no use, or gives no advice. Called once for each. */
    void (*silence)(const char *why, bool of_advice, void *arg);
};

/* Ask until there is a notice. NULL: nothing is configured, or out of memory. conf and handlers
 * must outlive the result. */
struct reclaim *reclaim_create(uv_loop_t *loop, const struct conf *conf,
                               const struct reclaim_handlers *handlers, void *arg);

/* Stop. closed(arg) is called from the loop when nothing is left there, and the memory is freed. */
void reclaim_destroy(struct reclaim *reclaim, void (*closed)(void *arg));

#endif

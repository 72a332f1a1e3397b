/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Is this node about to be taken away?
 *
 * A cloud announces that before, through its metadata service (lib/notice.h), a program of the site
 * or an address of the site (reclaim of elastic.conf). They are asked again and again. */
#ifndef ELASTIC_AGENT_MEMBER_RECLAIM_H
#define ELASTIC_AGENT_MEMBER_RECLAIM_H

#include <uv.h>

#include "lib/conf.h"

struct reclaim;

/* Ask until there is a notice. Then notice is called once, with a word for the log and the seconds
 * that are left (< 0: not known). NULL: nothing is configured, or out of memory. conf must outlive
 * the result. */
struct reclaim *reclaim_create(uv_loop_t *loop, const struct conf *conf,
                               void (*notice)(const char *from, double left, void *arg), void *arg);

/* Stop. closed(arg) is called from the loop when nothing is left there, and the memory is freed. */
void reclaim_destroy(struct reclaim *reclaim, void (*closed)(void *arg));

#endif

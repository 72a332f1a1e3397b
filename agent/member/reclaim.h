/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Is this node about to be taken away?
 *
 * A cloud announces that minutes before, through a program of the site or at an HTTP address
 * (reclaim_program, reclaim_url of elastic.conf). Both are asked every few seconds. */
#ifndef ELASTIC_AGENT_MEMBER_RECLAIM_H
#define ELASTIC_AGENT_MEMBER_RECLAIM_H

#include <uv.h>

#include "lib/conf.h"

struct reclaim;

/* Ask until there is a notice. Then notice is called once, with a word for the log. NULL: nothing
 * is configured, or out of memory. conf must outlive the result. */
struct reclaim *reclaim_create(uv_loop_t *loop, const struct conf *conf,
                               void (*notice)(const char *from, void *arg), void *arg);

/* Stop. closed(arg) is called from the loop when nothing is left there, and the memory is freed. */
void reclaim_destroy(struct reclaim *reclaim, void (*closed)(void *arg));

#endif

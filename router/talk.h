/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One question to a socket of haproxy: a command, and all that it answers, with a time limit. */
#ifndef ELASTIC_ROUTER_TALK_H
#define ELASTIC_ROUTER_TALK_H

#include <uv.h>

#define TALK_ANSWER_MAX (64 << 20) /* bytes */

struct talk;

/* answer lives until the end of the call. NULL: there is none, then why says so. Comes from the
 * loop, once, unless it is cancelled. */
typedef void talk_done(const char *answer, const char *why, void *arg);

/* The command is copied. NULL: out of memory. */
struct talk *talk_begin(uv_loop_t *loop, const char *socket, const char *command, int timeout_ms,
                        talk_done *done, void *arg);
/* done is not called any more. */
void talk_cancel(struct talk *talk);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages that the leader is to hear late, so that it does not order the same again at once. */
#ifndef ELASTIC_AGENT_MEMBER_LATE_H
#define ELASTIC_AGENT_MEMBER_LATE_H

#include <json-c/json.h>
#include <uv.h>

#define LATE_MS 1000

struct late;

/* send takes a message over. While nothing waits there is nothing of it in the loop. NULL: out of
 * memory. */
struct late *late_create(uv_loop_t *loop, void (*send)(json_object *msg, void *arg), void *arg);
/* What waits is not sent. NULL is accepted. */
void late_destroy(struct late *late);

/* Send it, which is taken over, after LATE_MS. */
void late_send(struct late *late, json_object *msg);
/* Send now what waits. */
void late_flush(struct late *late);

#endif

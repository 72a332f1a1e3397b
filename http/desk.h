/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests that wait for the leader, for a limited time. The same looks of several are one
 * question. */
#ifndef ELASTIC_HTTP_DESK_H
#define ELASTIC_HTTP_DESK_H

#include <stdbool.h>

#include <uv.h>

#include "common/courier.h"
#include "lib/api_call.h"

struct desk;

#define DESK_MAX 200 /* requests that wait at once */

/* The reply is borrowed. Comes from the loop. */
typedef void desk_done(struct api_reply *reply, void *arg);

/* hold_ms: for a leader to be there; watch_ms: for something to change. The courier stays. NULL:
 * out of memory. */
struct desk *desk_create(uv_loop_t *loop, struct courier *courier, int hold_ms, int watch_ms);
/* done is called once. -1: out of memory, and it is not called. */
int desk_take(struct desk *desk, const struct api_request *request, desk_done *done, void *arg);
/* Nobody waits any more for what was taken with this arg: done is not called, and what has not been
 * asked is not asked. */
void desk_withdraw(struct desk *desk, const void *arg);
int desk_waiting(const struct desk *desk);
bool desk_is_full(const struct desk *desk);
/* All that wait are refused now. It is freed once the loop has closed its timer. */
void desk_destroy(struct desk *desk);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Routers that wait for another table of routes than they have. */
#ifndef ELASTIC_AGENT_LEADER_ROUTE_WAITERS_H
#define ELASTIC_AGENT_LEADER_ROUTE_WAITERS_H

#include <stdbool.h>
#include <stdint.h>

#include <json-c/json.h>

struct leader;
struct leader_service;
struct link;

/* The table of routes, borrowed; NULL: there is none yet. */
typedef void route_waiters_told(struct leader *leader, struct link *link, json_object *table);
/* told is called from the loop as soon as its revision is higher, or after a while. False: too many
 * wait. */
bool route_waiters_add(struct leader *leader, struct link *link, int64_t after,
                       route_waiters_told *told);
/* Nobody waits there any more. */
void route_waiters_closed(struct leader *leader, const struct link *link);

/* Tell those that have waited for what there is now, or for long enough. */
void route_waiters_tell(struct leader *leader);
void route_waiters_clear(struct leader_service *own);

#endif

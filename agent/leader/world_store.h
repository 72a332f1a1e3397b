/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The store on which the processes of a world meet (doc/internals/live.md). */
#ifndef ELASTIC_AGENT_LEADER_WORLD_STORE_H
#define ELASTIC_AGENT_LEADER_WORLD_STORE_H

#include <stdbool.h>

#include <json-c/json.h>

struct leader;
struct leader_member;
struct pmix_relay;
struct world_store;

/* NULL: out of memory. */
struct world_store *world_store_create(void);
/* The timer of requests that wait begins, and ends. */
void world_store_open(struct leader *leader);
void world_store_close(struct leader *leader);
void world_store_destroy(struct world_store *store);

/* A world is being prepared. -1: out of memory. */
int world_store_begin(struct leader *leader, const struct pmix_relay *relay);
/* It is over, or aborted: requests that wait there are answered. */
void world_store_end(struct leader *leader, const struct pmix_relay *relay);
void world_store_member_gone(struct leader *leader, const struct leader_member *member);

/* "store": a request of one of the member's processes; "unstore": that process has gone. */
void world_store_request(struct leader *leader, struct leader_member *m, json_object *msg);
void world_store_withdraw(struct leader *leader, struct leader_member *m, json_object *msg);

#endif

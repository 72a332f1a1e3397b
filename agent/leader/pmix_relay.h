/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the PMIx servers of a world's nodes say to each other, through the leader
 * (doc/internals/pmix.md). */
#ifndef ELASTIC_AGENT_LEADER_PMIX_RELAY_H
#define ELASTIC_AGENT_LEADER_PMIX_RELAY_H

#include <stdbool.h>

#include <json-c/json.h>

#include "lib/world.h"

struct leader;
struct leader_member;
struct pmix_relay;
struct pmix_world;

/* A world is being prepared. -1: out of memory. */
int pmix_relay_begin(struct leader *leader, struct pmix_relay *relay, const struct world *world,
                     int attempt);
void pmix_relay_end(struct leader *leader, struct pmix_relay *relay);
/* Collectives of the worlds that the member is part of fail. */
void pmix_relay_member_gone(struct leader *leader, const struct leader_member *member);

/* The world that a message is about, by its "attempt". False: that world is over, or the member has
 * no place in it; its own agent will tell its processes so. */
bool pmix_relay_find(struct leader *leader, const struct leader_member *m, json_object *msg,
                     struct pmix_world *pmix_world);
/* "gather": a node's part of a collective; "ungather": the node gives up. */
void pmix_relay_gather(const struct pmix_world *pmix_world, struct leader_member *m,
                       json_object *msg);
void pmix_relay_ungather(const struct pmix_world *pmix_world, struct leader_member *m,
                         json_object *msg);
/* "no_pmix": the node's workers have started without PMIx. */
void pmix_relay_no_pmix(const struct pmix_world *pmix_world, struct leader_member *m,
                        json_object *msg);
/* "relay": from one node to another. */
void pmix_relay_relay(const struct pmix_world *pmix_world, struct leader_member *m,
                      json_object *msg);
/* "ask": a question to the leader. */
void pmix_relay_ask(const struct pmix_world *pmix_world, struct leader_member *m, json_object *msg);

#endif

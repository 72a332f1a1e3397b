/* SPDX-License-Identifier: GPL-2.0-or-later */
/* May this leader lead, and who may lead after it (doc/internals/takeover.md)? */
#ifndef ELASTIC_AGENT_LEADER_LEASE_H
#define ELASTIC_AGENT_LEADER_LEASE_H

#include <stdbool.h>

#include <json-c/json.h>

struct leader;
struct leader_lease;
struct leader_member;
struct leader_options;

/* NULL: out of memory. */
struct leader_lease *lease_create(const struct leader_options *options);
void lease_destroy(struct leader_lease *lease);

/* This leader follows another one, for that term, which is still to be sealed. */
void lease_inherit(struct leader *leader, int term);
/* Nothing that cannot be taken back may be done otherwise. If false: it will be decided again by
 * itself. */
bool lease_may_act(struct leader *leader);
/* How many leaders the job had before this one. */
int lease_term(const struct leader *leader);
/* Does another node lead by now? */
bool lease_deposed(const struct leader *leader);

/* Those that may lead next; belongs to the lease. */
json_object *lease_successors(const struct leader *leader);
void lease_member_lost(struct leader *leader, const struct leader_member *m);

/* "beat": answered with this leader's time, which the member sends back with its next beat. */
void lease_beat(struct leader *leader, struct leader_member *m, json_object *msg);
/* "listen": the member's node may lead next. */
void lease_listens(struct leader *leader, struct leader_member *m, json_object *msg);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What members say of replicas, while another leader may act: it waits here.
 *
 * A leader that stood still and goes on may be deposed without knowing it. It takes the members for
 * lost whose beats it did not hear, and would have the replicas ended that they still have. */
#ifndef ELASTIC_AGENT_LEADER_ROLE_INBOX_H
#define ELASTIC_AGENT_LEADER_ROLE_INBOX_H

#include <stdbool.h>

#include <json-c/json.h>

struct leader;
struct leader_member;
struct role_inbox;

typedef void role_take(struct leader *leader, struct leader_member *m, json_object *msg);

/* NULL: out of memory. */
struct role_inbox *role_inbox_create(void);
void role_inbox_destroy(struct role_inbox *own); /* accepts NULL */

bool role_inbox_any(const struct role_inbox *own);
/* Keeps a reference to msg. False: out of memory. */
bool role_inbox_add(struct role_inbox *own, int member, role_take *take, json_object *msg);
/* All of it is taken, in its order; not what members said that are gone. */
void role_inbox_empty(struct leader *leader, struct role_inbox *own);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Extension jobs for replicas of roles: what lib/reconcile asks for is submitted, and what becomes
 * of it is told as facts. */
#ifndef ELASTIC_AGENT_LEADER_ROLE_REQUESTS_H
#define ELASTIC_AGENT_LEADER_ROLE_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/reconcile.h"

struct leader;
struct role_requests;

/* NULL: out of memory. */
struct role_requests *role_requests_create(const struct roles *roles);
void role_requests_destroy(struct role_requests *requests); /* accepts NULL */

/* Can the role have replicas in extension jobs at all? */
bool role_requests_possible(const struct leader *leader, int role);
/* The actions ASK, WITHDRAW and GIVE_BACK. gang: what the replicas of ASK need. */
void role_requests_do(struct leader *leader, struct role_requests *requests,
                      const struct reconcile_action *action, const struct slots_gang *gang);
/* The next thing that has happened to them since the last call, in *fact. Its text is good until
 * the next call. False: nothing has. */
bool role_requests_next(struct leader *leader, struct role_requests *requests,
                        struct reconcile_fact *fact);
/* Submit what can be submitted now. To be called after facts have been taken. Returns when it is to
 * be called again even if nothing happens (leader_now); 0: never. */
double role_requests_submit(struct leader *leader, struct role_requests *requests);

#endif

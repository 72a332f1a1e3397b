/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replicas that are to end, and get their signal later: requests may still come to them. */
#ifndef ELASTIC_AGENT_LEADER_ROLE_HOLDS_H
#define ELASTIC_AGENT_LEADER_ROLE_HOLDS_H

#include <stdbool.h>

#include "lib/reconcile.h"

struct role_holds;

/* NULL: out of memory. */
struct role_holds *role_holds_create(void);
void role_holds_destroy(struct role_holds *own); /* accepts NULL */

/* Are replicas held at all? At first: no. */
void role_holds_set(struct role_holds *own, bool holds);
/* Keep an action DRAIN for half of its time. False: it is to be carried out at once. */
bool role_holds_add(struct role_holds *own, const struct reconcile_action *action, double now);
/* That start of a replica gets its signal now. */
void role_holds_release(struct role_holds *own, int replica, int start);
/* The next one that is due, with the time that is left; false: there is none. *due: when the next
 * one is; 0: never. */
bool role_holds_next(struct role_holds *own, const struct reconcile *reconcile, double now,
                     struct reconcile_action *action, double *due);

#endif

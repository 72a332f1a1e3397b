/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The roles of the job (doc/internals/roles.md): what happens goes to lib/reconcile as facts, and
 * its actions are carried out here. In a job without roles nothing of this has an effect. */
#ifndef ELASTIC_AGENT_LEADER_LEADER_ROLES_H
#define ELASTIC_AGENT_LEADER_LEADER_ROLES_H

#include <stdbool.h>

#include <json-c/json.h>

#include "agent/leader/role_inbox.h"
#include "agent/leader/roles_view.h"
#include "lib/error.h"

struct leader;
struct leader_member;
struct leader_options;
struct leader_roles;

/* NULL: out of memory. */
struct leader_roles *leader_roles_create(const struct leader_options *options);
void leader_roles_destroy(struct leader_roles *roles); /* accepts NULL */
/* Its timer begins, and ends. */
void leader_roles_open(struct leader *leader);
void leader_roles_close(struct leader *leader);

/* Does the job have roles? */
bool leader_roles_any(const struct leader *leader);
/* Something may have changed that only the leader knows: whether it may act, who has joined. */
void leader_roles_look(struct leader *leader);
/* The job is to end, also a job without roles. Replicas are drained first. */
void leader_roles_stop(struct leader *leader, const char *reason);
/* What a member has to know of them to run their replicas: "roles". */
void leader_roles_add(const struct leader *leader, json_object *welcome);
/* A member is lost, or has left. */
void leader_roles_member_gone(struct leader *leader, const struct leader_member *m);

/* A member says something of its replicas. It waits while another leader may act. */
void leader_roles_take(struct leader *leader, struct leader_member *m, role_take *take,
                       json_object *msg);
/* "room": what a member has for replicas. False: it gets none. */
bool leader_roles_room(struct leader *leader, struct leader_member *m, json_object *msg);

/* For what stands above: only of a job with roles. */
const struct roles_view *leader_roles_view(const struct leader *leader);
/* Something has happened; fact.now is filled in. */
void leader_roles_feed(struct leader *leader, struct reconcile_fact fact);
/* The replica's tasks on that node will never be started: they have ended at once. */
void leader_roles_never_started(struct leader *leader, const struct replica *replica, int node);

/* From now on, or from now on no longer: requests may still come to replicas of shards that are
 * drained. So these go on for half of the time that they have, or until they are released. */
void leader_roles_hold(struct leader *leader, bool holds);
void leader_roles_release(struct leader *leader, int replica, int start);

/* A size is another one from now on: another epoch begins, or who has seen the size before would
 * take it for the present one. */
void leader_roles_resize(struct leader *leader, struct reconcile_fact fact);

/* In a line for `selastic show`: "coordinator 1/1, server 3/5". */
void leader_roles_summary(struct leader *leader, char *text, size_t size);
/* Do the roles run: is the base there? */
bool leader_roles_run(const struct leader *leader);
/* What selastic shows: adds "epoch", "roles" and "replicas". */
void leader_roles_describe(struct leader *leader, json_object *into);
/* Grows with each change of sizes, and of what is ready. */
int leader_roles_epoch(const struct leader *leader);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The roles of the job (doc/internals/roles.md): what happens goes to lib/reconcile as facts, and
 * its actions are carried out here. In a job without roles nothing of this has an effect. */
#ifndef ELASTIC_AGENT_LEADER_LEADER_ROLES_H
#define ELASTIC_AGENT_LEADER_LEADER_ROLES_H

#include <stdbool.h>

#include <json-c/json.h>

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

/* Messages of members. */
void leader_roles_room(struct leader *leader, struct leader_member *m, json_object *msg);
void leader_roles_port(struct leader *leader, struct leader_member *m, json_object *msg);
void leader_roles_running(struct leader *leader, struct leader_member *m, json_object *msg);
void leader_roles_ready(struct leader *leader, struct leader_member *m, json_object *msg);
void leader_roles_unready(struct leader *leader, struct leader_member *m, json_object *msg);
void leader_roles_exit(struct leader *leader, struct leader_member *m, json_object *msg);

/* In a line for `selastic show`: "coordinator 1/1, server 3/5". */
void leader_roles_summary(struct leader *leader, char *text, size_t size);
/* Do the roles run: is the base there? */
bool leader_roles_run(const struct leader *leader);
/* What selastic shows: adds "epoch", "roles" and "replicas". */
void leader_roles_describe(struct leader *leader, json_object *into);
/* What users ask. -1 with err: it cannot be done. The new size is in *size, the one before in
 * *before. */
int leader_roles_scale(struct leader *leader, const char *role, bool relative, int number,
                       int *size, int *before, struct error *err);
int leader_roles_fail(struct leader *leader, const char *replica, struct error *err);

#endif

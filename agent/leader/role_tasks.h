/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What members say of the tasks of replicas: messages become facts for lib/reconcile. */
#ifndef ELASTIC_AGENT_LEADER_ROLE_TASKS_H
#define ELASTIC_AGENT_LEADER_ROLE_TASKS_H

#include <json-c/json.h>

struct leader;
struct leader_member;

/* "room": what a member has for replicas, and which run there since before a takeover. */
void role_tasks_room(struct leader *leader, struct leader_member *m, json_object *msg);
void role_tasks_port(struct leader *leader, struct leader_member *m, json_object *msg);
void role_tasks_running(struct leader *leader, struct leader_member *m, json_object *msg);
void role_tasks_ready(struct leader *leader, struct leader_member *m, json_object *msg);
void role_tasks_unready(struct leader *leader, struct leader_member *m, json_object *msg);
void role_tasks_models(struct leader *leader, struct leader_member *m, json_object *msg);
void role_tasks_exit(struct leader *leader, struct leader_member *m, json_object *msg);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What users ask the leader about roles with selastic. Each question is answered on its link. */
#ifndef ELASTIC_AGENT_LEADER_CONTROL_ROLES_H
#define ELASTIC_AGENT_LEADER_CONTROL_ROLES_H

#include <json-c/json.h>

struct leader;
struct link;

/* "roles", "scale", "fail", "remove", "report", "reports". */
void control_roles(struct leader *leader, struct link *link, json_object *msg);
void control_scale(struct leader *leader, struct link *link, json_object *msg);
void control_fail(struct leader *leader, struct link *link, json_object *msg);
void control_remove(struct leader *leader, struct link *link, json_object *msg);
void control_report(struct leader *leader, struct link *link, json_object *msg);
void control_reports(struct leader *leader, struct link *link, json_object *msg);

#endif

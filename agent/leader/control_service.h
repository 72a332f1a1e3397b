/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What users and routers ask about the service of the job. Each is answered on its link. */
#ifndef ELASTIC_AGENT_LEADER_CONTROL_SERVICE_H
#define ELASTIC_AGENT_LEADER_CONTROL_SERVICE_H

#include <json-c/json.h>

struct leader;
struct link;

/* Of users: "shards", "apply", "flush", "repack", "move", "place", "withdraw", "serve",
 * "hand-over"; of routers: "routes", "routed". */
void control_shards(struct leader *leader, struct link *link, json_object *msg);
void control_apply(struct leader *leader, struct link *link, json_object *msg);
void control_flush(struct leader *leader, struct link *link, json_object *msg);
void control_move(struct leader *leader, struct link *link, json_object *msg);
void control_place(struct leader *leader, struct link *link, json_object *msg);
void control_withdraw(struct leader *leader, struct link *link, json_object *msg);
void control_serve(struct leader *leader, struct link *link, json_object *msg);
void control_repack(struct leader *leader, struct link *link, json_object *msg);
void control_hand_over(struct leader *leader, struct link *link, json_object *msg);
void control_routes(struct leader *leader, struct link *link, json_object *msg);
void control_routed(struct leader *leader, struct link *link, json_object *msg);

#endif

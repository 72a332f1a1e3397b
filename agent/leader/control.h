/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What users ask the leader with selastic. Each question is answered on its link. */
#ifndef ELASTIC_AGENT_LEADER_CONTROL_H
#define ELASTIC_AGENT_LEADER_CONTROL_H

#include <stdbool.h>

#include <json-c/json.h>

struct leader;
struct link;

/* "show", "history", "resize". */
void control_show(struct leader *leader, struct link *link, json_object *msg);
void control_history(struct leader *leader, struct link *link, json_object *msg);
void control_resize(struct leader *leader, struct link *link, json_object *msg);
/* What "show" answers: a new object. */
json_object *control_state(struct leader *leader);

/* For other files of requests: an answer with a "message"; may this leader answer for the job, or
 * is another node asked as well (leading); may it change the job? If not, that has been said. */
json_object *control_answer(const char *type, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void control_say(struct link *link, json_object *said, bool leading);
bool control_leads(struct leader *leader);
bool control_may_change(struct leader *leader, struct link *link);

/* Does this selastic speak a protocol of this leader? If not, it is told so. */
bool control_understands(const struct leader *leader, struct link *link, json_object *msg);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is asked for metrics: "metrics". */
#ifndef ELASTIC_AGENT_LEADER_CONTROL_METRICS_H
#define ELASTIC_AGENT_LEADER_CONTROL_METRICS_H

#include <json-c/json.h>

struct leader;
struct link;

/* The answer, as a new object. */
json_object *control_metrics_json(struct leader *leader);
void control_metrics(struct leader *leader, struct link *link, json_object *msg);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Workers that are slower than the others (--elastic-straggler; lib/straggler.h). */
#ifndef ELASTIC_AGENT_LEADER_STRAGGLER_WATCH_H
#define ELASTIC_AGENT_LEADER_STRAGGLER_WATCH_H

#include <json-c/json.h>

struct leader;
struct leader_member;
struct straggler_watch;

/* NULL: out of memory. */
struct straggler_watch *straggler_watch_create(void);
void straggler_watch_destroy(struct straggler_watch *watch);

/* What a beat of a member of the present world says of its workers' own times. */
void straggler_watch_beat(struct leader *leader, struct leader_member *m, json_object *beat);
/* "health": what may make the workers of the member's node slow. */
void straggler_watch_health(struct leader *leader, struct leader_member *m, json_object *msg);
/* Look. Called about every heartbeat. */
void straggler_watch(struct leader *leader);

/* For selastic: a new array. */
json_object *straggler_watch_json(const struct leader *leader);

#endif

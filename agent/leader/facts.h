/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What members say becomes facts of the change of worlds (lib/change.h): handlers of messages.c. */
#ifndef ELASTIC_AGENT_LEADER_FACTS_H
#define ELASTIC_AGENT_LEADER_FACTS_H

#include <json-c/json.h>

#include "agent/leader/roster.h"

typedef void fact_handler(struct leader *leader, struct leader_member *m, json_object *msg);

/* About the next world. */
fact_handler facts_reserved, facts_parked, facts_unprepared;
/* About the workers of the present one. */
fact_handler facts_ready, facts_listening, facts_begun, facts_stepping, facts_held, facts_exit,
    facts_drained;
/* A program has asked for the end of the job. */
fact_handler facts_end;
/* "beat": how long steps take, and whether a worker waits to hear of an abort. */
fact_handler facts_beat;

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a PMIx query wants to know of the job. */
#ifndef ELASTIC_AGENT_LEADER_PMIX_QUERY_H
#define ELASTIC_AGENT_LEADER_PMIX_QUERY_H

#include <json-c/json.h>

struct leader_member;
struct pmix_world;

/* "state", a question to the leader: sizes, reasons, time that is left. */
void pmix_query_answer(const struct pmix_world *pmix_world, struct leader_member *m,
                       json_object *msg);

#endif

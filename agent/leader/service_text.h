/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The texts of a service's files (doc/internals/serve.md). */
#ifndef ELASTIC_AGENT_LEADER_SERVICE_TEXT_H
#define ELASTIC_AGENT_LEADER_SERVICE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/roles.h"
#include "lib/service.h"

struct leader;

/* New strings; NULL: out of memory. leader.json: this job runs the service, or has ended. Also
 * before.json. */
char *service_text_leader(struct leader *leader, int64_t term, bool ended);
/* next.json: this job is to go on with what job `of` has. */
char *service_text_next(const struct leader *leader, uint32_t of);
/* For `selastic shard`: {"state": "awaits", "job": 12}. */
json_object *service_text_handover(const struct leader *leader);
/* models/shard_N.json. */
char *service_text_list(const char *repository, const struct service_action *action);
/* routes.json: what lib/service says, with the job, how keys are found, how replicas are asked. */
char *service_text_table(const struct roles *roles, const struct role *role, uint32_t job,
                         int64_t term, const char *said);
/* The name of models/shard_N.json in the service's directory, in *name. */
const char *service_text_models(int shard, char *name, size_t size);

#endif

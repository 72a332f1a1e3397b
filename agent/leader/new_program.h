/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Another program for the shards of the service, which a user has in a job file (`selastic apply
 * --file`). */
#ifndef ELASTIC_AGENT_LEADER_NEW_PROGRAM_H
#define ELASTIC_AGENT_LEADER_NEW_PROGRAM_H

#include <stdbool.h>

#include <json-c/json.h>

#include "lib/error.h"

struct leader;

/* roles: the text of that file (roles_text()). Only as leader_service_ready() says 0. *same: its
 * program is the present one, and all shards have it or come to it. -1 with err: it cannot be. */
int new_program_apply(struct leader *leader, const char *roles, bool *same, struct error *err);
/* The same of a command, which is to be an array of strings. */
int new_program_run(struct leader *leader, json_object *run, bool *same, struct error *err);

#endif

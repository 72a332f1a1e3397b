/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Roles of a job and their replicas: what the leader says of them as text, and those that programs
 * can connect to. Pure. */
#ifndef SELASTIC_REPLICAS_H
#define SELASTIC_REPLICAS_H

#include <json-c/json.h>

#include "cmd/render.h"
#include "lib/error.h"

/* The replicas of a role in a `roles` answer, of all roles if role is NULL: a new object, as of
 * shape_replicas. NULL with err: the job has no such role. */
json_object *replicas_of(json_object *answer, const char *role, struct error *err);

/* `selastic roles`: of shape_roles. New string. */
char *render_roles(json_object *roles, const struct render_options *options);

/* `selastic replicas`: of replicas_of. New string. */
char *render_replicas(json_object *replicas, const struct render_options *options);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Services and their shards, for selastic. Pure. */
#ifndef SELASTIC_SERVICES_H
#define SELASTIC_SERVICES_H

#include <json-c/json.h>

#include "cmd/render.h"

/* The `shards` answer of a leader as a new object with exactly the documented keys (shape.h). */
json_object *shape_shards(json_object *answer);
/* `selastic shard`: of shape_shards. A new string. */
char *render_shards(json_object *shards, const struct render_options *options);

/* A service as its leader.json says; {"service": name} of one without. A new object. */
json_object *shape_service(const char *name, json_object *leader);
/* `selastic services`: of {"services": [...]}. A new string. */
char *render_services(json_object *services, const struct render_options *options);

#endif

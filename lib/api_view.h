/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The leader's answer to `roles`, as the HTTP interface shows it. Pure. */
#ifndef ELASTIC_API_VIEW_H
#define ELASTIC_API_VIEW_H

#include <stddef.h>

#include <json-c/json.h>

#include "lib/error.h"

/* -1: it has none. */
int api_view_epoch(json_object *answer);
/* The role, or the replica of the role, of that name. Borrowed. NULL: there is none. */
json_object *api_view_role(json_object *answer, const char *role);
json_object *api_view_replica(json_object *answer, const char *role, const char *replica);
/* The names of the roles, in text. */
const char *api_view_names(json_object *answer, char *text, size_t size);
/* How many replicas of the role have been started. One that has failed is started again. */
int api_view_running(json_object *answer, const char *role);

/* A member of a role or a replica; "" or -1: it has none. object may be NULL. */
const char *api_view_text(json_object *object, const char *key);
int api_view_number(json_object *object, const char *key);

/* New objects: {"job", "epoch", …} with "roles", with the "replicas" of a role, with both. */
json_object *api_view_roles(json_object *answer);
json_object *api_view_replicas(json_object *answer, const char *role);
json_object *api_view_all(json_object *answer);
/* … with "endpoints", of a role, or of all for NULL. NULL with err: as endpoints_of(). */
json_object *api_view_endpoints(json_object *answer, const char *role, int *count,
                                struct error *err);

/* … of a `shards` answer: all of it, or {"services": [{"service", "job", "term", …}]}. */
json_object *api_view_shards(json_object *answer);
json_object *api_view_services(json_object *answer);
/* … {"models", "refused"}; {"routes": [{"key", "model", "shard"}]}. */
json_object *api_view_models(json_object *answer);
json_object *api_view_routes(json_object *answer);
/* … the model of which that key has that value, borrowed; NULL: there is none. And its route. */
json_object *api_view_model(json_object *answer, const char *key, const char *value);
json_object *api_view_route(json_object *model);

/* … of a `reports` answer: {"job", "first", "last", "missed", "reports"}. */
json_object *api_view_reports(json_object *answer, int *count);

#endif

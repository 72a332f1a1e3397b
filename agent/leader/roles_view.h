/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Roles and replicas as JSON: for selastic, and for the file of endpoints. */
#ifndef ELASTIC_AGENT_LEADER_ROLES_VIEW_H
#define ELASTIC_AGENT_LEADER_ROLES_VIEW_H

#include <stddef.h>

#include <json-c/json.h>

#include "lib/reconcile.h"

struct gangs;
struct leader;

struct roles_view {
    const struct roles *roles;
    struct reconcile *reconcile;
    struct gangs *gangs;
};

/* {"replicas": […]}: those that are ready; a new object. */
json_object *roles_view_endpoints(struct leader *leader, const struct roles_view *view);
/* Adds "roles" and "replicas". */
void roles_view_describe(struct leader *leader, const struct roles_view *view, json_object *into);
/* In a line: "coordinator 1/1, server 3/5". */
void roles_view_summary(struct leader *leader, const struct roles_view *view, char *text,
                        size_t size);

#endif

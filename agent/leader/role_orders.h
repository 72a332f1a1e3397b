/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What users ask of roles, by selastic or HTTP: sizes, and replicas that are to go. Only of a job
 * with roles. */
#ifndef ELASTIC_AGENT_LEADER_ROLE_ORDERS_H
#define ELASTIC_AGENT_LEADER_ROLE_ORDERS_H

#include <stdbool.h>

#include "lib/error.h"
#include "lib/role_needs.h"

struct leader;

/* A role gets so many replicas, or so many more; these have such needs. The new size is in *size,
 * the size before in *before. -1 with err: it cannot be done. */
int role_orders_scale(struct leader *leader, const char *role, bool relative, int number,
                      const struct role_needs *needs, int *size, int *before, struct error *err);
/* A replica is to be replaced, or to go: then its role is smaller by it. why may be NULL. */
int role_orders_end(struct leader *leader, const char *replica, bool replace, const char *why,
                    struct error *err);
/* The size that a role should have. -1: there is no such role. */
int role_orders_target(const struct leader *leader, const char *role);

#endif

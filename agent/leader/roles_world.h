/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The world beside other roles: what lib/reconcile says to lib/change, and the other way round. */
#ifndef ELASTIC_AGENT_LEADER_ROLES_WORLD_H
#define ELASTIC_AGENT_LEADER_ROLES_WORLD_H

#include <stdbool.h>

struct leader;

/* Is one of the job's roles a world? A job without roles has a world, and no others beside it. */
bool roles_world_any(const struct leader *leader);
/* Is the world's end the job's? Only if there is such a world. */
bool roles_world_leads(const struct leader *leader);
/* Does it train for fits? */
bool roles_world_fits(const struct leader *leader);
/* Does it wait for a fit, as far as is known when this leader begins? */
bool roles_world_rests(const struct leader *leader);
/* Nodes that lib/reconcile has chosen for the world are let in; lib/reconcile hears whether the
 * world trains; the world is told to end, if the job is to. */
void roles_world_watch(struct leader *leader);
/* The world has ended, with that exit status. Its extensions go. */
void roles_world_over(struct leader *leader, int code);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sizes of roles that users have asked for, in a file of the job; and how the world of a fit
 * has ended. */
#ifndef ELASTIC_AGENT_LEADER_ROLE_SIZES_H
#define ELASTIC_AGENT_LEADER_ROLE_SIZES_H

#include "agent/leader/roles_view.h"

void role_sizes_write(struct leader *leader, const struct roles_view *view);
/* Those of the job before it was requeued, or of the leader before this one, if there are any. */
void role_sizes_read(const struct roles_view *view, const char *state_dir);

#endif

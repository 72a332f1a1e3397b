/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What agents and selastic say to the leader: one table of messages, in messages.c. */
#ifndef ELASTIC_AGENT_LEADER_MESSAGES_H
#define ELASTIC_AGENT_LEADER_MESSAGES_H

#include "common/link.h"

/* What the leader's links are served with. */
extern const struct link_handlers messages_handlers;

#endif

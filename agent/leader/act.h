/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The actions of the change of worlds (lib/change.h) become messages and calls: one table. */
#ifndef ELASTIC_AGENT_LEADER_ACT_H
#define ELASTIC_AGENT_LEADER_ACT_H

#include "lib/change.h"

struct leader;

/* Carry one out. What it is about may be gone by now: then nothing happens. */
void act_carry_out(struct leader *leader, const struct change_action *action);

#endif

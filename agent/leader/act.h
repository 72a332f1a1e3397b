/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between the leader and the change of worlds (lib/change.h): facts are posted here, and the
 * actions that follow are carried out. */
#ifndef ELASTIC_AGENT_LEADER_ACT_H
#define ELASTIC_AGENT_LEADER_ACT_H

#include "lib/change.h"

struct leader;

/* Something has happened. Texts are copied if the fact has to wait for another one, whose actions
 * are being carried out; a plan and a join must not be posted then. fact.now is filled in. */
void act_post(struct leader *leader, struct change_fact fact);

/* Facts that are posted in several places. */
void act_stop(struct leader *leader, const char *reason);    /* the job is to end */
void act_fail(struct leader *leader, const char *why);       /* the world cannot go on */
void act_reason(struct leader *leader, const char *fmt, ...) /* why there will be a change */
    __attribute__((format(printf, 2, 3)));

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Facts for the change of worlds (lib/change.h): any part may post one. */
#ifndef ELASTIC_AGENT_LEADER_POST_H
#define ELASTIC_AGENT_LEADER_POST_H

#include "lib/change.h"

struct leader;
struct post;

/* NULL: out of memory. */
struct post *post_create(void);
void post_destroy(struct post *post);

/* Something has happened. Texts are copied if the fact has to wait for another one, whose actions
 * are being carried out; a plan and a join must not be posted then. fact.now is filled in. */
void post_fact(struct leader *leader, struct change_fact fact);

/* Facts that are posted in several places. */
void post_stop(struct leader *leader, const char *reason);    /* the job is to end */
void post_fail(struct leader *leader, const char *why);       /* the world cannot go on */
void post_reason(struct leader *leader, const char *fmt, ...) /* why there will be a change */
    __attribute__((format(printf, 2, 3)));

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What users whom the service allows ask of it: that it trains a model of theirs
 * (doc/internals/fit.md). elastic-fit answers; the leader says who asks. */
#ifndef ELASTIC_AGENT_LEADER_FIT_DESK_H
#define ELASTIC_AGENT_LEADER_FIT_DESK_H

#include <json-c/json.h>

struct leader;
struct link;
struct fit_desk;

/* NULL: out of memory. */
struct fit_desk *fit_desk_create(void);
void fit_desk_destroy(struct fit_desk *desk); /* accepts NULL; nobody is asked any more */

/* fit-ask, fit-begin, fit-look and fit-end: all that a guest may say. */
void fit_desk_ask(struct leader *leader, struct link *link, json_object *msg);
/* The link is gone: nobody waits for the answer. */
void fit_desk_closed(struct leader *leader, const struct link *link);
/* All questions are dropped: the leader ends. */
void fit_desk_close(struct leader *leader);

#endif

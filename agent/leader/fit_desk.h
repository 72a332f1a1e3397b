/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What users whom the service allows ask of it: that it trains a model of theirs
 * (doc/internals/fit.md). elastic-fit answers; the leader says who asks. */
#ifndef ELASTIC_AGENT_LEADER_FIT_DESK_H
#define ELASTIC_AGENT_LEADER_FIT_DESK_H

#include <stdbool.h>

#include <json-c/json.h>

struct leader;
struct link;
struct fit_desk;

/* NULL: out of memory. */
struct fit_desk *fit_desk_create(void);
void fit_desk_destroy(struct fit_desk *desk); /* accepts NULL; nobody is asked any more */

/* answer is put by whom it is given to. NULL: there is none, and why says so. */
typedef void fit_desk_answer(struct leader *leader, struct link *link, json_object *answer,
                             const char *why);

/* Of a message of theirs. The answer may come at once; it does not come once the link is gone. */
void fit_desk_ask(struct leader *leader, struct link *link, json_object *msg,
                  fit_desk_answer *then);
/* Has this link a question that is not answered? */
bool fit_desk_asks(const struct leader *leader, const struct link *link);
/* The link is gone: nobody waits for the answer. */
void fit_desk_closed(struct leader *leader, const struct link *link);
/* All questions are dropped: the leader ends. */
void fit_desk_close(struct leader *leader);

#endif

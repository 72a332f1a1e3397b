/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which of the job's pools are asked for nodes, and which extensions make way for others: the facts
 * for lib/pools, and what follows from its answer. */
#ifndef ELASTIC_AGENT_LEADER_MARKET_H
#define ELASTIC_AGENT_LEADER_MARKET_H

#include <json-c/json.h>

#include "lib/plan.h"

struct leader;
struct market;
struct pool;

/* NULL: out of memory. */
struct market *market_create(void);
void market_destroy(struct market *market);

/* Ask lib/pools, before a plan is made. Extensions are marked: returns, withdrawn, lead. */
void market_decide(struct leader *leader);
/* … what it said, as the plan wants to know it. The pointers are good until it is asked again. */
void market_describe(const struct leader *leader, struct plan_input *in);
/* So many nodes beyond MAX may join: others go when they have. */
int market_surplus(const struct leader *leader);
/* The pool of that number in plan_input.pools. */
const struct pool *market_pool(const struct leader *leader, int i);

/* Why an extension of that pool is given back. */
const char *market_why(const struct leader *leader, const struct pool *pool);
/* The job is over: what it has cost is written down. */
void market_end(struct leader *leader);

/* For selastic: each pool with its nodes and what it is asked for, as a new array; what the job
 * costs, and its deadline, as new objects. NULL: nobody has said what nodes cost, or there is no
 * deadline. */
json_object *market_pools_json(struct leader *leader);
json_object *market_cost_json(struct leader *leader);
json_object *market_deadline_json(const struct leader *leader);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ledger of the job: what its nodes have cost, how fast worlds of each size work, how long
 * nodes of each pool take to power up, and how long a pool is not asked. It is kept in the state
 * directory, over a takeover and a requeue. */
#ifndef ELASTIC_AGENT_LEADER_COSTS_H
#define ELASTIC_AGENT_LEADER_COSTS_H

#include <json-c/json.h>

struct costs;
struct leader;
struct ledger;
struct pools_input;

/* NULL: out of memory. */
struct costs *costs_create(void);
void costs_destroy(struct costs *costs);

struct ledger *costs_ledger(const struct leader *leader);
/* From the state directory, once. */
void costs_load(struct leader *leader);
/* Into it, now and then. */
void costs_save(struct leader *leader);

/* The work that is done, and all work, as the training reports it; 0: it does not. Its speed is
 * measured. */
void costs_measure(struct leader *leader, double *done, double *total);
/* How long nodes of the job's pools have just taken to power up, and which pools are paused. */
void costs_learn_pools(struct leader *leader);
/* The nodes that the job has now cost from now on what is said here. */
void costs_account(struct leader *leader, const struct pools_input *in);
/* The job is over: what it has cost is written down. */
void costs_end(struct leader *leader);

/* What the job has had so far. */
struct costs_total {
    double cost;            /* < 0: nobody has said what nodes cost */
    double on_demand_hours; /* node hours of the pools with fallback = yes; < 0: it has none */
};

struct costs_total costs_total(struct leader *leader);
/* For selastic: a new object. end: when the work will be done (leader_now), < 0: not known. NULL:
 * nobody has said what nodes cost. */
json_object *costs_json(struct leader *leader, double end);

#endif

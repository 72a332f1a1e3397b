/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The pools that the job may take nodes from, in the user's order, and what each has been like. */
#ifndef ELASTIC_AGENT_LEADER_JOB_POOLS_H
#define ELASTIC_AGENT_LEADER_JOB_POOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/slurm_client.h"
#include "lib/ledger.h"
#include "lib/retry.h"

struct job_pools;
struct leader;
struct leader_options;
struct pool;
struct price_list;

struct job_pool {
    const struct pool *pool;
    struct retry refused; /* by sbatch */
    struct retry failed;  /* extensions that ended before they could join */
    /* The latest of both, for users; "": neither since one has joined. */
    char why[LEDGER_WHY_MAX + 1];
    double waits, waited;       /* its requests have waited since, and until; 0: they do not */
    double boot;                /* seconds from nodes to joined, just measured; < 0: no */
    double boot_known;          /* … as measured so far; 0: never (costs.h) */
    struct slurm_limits limits; /* of its partition */
    double limits_seen;         /* when Slurm has said them (leader_now); 0: not yet */
};

/* NULL: out of memory. */
struct job_pools *job_pools_create(const struct leader_options *options);
void job_pools_destroy(struct job_pools *pools);

/* What the site says that their nodes cost (price_list.h). */
struct price_list *job_pools_prices(const struct leader *leader);
/* What a node of the pool costs in an hour: what the site says or, where the site has no prices at
 * all, what Slurm bills. < 0: not known. */
double job_pools_price(const struct leader *leader, const struct job_pool *pool);
/* 0: the job cannot grow. */
int job_pools_count(const struct leader *leader);
struct job_pool *job_pools_at(const struct leader *leader, int i);
/* NULL: it is none of the job's, or NULL. */
struct job_pool *job_pools_of(const struct leader *leader, const struct pool *pool);
/* NULL: the job has no pool of that name. */
struct job_pool *job_pools_named(const struct leader *leader, const char *name);
/* The pool that an extension in this partition is of. qos: NULL is any. NULL: none. */
const struct pool *job_pools_find(const struct leader *leader, const char *partition,
                                  const char *qos);

/* An extension has joined, so long after it had its nodes. */
void job_pools_joined(struct leader *leader, const struct pool *pool, double seconds);
/* sbatch takes an extension, or refuses it, or the extension has ended before it could join: why,
 * for users. The pool is asked again after a pause. It doubles each time, until an extension of it
 * joins. */
void job_pools_accepted(struct leader *leader, const struct pool *pool);
void job_pools_refused(struct leader *leader, const struct pool *pool, const char *why);
void job_pools_failed(struct leader *leader, const struct pool *pool, const char *why);
/* The pool whose limits are to be asked of Slurm next, also if they are old (again). NULL: all are
 * known. */
const struct pool *job_pools_without_limits(const struct leader *leader, bool again);
void job_pools_limits(struct leader *leader, const struct pool *pool,
                      const struct slurm_limits *limits);
/* Minutes that an extension of that pool may have, UINT32_MAX: any. */
uint32_t job_pools_minutes(const struct leader *leader, const struct pool *pool);
/* Seconds that Slurm gives its nodes to power up, 0: any, or not known. */
double job_pools_boot_limit(const struct leader *leader, const struct pool *pool);

/* Since when its nodes do not come: `since` is that of the oldest request. One that is put anew
 * goes on waiting. An extension of it has its nodes: they come. */
double job_pools_waits(struct leader *leader, struct job_pool *own, double since);
void job_pools_has_nodes(struct leader *leader, const struct pool *pool);
/* May its nodes be powered up for this job? */
bool job_pools_wakes(const struct leader *leader, const struct pool *pool);
/* Seconds that its nodes take to power up, as far as that is known. */
double job_pools_boot(const struct leader *leader, const struct job_pool *pool);
/* Seconds that a replacement for an extension of that pool is asked for ahead. */
double job_pools_lead(const struct leader *leader, const struct pool *pool);

/* The pauses are over: a user asks. */
void job_pools_retry_now(struct leader *leader);
/* It is not to be asked before (leader_now). */
double job_pools_pause_until(const struct job_pool *pool);
/* Is any of them paused? */
bool job_pools_any_paused(const struct leader *leader);
/* Is there another one that is not paused? */
bool job_pools_has_other(const struct leader *leader, const struct pool *pool);

#endif

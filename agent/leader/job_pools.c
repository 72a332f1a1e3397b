/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The pools that the job may take nodes from (job_pools.h). */
#include "agent/leader/job_pools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/leader/leader_internal.h"
#include "agent/leader/price_list.h"
#include "lib/pools.h"
#include "lib/roles.h"
#include "lib/wake.h"

/* Pauses of a job that has no other pool: it has nothing to lose by asking. */
#define REFUSED     2.0
#define REFUSED_MAX 60.0
#define FAILED      4.0
#define FAILED_MAX  3600.0
/* Seconds for which the limits of a partition are taken as known. */
#define LIMITS_AGAIN 600.0
/* Seconds after which a request is another one. */
#define PUT_ANEW 10.0

/* A replacement is asked for so many boots before an extension's time is over, and a bit. */
#define LEAD_BOOTS 1.5
#define LEAD_MORE  60.0

struct job_pools {
    struct job_pool list[POLICY_POOLS_MAX];
    int count;
    struct price_list *prices;
};

struct price_list *job_pools_prices(const struct leader *leader)
{
    return leader->job_pools->prices;
}

int job_pools_count(const struct leader *leader)
{
    return leader->job_pools->count;
}

struct job_pool *job_pools_at(const struct leader *leader, int i)
{
    return &leader->job_pools->list[i];
}

struct job_pool *job_pools_of(const struct leader *leader, const struct pool *pool)
{
    for (int i = 0; i < leader->job_pools->count; i++)
        if (leader->job_pools->list[i].pool == pool)
            return &leader->job_pools->list[i];
    return NULL;
}

struct job_pool *job_pools_named(const struct leader *leader, const char *name)
{
    for (int i = 0; i < leader->job_pools->count; i++)
        if (strcmp(leader->job_pools->list[i].pool->name, name) == 0)
            return &leader->job_pools->list[i];
    return NULL;
}

const struct pool *job_pools_find(const struct leader *leader, const char *partition,
                                  const char *qos)
{
    for (int i = 0; partition != NULL && i < leader->job_pools->count; i++) {
        const struct pool *pool = leader->job_pools->list[i].pool;

        if (strcmp(pool->partition, partition) == 0 &&
            (pool->qos == NULL || qos == NULL || strcmp(pool->qos, qos) == 0))
            return pool;
    }
    return NULL;
}

double job_pools_price(const struct leader *leader, const struct job_pool *own)
{
    double price = price_list_of(leader->job_pools->prices, own->pool);

    return price >= 0 || conf_has_prices(leader->options->conf) ? price : own->limits.billing;
}

/* ---- what they have been like ---------------------------------------------------------------- */

void job_pools_joined(struct leader *leader, const struct pool *pool, double seconds)
{
    struct job_pool *own = job_pools_of(leader, pool);

    if (own == NULL)
        return;
    own->boot = seconds;
    own->why[0] = '\0';
    retry_reset(&own->refused);
    retry_reset(&own->failed);
}

void job_pools_accepted(struct leader *leader, const struct pool *pool)
{
    struct job_pool *own = job_pools_of(leader, pool);

    if (own != NULL)
        retry_reset(&own->refused);
}

void job_pools_refused(struct leader *leader, const struct pool *pool, const char *why)
{
    struct job_pool *own = job_pools_of(leader, pool);

    if (own == NULL)
        return;
    snprintf(own->why, sizeof(own->why), "%s", why);
    retry_failed(&own->refused, leader_now(leader));
}

double job_pools_waits(struct leader *leader, struct job_pool *own, double since)
{
    double now = leader_now(leader);

    if (own->waits <= 0 || now > own->waited + PUT_ANEW || since < own->waits)
        own->waits = since;
    own->waited = now;
    return own->waits;
}

void job_pools_has_nodes(struct leader *leader, const struct pool *pool)
{
    struct job_pool *own = job_pools_of(leader, pool);

    if (own != NULL)
        own->waits = 0;
}

void job_pools_failed(struct leader *leader, const struct pool *pool, const char *why)
{
    struct job_pool *own = job_pools_of(leader, pool);

    if (own == NULL)
        return;
    snprintf(own->why, sizeof(own->why), "%s", why);
    own->waits = 0;
    retry_failed(&own->failed, leader_now(leader));
}

const struct pool *job_pools_without_limits(const struct leader *leader, bool again)
{
    for (int i = 0; i < leader->job_pools->count; i++) {
        const struct job_pool *own = &leader->job_pools->list[i];

        if (own->limits_seen == 0 ||
            (again && leader_now(leader) - own->limits_seen >= LIMITS_AGAIN))
            return own->pool;
    }
    return NULL;
}

void job_pools_limits(struct leader *leader, const struct pool *pool,
                      const struct slurm_limits *limits)
{
    struct job_pool *own = job_pools_of(leader, pool);

    if (own == NULL)
        return;
    own->limits = *limits;
    own->limits_seen = leader_now(leader);
}

uint32_t job_pools_minutes(const struct leader *leader, const struct pool *pool)
{
    const struct job_pool *own = job_pools_of(leader, pool);

    uint32_t minutes = own != NULL ? own->limits.minutes : UINT32_MAX;

    if (own != NULL && own->pool->max_time > 0 && (uint32_t)own->pool->max_time < minutes)
        minutes = (uint32_t)own->pool->max_time;
    return minutes;
}

double job_pools_boot_limit(const struct leader *leader, const struct pool *pool)
{
    const struct job_pool *own = job_pools_of(leader, pool);

    return own != NULL ? own->limits.boot_seconds : 0;
}

bool job_pools_wakes(const struct leader *leader, const struct pool *pool)
{
    return wake_allowed(pool, leader->options->policy->wake);
}

/* Until a boot has been seen, half of what Slurm allows. */
double job_pools_boot(const struct leader *leader, const struct job_pool *own)
{
    if (own->boot_known > 0)
        return own->boot_known;
    return job_pools_wakes(leader, own->pool) ? own->limits.boot_seconds / 2.0 : 0;
}

double job_pools_lead(const struct leader *leader, const struct pool *pool)
{
    const struct job_pool *own = job_pools_of(leader, pool);

    return own != NULL ? LEAD_BOOTS * job_pools_boot(leader, own) + LEAD_MORE : 0;
}

void job_pools_retry_now(struct leader *leader)
{
    for (int i = 0; i < leader->job_pools->count; i++) {
        retry_reset(&leader->job_pools->list[i].refused);
        retry_reset(&leader->job_pools->list[i].failed);
    }
}

double job_pools_pause_until(const struct job_pool *pool)
{
    return pool->refused.after > pool->failed.after ? pool->refused.after : pool->failed.after;
}

bool job_pools_any_paused(const struct leader *leader)
{
    for (int i = 0; i < leader->job_pools->count; i++)
        if (job_pools_pause_until(&leader->job_pools->list[i]) > leader_now(leader))
            return true;
    return false;
}

bool job_pools_has_other(const struct leader *leader, const struct pool *pool)
{
    for (int i = 0; i < leader->job_pools->count; i++) {
        const struct job_pool *other = &leader->job_pools->list[i];

        if (other->pool != pool && job_pools_pause_until(other) <= leader_now(leader))
            return true;
    }
    return false;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Once. */
static void add(struct job_pools *pools, const struct conf *conf, const char *name)
{
    const struct pool *pool = conf_pool(conf, name);
    struct job_pool *own = &pools->list[pools->count];

    for (int i = 0; i < pools->count; i++)
        if (pools->list[i].pool == pool)
            return;
    if (pool == NULL || pools->count == POLICY_POOLS_MAX)
        return;
    *own = (struct job_pool){
        .pool = pool, .limits = {.minutes = UINT32_MAX, .billing = -1}, .boot = -1};
    own->refused = own->failed = (struct retry){.first = conf->pool_backoff_first,
                                                .max = conf->pool_backoff_max};
    pools->count++;
}

struct job_pools *job_pools_create(const struct leader_options *options)
{
    const struct policy *policy = options->policy;
    struct job_pools *pools = calloc(1, sizeof(*pools));
    const char *name;

    if (pools == NULL || (pools->prices = price_list_create()) == NULL) {
        free(pools);
        return NULL;
    }
    for (int i = 0; i < policy->pool_count; i++)
        add(pools, options->conf, policy->pools[i]);
    for (int i = 0; options->roles != NULL && i < options->roles->count; i++)
        for (int k = 0; (name = role_pool(&options->roles->list[i], k)) != NULL; k++)
            add(pools, options->conf, name);
    if (pools->count == 1) {
        pools->list[0].refused = (struct retry){.first = REFUSED, .max = REFUSED_MAX};
        pools->list[0].failed = (struct retry){.first = FAILED, .max = FAILED_MAX};
    }
    return pools;
}

void job_pools_destroy(struct job_pools *pools)
{
    if (pools != NULL)
        price_list_destroy(pools->prices);
    free(pools);
}

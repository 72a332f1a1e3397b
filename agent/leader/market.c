/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which pools are asked (market.h). */
#include "agent/leader/market.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/leader/allocation.h"
#include "agent/leader/exclude.h"
#include "agent/leader/extensions.h"
#include "agent/leader/job_pools.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/planning.h"
#include "agent/leader/report.h"
#include "agent/leader/roster.h"
#include "common/log.h"
#include "lib/pools.h"

/* Seconds that a change takes until one has been measured. */
#define PAUSE_LIVE    2.0
#define PAUSE_RESTART 60.0

struct market {
    struct pools_output out;
    struct pools_memory memory;
    struct speed speed;
    struct {
        int generation;
        double done, at;
    } sample; /* of the work, at the last look */
    struct plan_pool asks[POLICY_POOLS_MAX];
    const struct pool *asked[POLICY_POOLS_MAX]; /* the same */
    int ask_count, surplus;
    double retry_at; /* no pool is asked before, since all are paused; 0: not so */
    char no_room[256];
};

/* ---- the facts ------------------------------------------------------------------------------- */

/* Members of an extension whose node is about to be taken. */
static int reclaimed_nodes(const struct leader *leader, uint32_t job)
{
    int count = 0;

    for (int i = 0; i < roster_count(leader); i++) {
        const struct leader_member *m = roster_at(leader, i);

        count += m->part->job == job && m->link != NULL && m->part->reclaimed;
    }
    return count;
}

static void count_extension(const struct leader *leader, const struct extension *ext,
                            struct pools_pool *pool)
{
    double since = ext->begin > ext->since ? ext->begin : ext->since;

    switch (ext->state) {
    case PLAN_SUBMITTING:
    case PLAN_PENDING:
        if (pool->pending == 0 || since < pool->pending_since)
            pool->pending_since = since;
        pool->pending += ext->nodes;
        break;
    case PLAN_BOOTING:
    case PLAN_STARTING:
        pool->booting += ext->nodes;
        break;
    case PLAN_JOINED:
        pool->ready += ext->nodes;
        /* What goes in any case is as good as taken. */
        pool->noticed += extensions_to_go((struct leader *)leader, ext->job)
                             ? ext->nodes
                             : reclaimed_nodes(leader, ext->job);
        break;
    default:
        break;
    }
}

static struct pools_pool describe_pool(const struct leader *leader, const struct job_pool *own)
{
    struct pools_pool pool = {
        .name = own->pool->name,
        .boot = own->boot,
        .pause_until = job_pools_pause_until(own),
    };

    for (int i = 0; i < extensions_count(leader); i++)
        if (extensions_at(leader, i)->pool == own->pool)
            count_extension(leader, extensions_at(leader, i), &pool);
    return pool;
}

/* How much has been done since the last look, by how many nodes. */
static void measure(struct leader *leader, double *done, double *total)
{
    struct market *own = leader->market;
    double at;

    *done = *total = 0;
    if (!report_work(leader, done, total, &at))
        return;
    if (own->sample.generation == change_generation(leader->change) && *done > own->sample.done &&
        at > own->sample.at)
        speed_add(&own->speed, change_world(leader->change)->node_count, *done - own->sample.done,
                  at - own->sample.at);
    own->sample.generation = change_generation(leader->change);
    own->sample.done = *done;
    own->sample.at = at;
}

static double pause_of_change(const struct leader *leader)
{
    double measured = report_pause(leader);

    if (measured >= 0)
        return measured;
    return leader->options->mode == MODE_RESTART ? PAUSE_RESTART : PAUSE_LIVE;
}

/* ---- what follows ---------------------------------------------------------------------------- */

/* Requests of a pool that are taken back: the newest ones. */
static void withdraw(struct leader *leader, const struct pool *pool, int nodes)
{
    for (int i = extensions_count(leader) - 1; i >= 0 && nodes > 0; i--) {
        struct extension *ext = extensions_at(leader, i);

        if (ext->pool != pool || ext->state != PLAN_PENDING)
            continue;
        ext->withdrawn = true;
        nodes -= ext->nodes;
    }
}

/* Extensions that go back whole: advised ones first, then the newest. */
static void give_back(struct leader *leader, const struct pool *pool, int nodes)
{
    for (int i = extensions_count(leader) - 1; i >= 0 && nodes > 0; i--) {
        struct extension *ext = extensions_at(leader, i);

        if (ext->pool != pool || ext->state != PLAN_JOINED || ext->nodes > nodes ||
            extensions_to_go(leader, ext->job))
            continue;
        ext->returns = true;
        nodes -= ext->nodes;
    }
}

static void mark(struct leader *leader, const struct pools_output *out)
{
    for (int i = 0; i < extensions_count(leader); i++)
        extensions_at(leader, i)->returns = extensions_at(leader, i)->withdrawn = false;
    /* Of one pool the plan itself knows best which extensions are too many. */
    if (job_pools_count(leader) < 2)
        return;
    for (int i = 0; i < job_pools_count(leader); i++) {
        const struct pool *pool = job_pools_at(leader, i)->pool;

        if (out->targets[i].gives_up)
            job_pools_failed(leader, pool, "its nodes do not come, another pool is asked");
        withdraw(leader, pool, out->targets[i].cancel);
        give_back(leader, pool, out->targets[i].give_back);
    }
}

static void explain(struct leader *leader, const struct pools_input *in)
{
    struct market *own = leader->market;
    double first = INFINITY;
    bool paused = true;

    own->no_room[0] = '\0';
    own->retry_at = 0;
    for (int i = 0; i < in->pool_count; i++) {
        const struct pools_target *target = &own->out.targets[i];

        first = fmin(first, in->pools[i].pause_until);
        paused = paused && target->why == POOLS_PAUSED;
        if (own->no_room[0] == '\0' && target->why > POOLS_ENOUGH)
            snprintf(own->no_room, sizeof(own->no_room), "pool %s: %s", in->pools[i].name,
                     pools_words(target->why));
    }
    if (own->ask_count > 0 || paused)
        own->no_room[0] = '\0';
    if (paused)
        own->retry_at = first;
}

/* The pools that have room, best first. */
static void list_asks(struct leader *leader, const struct pools_input *in)
{
    struct market *own = leader->market;

    own->ask_count = 0;
    for (int k = in->pool_count - 1; k >= 0; k--) {
        int i = own->out.order[k];
        const struct pools_pool *pool = &in->pools[i];

        if (own->out.targets[i].ask == 0)
            continue;
        own->asked[own->ask_count] = job_pools_at(leader, i)->pool;
        own->asks[own->ask_count++] = (struct plan_pool){
            .name = pool->name,
            .room = own->out.targets[i].ask,
            .singly = pool->fallback || pool->wake,
            .at_once = pool->fallback || job_pools_any_paused(leader),
        };
    }
}

void market_decide(struct leader *leader)
{
    struct market *own = leader->market;
    const struct policy *policy = leader->options->policy;
    struct pools_pool pools[POOLS_MAX];
    struct pools_input in = {
        .now = leader_now(leader),
        .sizes = &policy->sizes,
        .target = allocation_target(leader),
        .base_nodes = leader->options->base_nodes - exclude_base_lost(leader),
        .base_safe = true,
        .speed = &own->speed,
        .pause = pause_of_change(leader),
        .changed = -1,
        .pools = pools,
        .pool_count = job_pools_count(leader),
    };
    int total = in.base_nodes;

    measure(leader, &in.done, &in.total);
    for (int i = 0; i < in.pool_count; i++)
        pools[i] = describe_pool(leader, job_pools_at(leader, i));
    pools_decide(&in, &own->memory, &own->out);
    own->memory = own->out.memory;
    mark(leader, &own->out);
    list_asks(leader, &in);
    explain(leader, &in);
    for (int i = 0; i < in.pool_count; i++)
        total += own->out.targets[i].nodes;
    own->surplus = total > in.target ? total - in.target : 0;
    if (own->out.wake > 0)
        planning_later(leader, own->out.wake);
}

void market_describe(const struct leader *leader, struct plan_input *in)
{
    const struct market *own = leader->market;

    in->pools = own->asks;
    in->pool_count = own->ask_count;
    in->no_room = own->no_room[0] != '\0' ? own->no_room : NULL;
    in->surplus = own->surplus;
    if (own->retry_at > in->retry_at)
        in->retry_at = own->retry_at;
}

const struct pool *market_pool(const struct leader *leader, int i)
{
    return leader->market->asked[i];
}

/* ---- life ------------------------------------------------------------------------------------ */

struct market *market_create(void)
{
    return calloc(1, sizeof(struct market));
}

void market_destroy(struct market *market)
{
    free(market);
}

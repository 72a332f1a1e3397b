/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which pools are asked (market.h). */
#include "agent/leader/market.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/leader/allocation.h"
#include "agent/leader/costs.h"
#include "agent/leader/exclude.h"
#include "agent/leader/extensions.h"
#include "agent/leader/job_pools.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/no_wake.h"
#include "agent/leader/planning.h"
#include "agent/leader/price_list.h"
#include "agent/leader/report.h"
#include "agent/leader/roster.h"
#include "agent/leader/slurm_look.h"
#include "lib/json_get.h"
#include "lib/ledger.h"

/* Seconds that a change takes until one has been measured. */
#define PAUSE_LIVE    2.0
#define PAUSE_RESTART 60.0

/* Seconds that a node stays, whatever is advised, if it has joined after the first advice. */
#define ADVISED_AGAIN 600.0

struct market {
    struct pools_output out;
    double deadline; /* on the leader's clock, at the last decision; 0: none */
    struct plan_pool asks[POLICY_POOLS_MAX];
    const struct pool *asked[POLICY_POOLS_MAX]; /* the same */
    int ask_count, surplus;
    double retry_at;      /* no pool is asked before, since all are paused; 0: not so */
    double advised_since; /* 0: no cloud has advised anything */
    char no_room[256];
};

/* ---- the facts ------------------------------------------------------------------------------- */

/* Nodes of joined extensions of that pool that are about to be taken. What goes whole anyway is
 * counted elsewhere. */
static int reclaimed_nodes(struct leader *leader, const struct pool *pool)
{
    int count = 0;

    for (int i = 0; i < roster_count(leader); i++) {
        const struct leader_member *m = roster_at(leader, i);
        const struct extension *ext = m->link != NULL && m->part->reclaimed
                                          ? extensions_find(leader, m->part->job)
                                          : NULL;

        count += ext != NULL && ext->pool == pool && ext->state == PLAN_JOINED &&
                 !extensions_to_go(leader, ext->job);
    }
    return count;
}

/* Is it to be replaced at its cloud's advice? Extensions go whole. Where a whole zone is advised,
 * so is the replacement: it stays for a while. */
static bool is_advised(const struct leader *leader, const struct extension *ext)
{
    double first = leader->market->advised_since;

    return first > 0 && ext->pool != NULL && ext->pool->reclaim &&
           leader->options->policy->reclaim != POLICY_RECLAIM_SHRINK &&
           (ext->since <= first || leader_now(leader) - ext->since >= ADVISED_AGAIN) &&
           roster_advised(leader, ext->job) == ext->nodes;
}

/* When the first advice came. */
static void note_advice(struct leader *leader)
{
    for (int i = 0; leader->market->advised_since <= 0 && i < roster_count(leader); i++)
        if (roster_is_advised(roster_at(leader, i)) && !roster_at(leader, i)->part->base)
            leader->market->advised_since = leader_now(leader);
}

static void count_extension(struct leader *leader, const struct extension *ext,
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
        if (is_advised(leader, ext))
            pool->advised += ext->nodes;
        /* What goes in any case is as good as taken. */
        if (extensions_to_go(leader, ext->job))
            pool->noticed += ext->nodes;
        break;
    default:
        break;
    }
}

/* The site's pool in that partition, whether the job may use it or not. */
static const struct pool *pool_in(const struct conf *conf, const char *partition)
{
    for (int i = 0; partition != NULL && i < conf->pool_count; i++)
        if (strcmp(conf->pools[i].partition, partition) == 0)
            return &conf->pools[i];
    return NULL;
}

/* What Slurm bills counts for the base where it counts for pools (job_pools.h). */
static double base_price(const struct leader *leader, const struct pool *base_pool)
{
    const struct job_info *base = slurm_look_base(leader);
    bool bills = false;

    if (conf_has_prices(leader->options->conf) || base == NULL)
        return price_list_of(job_pools_prices(leader), base_pool);
    for (int i = 0; i < job_pools_count(leader); i++)
        bills = bills || job_pools_at(leader, i)->limits.billing >= 0;
    return bills ? base->billing : -1;
}

/* The smaller of two limits of which 0 is none. */
static int least(int a, int b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

static struct pools_pool describe_pool(struct leader *leader, struct job_pool *own)
{
    bool may_wake = job_pools_wakes(leader, own->pool);
    struct pools_pool pool = {
        .name = own->pool->name,
        .price = fmax(job_pools_price(leader, own), 0),
        .fallback = own->pool->fallback,
        .wake = may_wake,
        .max_nodes = own->pool->max_nodes,
        .max_resume = may_wake ? own->pool->max_resume : 0,
        .boot = job_pools_boot(leader, own),
        .suspend = may_wake ? own->limits.suspend_seconds : 0,
        .pause_until = fmax(job_pools_pause_until(own), no_wake_until(leader, own->pool)),
        .refuses = own->failed.after <= leader_now(leader),
    };

    for (int i = 0; i < extensions_count(leader); i++)
        if (extensions_at(leader, i)->pool == own->pool)
            count_extension(leader, extensions_at(leader, i), &pool);
    pool.noticed += reclaimed_nodes(leader, own->pool);
    if (pool.pending > 0)
        pool.pending_since = job_pools_waits(leader, own, pool.pending_since);
    if (price_list_nodes(job_pools_prices(leader), own->pool) >= 0)
        pool.max_nodes = least(pool.max_nodes,
                               pool.ready + pool.booting +
                                   price_list_nodes(job_pools_prices(leader), own->pool));
    return pool;
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

/* Extensions that go back whole, the newest first. Returns how many nodes are left of `nodes`. */
static int give_back(struct leader *leader, const struct pool *pool, int nodes, bool advised)
{
    for (int i = extensions_count(leader) - 1; i >= 0 && nodes > 0; i--) {
        struct extension *ext = extensions_at(leader, i);

        if (ext->pool != pool || ext->state != PLAN_JOINED || ext->nodes > nodes || ext->returns ||
            extensions_to_go(leader, ext->job) || (advised && !is_advised(leader, ext)))
            continue;
        ext->returns = true;
        nodes -= ext->nodes;
    }
    return nodes;
}

static void mark(struct leader *leader, const struct pools_output *out)
{
    for (int i = 0; i < extensions_count(leader); i++)
        extensions_at(leader, i)->returns = extensions_at(leader, i)->withdrawn = false;
    for (int i = 0; i < job_pools_count(leader); i++) {
        const struct pool *pool = job_pools_at(leader, i)->pool;
        int nodes = give_back(leader, pool, out->targets[i].give_back, true);

        /* Of one pool the plan itself knows best which extensions are too many, but for money. */
        if (job_pools_count(leader) < 2 && !out->memory.exhausted &&
            out->targets[i].why != POOLS_PRICE)
            continue;
        if (out->targets[i].gives_up)
            job_pools_failed(leader, pool, "its nodes do not come, another pool is asked");
        withdraw(leader, pool, out->targets[i].cancel);
        give_back(leader, pool, nodes, false);
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
        if (own->no_room[0] == '\0' && target->why != POOLS_ASKED && target->why != POOLS_ENOUGH)
            snprintf(own->no_room, sizeof(own->no_room), "pool %s: %s", in->pools[i].name,
                     pools_words(target->why));
    }
    if (own->ask_count > 0 || paused)
        own->no_room[0] = '\0';
    if (paused)
        own->retry_at = first;
}

/* Advice is about one node. */
static bool is_replaced_singly(const struct leader *leader, const struct pool *pool)
{
    return pool->reclaim && leader->options->conf->reclaim.advice == CONF_ADVICE_REPLACE;
}

/* The pools that have room, best first. */
static void list_asks(struct leader *leader, const struct pools_input *in)
{
    struct market *own = leader->market;

    own->ask_count = 0;
    for (int k = in->pool_count - 1; k >= 0; k--) {
        int i = own->out.order[k];
        const struct pools_pool *pool = &in->pools[i];
        const struct pool *asked = job_pools_at(leader, i)->pool;

        if (own->out.targets[i].ask == 0)
            continue;
        own->asked[own->ask_count] = asked;
        own->asks[own->ask_count++] = (struct plan_pool){
            .name = pool->name,
            .room = own->out.targets[i].ask,
            .singly = pool->fallback || pool->wake || is_replaced_singly(leader, asked),
            .at_once = pool->fallback || job_pools_any_paused(leader),
        };
    }
}

/* ---- the decision ---------------------------------------------------------------------------- */

static double deadline_of(const struct leader *leader)
{
    double deadline = slurm_look_deadline(leader);

    return deadline > 0 ? leader_now(leader) + deadline - unix_now() : 0;
}

static void set_fallback(const struct leader *leader, struct pools_input *in)
{
    int fallback = leader->options->policy->fallback;

    if (fallback == POLICY_UNSET)
        fallback = in->deadline > 0 ? POLICY_FALLBACK_DEADLINE : POLICY_FALLBACK_NEVER;
    in->mode = fallback == POLICY_FALLBACK_NEVER      ? POOLS_NEVER
               : fallback == POLICY_FALLBACK_DEADLINE ? POOLS_DEADLINE
                                                      : POOLS_AFTER;
    in->after = fallback >= 0 ? fallback : 0;
}

static struct pools_input describe(struct leader *leader, struct pools_pool *pools)
{
    const struct policy *policy = leader->options->policy;
    const struct job_info *base = slurm_look_base(leader);
    const struct pool *base_pool = base != NULL ? pool_in(leader->options->conf, base->partition)
                                                : NULL;
    struct pools_input in = {
        .now = leader_now(leader),
        .sizes = &policy->sizes,
        .target = allocation_target(leader),
        .base_nodes = leader->options->world_nodes - exclude_world_lost(leader),
        .base_safe = base_pool == NULL || !base_pool->reclaim,
        .base_price = fmax(base_price(leader, base_pool), 0),
        .deadline = deadline_of(leader),
        .speed = &costs_ledger(leader)->speed,
        .pause = pause_of_change(leader),
        .max_price = policy->max_price,
        .budget = policy->budget,
        .changed = -1,
        .pools = pools,
        .pool_count = job_pools_count(leader),
    };

    set_fallback(leader, &in);
    /* The first world is no change. */
    if (in.deadline > 0 && change_generation(leader->change) > 1)
        in.changed = change_since(leader->change);
    costs_measure(leader, &in.done, &in.total);
    for (int i = 0; i < in.pool_count; i++)
        pools[i] = describe_pool(leader, job_pools_at(leader, i));
    return in;
}

void market_decide(struct leader *leader)
{
    struct market *own = leader->market;
    struct ledger *ledger = costs_ledger(leader);
    struct pools_pool pools[POOLS_MAX];
    struct pools_input in;
    int total;

    costs_load(leader);
    price_list_watch(job_pools_prices(leader), leader);
    costs_learn_pools(leader);
    note_advice(leader);
    in = describe(leader, pools);
    total = in.base_nodes;
    costs_account(leader, &in);
    in.spent = spending_cost(&ledger->spending);
    pools_decide(&in, &ledger->memory, &own->out);
    ledger->memory = own->out.memory;
    own->deadline = in.deadline;
    mark(leader, &own->out);
    list_asks(leader, &in);
    explain(leader, &in);
    for (int i = 0; i < in.pool_count; i++)
        total += own->out.targets[i].nodes;
    own->surplus = total > in.target ? total - in.target : 0;
    costs_save(leader);
    if (own->out.wake > 0)
        planning_later(leader, own->out.wake);
}

const char *market_why(const struct leader *leader, const struct pool *pool)
{
    const struct pools_output *out = &leader->market->out;
    const struct job_pool *own = job_pools_of(leader, pool);
    enum pools_why why = own != NULL ? out->targets[own - job_pools_at(leader, 0)].why
                                     : POOLS_ENOUGH;

    if (out->why == POOLS_BUDGET)
        why = POOLS_BUDGET;
    return why == POOLS_PRICE || why == POOLS_BUDGET ? pools_words(why)
                                                     : "others are there in its place";
}

/* Why the pool that is next cannot be asked. */
static const char *held(const struct leader *leader)
{
    const struct market *own = leader->market;
    const char *why = NULL;

    if (own->ask_count > 0)
        return no_wake_why(leader, own->asked[0]);
    for (int i = 0; why == NULL && i < job_pools_count(leader); i++)
        why = no_wake_why(leader, job_pools_at(leader, i)->pool);
    return why;
}

void market_describe(const struct leader *leader, struct plan_input *in)
{
    const struct market *own = leader->market;

    in->pools = own->asks;
    in->pool_count = own->ask_count;
    in->no_room = own->no_room[0] != '\0' ? own->no_room : NULL;
    in->surplus = own->surplus;
    in->held = held(leader);
    if (own->retry_at > in->retry_at)
        in->retry_at = own->retry_at;
}

int market_surplus(const struct leader *leader)
{
    return leader->market->surplus;
}

const struct pool *market_pool(const struct leader *leader, int i)
{
    return leader->market->asked[i];
}

/* ---- for selastic ---------------------------------------------------------------------------- */

static json_object *pool_json(struct leader *leader, int i)
{
    const struct market *own = leader->market;
    struct job_pool *job_pool = job_pools_at(leader, i);
    const struct pool *pool = job_pool->pool;
    struct pools_pool now = describe_pool(leader, job_pool);
    double paused = job_pools_pause_until(job_pool);
    double price = job_pools_price(leader, job_pool);
    json_object *obj = json_object_new_object();

    json_object_object_add(obj, "pool", json_object_new_string(pool->name));
    json_object_object_add(obj, "fallback", json_object_new_boolean(pool->fallback));
    json_object_object_add(obj, "zone", json_from_string(pool->zone));
    json_object_object_add(obj, "price", price >= 0 ? json_object_new_double(price) : NULL);
    json_object_object_add(obj, "ready", json_object_new_int(now.ready));
    json_object_object_add(obj, "booting", json_object_new_int(now.booting));
    json_object_object_add(obj, "pending", json_object_new_int(now.pending));
    json_object_object_add(obj, "boot", now.boot > 0 ? json_object_new_double(now.boot) : NULL);
    json_object_object_add(obj, "why",
                           json_object_new_string(pools_words(own->out.targets[i].why)));
    json_object_object_add(
        obj, "paused_until",
        paused > leader_now(leader) ? json_object_new_double(leader_unix(leader, paused)) : NULL);
    json_object_object_add(obj, "failure",
                           job_pool->why[0] != '\0' ? json_object_new_string(job_pool->why) : NULL);
    json_object_object_add(
        obj, "node_hours",
        json_object_new_double(spending_hours(&costs_ledger(leader)->spending, pool->name)));
    return obj;
}

json_object *market_cost_json(struct leader *leader)
{
    return costs_json(leader, leader->market->out.end);
}

json_object *market_pools_json(struct leader *leader)
{
    json_object *array = json_object_new_array();

    for (int i = 0; i < job_pools_count(leader); i++)
        json_object_array_add(array, pool_json(leader, i));
    return array;
}

json_object *market_deadline_json(const struct leader *leader)
{
    const struct market *own = leader->market;
    json_object *obj;

    if (own->deadline <= 0)
        return NULL;
    obj = json_object_new_object();
    json_object_object_add(obj, "time", json_object_new_double(slurm_look_deadline(leader)));
    json_object_object_add(
        obj, "expected",
        own->out.end >= 0 ? json_object_new_double(leader_unix(leader, own->out.end)) : NULL);
    json_object_object_add(
        obj, "in_time",
        own->out.end >= 0 ? json_object_new_boolean(own->out.end <= own->deadline) : NULL);
    json_object_object_add(obj, "why", json_object_new_string(pools_words(own->out.why)));
    return obj;
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

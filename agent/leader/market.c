/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which pools are asked (market.h). */
#include "agent/leader/market.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/leader/allocation.h"
#include "agent/leader/exclude.h"
#include "agent/leader/extensions.h"
#include "agent/leader/job_pools.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/ledger_file.h"
#include "agent/leader/no_wake.h"
#include "agent/leader/planning.h"
#include "agent/leader/price_list.h"
#include "agent/leader/report.h"
#include "agent/leader/roster.h"
#include "agent/leader/slurm_look.h"
#include "lib/ledger.h"
#include "lib/wake.h"

/* Seconds that a change takes until one has been measured. */
#define PAUSE_LIVE    2.0
#define PAUSE_RESTART 60.0

/* Reports of its work from which the speed of a world is known. */
#define MEASURED_REPORTS 5

/* A replacement is asked for so many boots before an extension's time is over, and a bit. */
#define LEAD_BOOTS 1.5
#define LEAD_MORE  60.0

struct market {
    struct ledger_file file;
    struct pools_output out;
    double deadline; /* on the leader's clock, at the last decision; 0: none */
    struct sample {
        int generation, reports; /* since then */
        double done, at, heard;
    } sample; /* of the work, when it was measured last */
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

/* Extensions go whole. */
static bool is_advised(const struct leader *leader, const struct extension *ext)
{
    return ext->pool != NULL && ext->pool->reclaim &&
           leader->options->policy->reclaim != POLICY_RECLAIM_SHRINK &&
           roster_advised(leader, ext->job) == ext->nodes;
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
        if (is_advised(leader, ext))
            pool->advised += ext->nodes;
        /* What goes in any case is as good as taken. */
        pool->noticed += extensions_to_go((struct leader *)leader, ext->job)
                             ? ext->nodes
                             : reclaimed_nodes(leader, ext->job);
        break;
    default:
        break;
    }
}

/* May its nodes be powered up for this job? */
static bool wakes(const struct leader *leader, const struct pool *pool)
{
    return wake_allowed(pool, leader->options->policy->wake);
}

static void learn_boots(struct leader *leader)
{
    struct ledger *ledger = &leader->market->file.ledger;

    for (int i = 0; i < job_pools_count(leader); i++) {
        struct job_pool *own = job_pools_at(leader, i);
        const char *name = own->pool->name;

        if (own->boot >= 0)
            ledger_set_boot(ledger, name, pools_boot(ledger_boot(ledger, name), own->boot));
        own->boot = -1;
    }
}

/* Until a boot has been seen, half of what Slurm allows. */
static double boot_of(const struct leader *leader, const struct job_pool *own)
{
    double known = ledger_boot(&leader->market->file.ledger, own->pool->name);

    if (known > 0)
        return known;
    return wakes(leader, own->pool) ? own->limits.boot_seconds / 2.0 : 0;
}

static double lead_of(const struct leader *leader, const struct pool *pool)
{
    const struct job_pool *own = job_pools_of(leader, pool);

    return own != NULL ? LEAD_BOOTS * boot_of(leader, own) + LEAD_MORE : 0;
}

/* The site's pool in that partition, whether the job may use it or not. */
static const struct pool *pool_in(const struct conf *conf, const char *partition)
{
    for (int i = 0; partition != NULL && i < conf->pool_count; i++)
        if (strcmp(conf->pools[i].partition, partition) == 0)
            return &conf->pools[i];
    return NULL;
}

static double price_of(const struct leader *leader, const struct pool *pool)
{
    double price = price_list_of(leader, pool);

    return price > 0 ? price : 0;
}

/* The smaller of two limits of which 0 is none. */
static int least(int a, int b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

static struct pools_pool describe_pool(const struct leader *leader, struct job_pool *own)
{
    bool may_wake = wakes(leader, own->pool);
    struct pools_pool pool = {
        .name = own->pool->name,
        .price = price_of(leader, own->pool),
        .fallback = own->pool->fallback,
        .wake = may_wake,
        .max_nodes = own->pool->max_nodes,
        .max_resume = may_wake ? own->pool->max_resume : 0,
        .boot = boot_of(leader, own),
        .suspend = may_wake ? own->limits.suspend_seconds : 0,
        .pause_until = fmax(job_pools_pause_until(own), no_wake_until(leader, own->pool)),
        .refuses = own->failed.after <= leader_now(leader),
    };

    for (int i = 0; i < extensions_count(leader); i++)
        if (extensions_at(leader, i)->pool == own->pool)
            count_extension(leader, extensions_at(leader, i), &pool);
    if (pool.pending > 0)
        pool.pending_since = job_pools_waits((struct leader *)leader, own, pool.pending_since);
    if (price_list_nodes(leader, own->pool) >= 0)
        pool.max_nodes = least(pool.max_nodes,
                               pool.ready + pool.booting + price_list_nodes(leader, own->pool));
    return pool;
}

/* How much has been done since the last measurement, by how many nodes. A program reports whole
 * steps: what a world does from one report to the next is chance. */
static void measure(struct leader *leader, double *done, double *total)
{
    struct market *own = leader->market;
    const struct world *world = change_world(leader->change);
    int generation = change_generation(leader->change);
    double at;

    *done = *total = 0;
    if (!report_work(leader, done, total, &at))
        return;
    if (own->sample.generation == generation && *done >= own->sample.done) {
        own->sample.reports += at > own->sample.heard;
        own->sample.heard = at;
        if (own->sample.reports < MEASURED_REPORTS || world == NULL)
            return;
        speed_add(&own->file.ledger.speed, world->node_count, *done - own->sample.done,
                  at - own->sample.at);
    }
    own->sample = (struct sample){.generation = generation, .done = *done, .at = at, .heard = at};
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

static void mark_extension(const struct leader *leader, struct extension *ext)
{
    ext->returns = ext->withdrawn = false;
    ext->lead = lead_of(leader, ext->pool);
}

static void mark(struct leader *leader, const struct pools_output *out)
{
    for (int i = 0; i < extensions_count(leader); i++)
        mark_extension(leader, extensions_at(leader, i));
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
        if (own->no_room[0] == '\0' && target->why > POOLS_ENOUGH)
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
    double deadline = leader->options->policy->deadline;

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
    struct market *own = leader->market;
    const struct policy *policy = leader->options->policy;
    const struct job_info *base = slurm_look_base(leader);
    const struct pool *base_pool = base != NULL ? pool_in(leader->options->conf, base->partition)
                                                : NULL;
    struct pools_input in = {
        .now = leader_now(leader),
        .sizes = &policy->sizes,
        .target = allocation_target(leader),
        .base_nodes = leader->options->base_nodes - exclude_base_lost(leader),
        .base_safe = base_pool == NULL || !base_pool->reclaim,
        .base_price = price_of(leader, base_pool),
        .deadline = deadline_of(leader),
        .speed = &own->file.ledger.speed,
        .pause = pause_of_change(leader),
        .max_price = policy->max_price,
        .budget = policy->budget,
        .pools = pools,
        .pool_count = job_pools_count(leader),
    };

    set_fallback(leader, &in);
    in.changed = in.deadline > 0 ? change_since(leader->change) : -1;
    measure(leader, &in.done, &in.total);
    for (int i = 0; i < in.pool_count; i++)
        pools[i] = describe_pool(leader, job_pools_at(leader, i));
    return in;
}

void market_decide(struct leader *leader)
{
    struct market *own = leader->market;
    struct pools_pool pools[POOLS_MAX];
    struct pools_input in;
    int total;

    ledger_file_load(leader, &own->file);
    price_list_watch(leader);
    learn_boots(leader);
    in = describe(leader, pools);
    total = in.base_nodes;
    ledger_file_account(leader, &own->file, &in);
    in.spent = spending_cost(&own->file.ledger.spending);
    pools_decide(&in, &own->file.ledger.memory, &own->out);
    own->file.ledger.memory = own->out.memory;
    own->deadline = in.deadline;
    mark(leader, &own->out);
    list_asks(leader, &in);
    explain(leader, &in);
    for (int i = 0; i < in.pool_count; i++)
        total += own->out.targets[i].nodes;
    own->surplus = total > in.target ? total - in.target : 0;
    ledger_file_save(leader, &own->file);
    if (own->out.wake > 0)
        planning_later(leader, own->out.wake);
}

void market_end(struct leader *leader)
{
    ledger_file_end(leader, &leader->market->file);
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
    double pause = job_pools_pause_until(job_pool) - leader_now(leader);
    double price = price_list_of(leader, pool);
    json_object *obj = json_object_new_object();

    json_object_object_add(obj, "pool", json_object_new_string(pool->name));
    json_object_object_add(obj, "fallback", json_object_new_boolean(pool->fallback));
    json_object_object_add(obj, "zone",
                           pool->zone != NULL ? json_object_new_string(pool->zone) : NULL);
    json_object_object_add(obj, "price", price >= 0 ? json_object_new_double(price) : NULL);
    json_object_object_add(obj, "ready", json_object_new_int(now.ready));
    json_object_object_add(obj, "booting", json_object_new_int(now.booting));
    json_object_object_add(obj, "pending", json_object_new_int(now.pending));
    json_object_object_add(obj, "boot", now.boot > 0 ? json_object_new_double(now.boot) : NULL);
    json_object_object_add(obj, "why",
                           json_object_new_string(pools_words(own->out.targets[i].why)));
    json_object_object_add(obj, "paused_until",
                           pause > 0 ? json_object_new_double(unix_now() + pause) : NULL);
    json_object_object_add(obj, "failure",
                           job_pool->why[0] != '\0' ? json_object_new_string(job_pool->why) : NULL);
    json_object_object_add(
        obj, "node_hours",
        json_object_new_double(spending_hours(&own->file.ledger.spending, pool->name)));
    return obj;
}

json_object *market_pools_json(struct leader *leader)
{
    json_object *array = json_object_new_array();

    for (int i = 0; i < job_pools_count(leader); i++)
        json_object_array_add(array, pool_json(leader, i));
    return array;
}

json_object *market_cost_json(struct leader *leader)
{
    struct market *own = leader->market;
    const struct policy *policy = leader->options->policy;
    double per_hour = spending_per_hour(&own->file.ledger.spending), cost, left;
    json_object *obj;

    spending_run(&own->file.ledger.spending, leader_now(leader));
    cost = spending_cost(&own->file.ledger.spending);
    if (cost <= 0 && per_hour <= 0)
        return NULL; /* nobody has said what nodes cost */
    left = own->out.end - leader_now(leader);
    obj = json_object_new_object();
    json_object_object_add(obj, "so_far", json_object_new_double(cost));
    json_object_object_add(obj, "per_hour", json_object_new_double(per_hour));
    json_object_object_add(
        obj, "expected",
        own->out.end >= 0 ? json_object_new_double(cost + per_hour * fmax(left, 0) / 3600) : NULL);
    json_object_object_add(obj, "budget",
                           policy->budget > 0 ? json_object_new_double(policy->budget) : NULL);
    return obj;
}

json_object *market_deadline_json(const struct leader *leader)
{
    const struct market *own = leader->market;
    double now = leader_now(leader);
    json_object *obj;

    if (own->deadline <= 0)
        return NULL;
    obj = json_object_new_object();
    json_object_object_add(obj, "time", json_object_new_double(leader->options->policy->deadline));
    json_object_object_add(
        obj, "expected",
        own->out.end >= 0 ? json_object_new_double(unix_now() + own->out.end - now) : NULL);
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

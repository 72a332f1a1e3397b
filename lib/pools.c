/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How many nodes of which pool an elastic job should have (pools.h). */
#include "lib/pools_private.h"

#include <math.h>
#include <stddef.h>

/* Weight of a new boot in the estimate: a long one counts at once, short ones slowly. */
#define BOOT_LONGER  0.5
#define BOOT_SHORTER 0.2

static double relative_price(const struct pools_pool *pool)
{
    return pool->price / (pool->speed > 0 ? pool->speed : 1);
}

/* The pools by price for what they do, those of equal price in the user's order. What is given back
 * goes the other way round, on-demand nodes first. */
static void sort(const struct pools_input *in, int *cheapest, int *give_back)
{
    int count = 0;

    for (int i = 0; i < in->pool_count; i++) {
        int at = i;

        for (;
             at > 0 && relative_price(&in->pools[cheapest[at - 1]]) > relative_price(&in->pools[i]);
             at--)
            cheapest[at] = cheapest[at - 1];
        cheapest[at] = i;
    }
    for (int fallback = 1; fallback >= 0; fallback--)
        for (int i = in->pool_count - 1; i >= 0; i--)
            if (in->pools[cheapest[i]].fallback == (fallback == 1))
                give_back[count++] = cheapest[i];
}

static void count_pool(struct facts *f, const struct pools_pool *pool)
{
    if (!pool->fallback) {
        f->spot += staying(pool);
        f->spot_comes += pool->booting;
        return;
    }
    f->demand += staying(pool);
    f->demand_there += staying(pool) + pool->booting;
    if (!too_dear(f->in, pool))
        f->demand_most += at_most(limit_of(pool), f->most);
}

static struct facts facts_of(const struct pools_input *in, struct pools_output *out)
{
    struct facts f = {.in = in, .out = out, .work = -1, .end = -1};

    f.most = sizes_floor(in->sizes, in->target);
    if (f.most < in->sizes->min)
        f.most = in->sizes->min;
    f.safe = in->base_safe ? in->base_nodes : 0;
    f.demand_most = f.safe;
    for (int i = 0; i < in->pool_count; i++)
        count_pool(&f, &in->pools[i]);
    f.demand_most = at_most(f.demand_most, f.most);
    f.reserve = POOLS_MARGIN + in->pause * (2 + f.most);
    f.left = in->deadline - in->now;
    if (in->total > 0)
        f.work = fmax(in->total - in->done, 0);
    if (f.work >= 0 && speed_known(in->speed)) {
        double now = rate(&f, in->base_nodes + f.spot + f.demand);

        f.end = now > 0 ? f.work / now : INFINITY;
    }
    return f;
}

/* ---- all together ---------------------------------------------------------------------------- */

/* Ready nodes of a pool that are not given back. Those that boot cannot be. */
static int kept(const struct facts *f, int i)
{
    const struct pools_pool *pool = &f->in->pools[i];

    return at_most(staying(pool), at_least(f->out->targets[i].nodes - pool->booting, 0));
}

/* More nodes than the job may have: those of on-demand pools go first, but for `keep` of them. */
static void cap(const struct facts *f, const int *give_back, int keep)
{
    const struct pools_input *in = f->in;
    int ready = in->base_nodes, demand = 0;

    for (int i = 0; i < in->pool_count; i++) {
        ready += kept(f, i);
        demand += in->pools[i].fallback ? kept(f, i) : 0;
    }
    /* Advised nodes, then on-demand nodes, then spot nodes. */
    for (int pass = 0; pass < 3; pass++)
        for (int k = 0; k < in->pool_count && ready > f->most; k++) {
            const struct pools_pool *pool = &in->pools[give_back[k]];
            struct pools_target *target = &f->out->targets[give_back[k]];
            int less = at_most(ready - f->most, kept(f, give_back[k]));

            if (pass == 0)
                less = at_most(less, pool->advised);
            if (pass == 1)
                less = pool->fallback ? at_most(less, at_least(demand - keep, 0)) : 0;
            if (pass == 2 && pool->fallback)
                less = 0;
            if (less > 0)
                target->nodes = pool->booting + kept(f, give_back[k]) - less;
            ready -= less;
            demand -= pool->fallback ? less : 0;
        }
}

/* MIN stays: what would be given back below it is kept, cheapest first. */
static void keep_min(const struct facts *f, const int *cheapest)
{
    const struct pools_input *in = f->in;
    int ready = in->base_nodes;

    for (int i = 0; i < in->pool_count; i++)
        ready += kept(f, i);
    for (int i = 0; i < in->pool_count && ready < in->sizes->min; i++) {
        const struct pools_pool *pool = &in->pools[cheapest[i]];
        struct pools_target *target = &f->out->targets[cheapest[i]];
        int have = kept(f, cheapest[i]),
            more = at_most(in->sizes->min - ready, staying(pool) - have);

        if (more <= 0)
            continue;
        target->nodes = pool->booting + have + more;
        ready += more;
    }
}

/* On-demand nodes that no allowed size can use. */
static int useless(const struct facts *f, int demand)
{
    int nodes = f->in->base_nodes + f->spot + demand;
    int used = sizes_floor(f->in->sizes, nodes);

    return used == 0 ? 0 : at_most(at_least(nodes - used, 0), demand);
}

/* May no spot node be taken any more, since each may cost two pauses? Only where on-demand nodes
 * can still be in time. */
static bool spot_endangers(const struct facts *f, int nodes)
{
    return f->out->pressure >= 0 && f->out->why != POOLS_NO_FALLBACK && f->out->why != POOLS_LATE &&
           !pools_in_time_alone(f, f->safe + f->demand, 2 * nodes);
}

/* May the job grow by choice? Each change of the world costs a pause of all. */
static bool settles(struct facts *f)
{
    double until = f->in->changed + POOLS_SETTLE * f->in->pause;

    if (f->in->changed < 0 || f->in->now >= until)
        return false;
    if (f->in->base_nodes + f->spot + f->demand < f->in->sizes->min)
        return false;
    wake_in(f, until - f->in->now);
    return true;
}

static void finish(const struct facts *f)
{
    for (int i = 0; i < f->in->pool_count; i++) {
        const struct pools_pool *pool = &f->in->pools[i];
        struct pools_target *target = &f->out->targets[i];
        int there = staying(pool) + pool->booting;

        target->nodes = at_least(target->nodes, pool->booting);
        target->ask = at_least(target->nodes - there - pool->pending, 0);
        target->cancel = at_most(pool->pending, at_least(there + pool->pending - target->nodes, 0));
        target->give_back = at_least(there - target->nodes, 0);
    }
}

/* On-demand nodes that the job should have. keep: those that stay whatever spot nodes come. */
static int wanted_demand(struct facts *f, const struct pools_memory *memory, int *keep)
{
    const struct pools_input *in = f->in;
    int wanted = 0;

    if (in->mode == POOLS_NEVER)
        return 0;
    if (in->deadline > 0 && f->work < 0)
        f->out->why = POOLS_NO_WORK;
    else if (in->deadline > 0 && f->end < 0)
        f->out->why = POOLS_NO_SPEED;
    else if (in->deadline > 0)
        wanted = pools_for_deadline(f, memory, keep);
    if (in->mode == POOLS_AFTER)
        wanted = at_least(wanted, pools_for_lost(f, &f->out->memory));
    wanted = at_most(wanted, at_least(f->demand_most - f->safe, 0));
    return wanted - at_most(useless(f, wanted), at_least(wanted - *keep, 0));
}

void pools_decide(const struct pools_input *in, const struct pools_memory *memory,
                  struct pools_output *out)
{
    struct facts f;
    int cheapest[POOLS_MAX], advised = 0, keep = 0, demand, spot;
    double spare;
    struct share share;

    *out = (struct pools_output){.why = POOLS_SPOT, .end = -1, .pressure = -1, .memory = *memory};
    f = facts_of(in, out);
    if (f.end >= 0 && !isinf(f.end))
        out->end = in->now + f.end;
    sort(in, cheapest, out->order);
    pools_note_loss(&f, &out->memory);
    out->memory.exhausted = pools_exhausted(&f, &spare) || (memory->exhausted && in->budget > 0);

    share = (struct share){.f = &f, .cheapest = cheapest, .spare = &spare};
    demand = wanted_demand(&f, memory, &keep);
    if (out->why == POOLS_SPOT && out->pressure >= 0 && out->end > in->deadline)
        out->why = POOLS_LATER;
    for (int i = 0; i < in->pool_count; i++)
        advised += in->pools[i].advised;
    /* The place of an on-demand node is asked for in spot pools, too. */
    spot = at_least(f.most - in->base_nodes - keep, 0) + advised;
    if (out->memory.exhausted) {
        demand = spot = keep = 0;
        out->why = POOLS_BUDGET;
    }
    share.fallback = share.gives = true;
    share.grows = !out->memory.exhausted;
    share.why_not = POOLS_BUDGET;
    pools_share_out(&share, demand);

    /* Spot nodes that work leave only when there is no place for them (cap), or no money. */
    share.fallback = false;
    share.gives = out->memory.exhausted;
    if (share.grows && spot_endangers(&f, spot)) {
        share.grows = false;
        share.why_not = POOLS_SAFETY;
    } else if (share.grows && settles(&f)) {
        share.grows = false;
        share.why_not = POOLS_SETTLES;
    }
    pools_share_out(&share, spot);
    cap(&f, out->order, keep);
    keep_min(&f, cheapest);
    finish(&f);
}

/* ---- words, pauses and boots ----------------------------------------------------------------- */

const char *pools_words(enum pools_why why)
{
    static const char *const words[POOLS_WHY_COUNT] = {
        [POOLS_SPOT] = "spot nodes are enough",
        [POOLS_PACE] = "on-demand nodes keep the pace for the deadline",
        [POOLS_SAFETY] = "only on-demand nodes are sure to be in time",
        [POOLS_LATE] = "the deadline will be missed, even with all on-demand nodes",
        [POOLS_SUPPLEMENT] = "on-demand nodes stand in for lost spot nodes",
        [POOLS_NO_WORK] = "the deadline has no effect: the training does not report its work",
        [POOLS_NO_SPEED] = "the deadline has no effect yet: no speed has been measured",
        [POOLS_NO_FALLBACK] = "the deadline has no effect: no pool is a fallback",
        [POOLS_LATER] = "on-demand nodes will come in time if spot nodes do not",
        [POOLS_BUDGET] = "the budget is used up",
        [POOLS_ASKED] = "asked for nodes",
        [POOLS_ENOUGH] = "the job has the nodes that it wants",
        [POOLS_FULL] = "the job has max_nodes of this pool",
        [POOLS_BOOTS] = "max_resume nodes of this pool are powering up",
        [POOLS_PAUSED] = "paused after a failure",
        [POOLS_PRICE] = "dearer than --elastic-max-price",
        [POOLS_STALE] = "its nodes do not come, another pool is asked",
        [POOLS_ENDING] = "the work is done before a node would be ready",
        [POOLS_SETTLES] = "the job has just changed its size",
    };

    return words[why];
}

struct retry pools_backoff(void)
{
    return (struct retry){.first = POOLS_BACKOFF, .max = POOLS_BACKOFF_MOST};
}

double pools_boot(double estimate, double measured)
{
    double weight = measured > estimate ? BOOT_LONGER : BOOT_SHORTER;

    if (!(measured >= 0))
        return estimate;
    return estimate <= 0 ? measured : estimate + weight * (measured - estimate);
}

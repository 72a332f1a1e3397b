/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What nodes cost, and which pools are asked for them (pools.h). */
#include <limits.h>
#include <math.h>
#include <stddef.h>

#include "lib/pools_private.h"

#define HOUR 3600.0

/* ---- money ----------------------------------------------------------------------------------- */

/* What a new node costs at least: its boot, the shortest stay that is worth it, and its end. */
static double cost_of_new(const struct facts *f, const struct pools_pool *pool)
{
    double stay = f->end >= 0 ? fmin(f->end, POOLS_STAY) : POOLS_STAY;

    return pool->price / HOUR * (pool->boot + stay + pool->suspend);
}

/* What is left of the budget when all extension nodes are given back now. */
static double money_left(const struct facts *f, double *per_second, double *asked)
{
    const struct pools_input *in = f->in;
    double left = in->budget - in->spent;

    *per_second = in->base_nodes * in->base_price / HOUR;
    *asked = 0;
    for (int i = 0; i < in->pool_count; i++) {
        const struct pools_pool *pool = &in->pools[i];
        double nodes = (pool->ready + pool->booting) * pool->price / HOUR;

        /* A node that boots cannot be given back before it has booted. */
        left -= nodes * pool->suspend + pool->booting * pool->price / HOUR * pool->boot;
        *per_second += nodes;
        if (!too_dear(in, pool) && !forgets(in, pool))
            *asked += pool->pending * cost_of_new(f, pool);
    }
    return left;
}

bool pools_exhausted(struct facts *f, double *spare)
{
    double per_second, left, asked;

    *spare = INFINITY;
    if (f->in->budget <= 0)
        return false;
    left = money_left(f, &per_second, &asked);
    if (left <= per_second * POOLS_MARGIN)
        return true;
    *spare = left - per_second * POOLS_STAY - asked;
    if (per_second > 0)
        wake_in(f, fmin(left / per_second - POOLS_MARGIN, POOLS_LOOK_MOST));
    return false;
}

/* How many new nodes of a pool the budget pays, at most `nodes`. */
static int affordable(const struct facts *f, const struct pools_pool *pool, int nodes,
                      double *spare)
{
    double each = cost_of_new(f, pool);

    if (isinf(*spare) || each <= 0)
        return nodes;
    if (*spare < each)
        return 0;
    nodes = (int)fmin(nodes, floor(*spare / each));
    *spare -= nodes * each;
    return nodes;
}

/* ---- which pools ----------------------------------------------------------------------------- */

/* Nodes of the pool that count: they are there, and nothing speaks against them. */
static int counted(const struct facts *f, const struct pools_pool *pool)
{
    int nodes = pool->booting;

    if (too_dear(f->in, pool))
        return nodes;
    nodes += staying(pool);
    return forgets(f->in, pool) ? nodes : nodes + pool->pending;
}

/* How many more nodes a pool may be asked for, and what stops it. */
static int room(const struct share *share, const struct pools_pool *pool, enum pools_why *why)
{
    const struct facts *f = share->f;
    int nodes = limit_of(pool) - counted(f, pool), boots = INT_MAX;

    if (pool->wake && pool->max_resume > 0)
        boots = pool->max_resume - pool->booting - pool->pending;
    *why = POOLS_ASKED;
    if (too_dear(f->in, pool))
        *why = POOLS_PRICE;
    else if (paused(f->in, pool))
        *why = POOLS_PAUSED;
    else if (!share->grows)
        *why = share->why_not;
    else if (!pool->fallback && f->end >= 0 && f->end < 2 * pool->boot)
        *why = POOLS_ENDING;
    else if (nodes <= 0)
        *why = POOLS_FULL;
    else if (boots <= 0)
        *why = POOLS_BOOTS;
    return *why == POOLS_ASKED ? at_most(nodes, boots) : 0;
}

static bool stale(const struct facts *f, const struct pools_pool *pool)
{
    return pool->pending > 0 && f->in->now - pool->pending_since >= POOLS_PATIENCE;
}

/* Pending nodes that do not come make way for another pool that has room. */
static void give_up(const struct share *share, int i)
{
    const struct pools_pool *pools = share->f->in->pools;
    struct pools_target *target = &share->f->out->targets[i];

    if (pools[i].pending == 0 || target->nodes <= staying(&pools[i]) + pools[i].booting)
        return;
    if (!stale(share->f, &pools[i])) {
        wake_in(share->f, pools[i].pending_since + POOLS_PATIENCE - share->f->in->now);
        return;
    }
    for (int k = 0; k < share->f->in->pool_count; k++) {
        enum pools_why why;

        if (k == i || pools[k].fallback != share->fallback || stale(share->f, &pools[k]) ||
            room(share, &pools[k], &why) == 0)
            continue;
        target->gives_up = true;
        target->why = POOLS_STALE;
        target->nodes -= pools[i].pending;
        *share->spare += pools[i].pending * cost_of_new(share->f, &pools[i]);
        return;
    }
}

/* Take `excess` nodes from the targets, dearest first: what costs nothing first. */
static void reduce(const struct share *share, int excess)
{
    const struct pools_input *in = share->f->in;

    for (int ready = 0; ready <= (share->gives ? 1 : 0); ready++)
        for (int i = in->pool_count - 1; i >= 0 && excess > 0; i--) {
            const struct pools_pool *pool = &in->pools[share->cheapest[i]];
            struct pools_target *target = &share->f->out->targets[share->cheapest[i]];
            int least = pool->booting + (ready ? 0 : staying(pool)), less;

            if (pool->fallback != share->fallback)
                continue;
            less = at_most(excess, at_least(target->nodes - least, 0));
            target->nodes -= less;
            excess -= less;
        }
}

void pools_share_out(const struct share *share, int nodes)
{
    struct facts *f = share->f;
    const struct pools_input *in = f->in;
    int missing = nodes;

    for (int i = 0; i < in->pool_count; i++) {
        if (in->pools[i].fallback != share->fallback)
            continue;
        f->out->targets[i].nodes = counted(f, &in->pools[i]);
        give_up(share, i);
        missing -= f->out->targets[i].nodes;
    }
    if (missing < 0)
        reduce(share, -missing);
    for (int i = 0; i < in->pool_count; i++) {
        const struct pools_pool *pool = &in->pools[share->cheapest[i]];
        struct pools_target *target = &f->out->targets[share->cheapest[i]];
        enum pools_why why;
        int more;

        if (pool->fallback != share->fallback || target->gives_up)
            continue;
        more = at_most(room(share, pool, &why), at_least(missing, 0));
        if (missing > 0 && why == POOLS_PAUSED)
            wake_in(f, pool->pause_until - in->now);
        if (more > 0) {
            more = affordable(f, pool, more, share->spare);
            if (more == 0)
                why = POOLS_BUDGET;
        }
        target->nodes += more;
        missing -= more;
        target->why = missing <= 0 && more == 0 && why == POOLS_ASKED ? POOLS_ENOUGH : why;
    }
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How many nodes of which pool an elastic job should have (pools.h). */
#include "lib/pools.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>

#define HOUR 3600.0
/* Weight of a new boot in the estimate: a long one counts at once, short ones slowly. */
#define BOOT_LONGER  0.5
#define BOOT_SHORTER 0.2

static int at_most(int a, int b)
{
    return a < b ? a : b;
}

static int at_least(int a, int b)
{
    return a > b ? a : b;
}

/* The situation, counted. */
struct facts {
    const struct pools_input *in;
    struct pools_output *out;
    int most;         /* nodes that the job may have */
    int spot;         /* spot nodes that work, and will go on */
    int spot_comes;   /* … that boot */
    int demand;       /* on-demand nodes that work */
    int demand_there; /* … or boot */
    int demand_most;  /* nodes of a job without spot nodes, the base included */
    int safe;         /* nodes of the base that nobody takes */
    double work;      /* left; < 0: not known */
    double left;      /* seconds to the deadline */
    double reserve;   /* seconds that changes of the world may take yet, at an even pace */
    double end;       /* seconds until the work is done at the present speed; < 0: not known */
};

static int staying(const struct pools_pool *pool)
{
    return pool->ready - pool->noticed;
}

static bool too_dear(const struct pools_input *in, const struct pools_pool *pool)
{
    return in->max_price > 0 && pool->price > in->max_price;
}

static bool paused(const struct pools_input *in, const struct pools_pool *pool)
{
    return pool->pause_until > in->now;
}

/* Do requests that wait not count, since their pool has failed? */
static bool forgets(const struct pools_input *in, const struct pools_pool *pool)
{
    return paused(in, pool) && !pool->refuses;
}

static int limit_of(const struct pools_pool *pool)
{
    return pool->max_nodes > 0 ? pool->max_nodes : SIZES_NODES_MAX;
}

static double relative_price(const struct pools_pool *pool)
{
    return pool->price / (pool->speed > 0 ? pool->speed : 1);
}

/* Remember the earliest moment at which the answer may change by itself. */
static void wake_in(struct facts *f, double delay)
{
    if (delay <= 0)
        delay = 0.01;
    if (f->out->wake == 0 || delay < f->out->wake)
        f->out->wake = delay;
}

/* Units of work per second with so many nodes in the job. */
static double rate(const struct facts *f, int nodes)
{
    return speed_at(f->in->speed, sizes_floor(f->in->sizes, nodes));
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

/* Seconds until so many more on-demand nodes work. */
static double delay_of(const struct pools_input *in, int nodes)
{
    double most = 0;

    for (int i = 0; i < in->pool_count; i++) {
        const struct pools_pool *pool = &in->pools[i];
        int rounds = 1;

        if (!pool->fallback || too_dear(in, pool))
            continue;
        if (pool->wake && pool->max_resume > 0 && nodes > pool->max_resume)
            rounds = (nodes + pool->max_resume - 1) / pool->max_resume;
        most = fmax(most, pool->boot * rounds);
    }
    return most;
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

/* ---- the deadline ---------------------------------------------------------------------------- */

/* The work that can be done in time if all spot nodes are lost now, with so many on-demand nodes
 * that work already, and as many as there can be after the delay. The delay counts twice: boots
 * differ. Spot nodes, as many as there is place for, may be lost one by one, and on-demand nodes
 * join one by one: so many changes of the world may come, and `more`. */
static double done_alone(const struct facts *f, int nodes, int more)
{
    int missing = at_least(f->demand_most - nodes, 0);
    int changes = 2 + more + missing + at_least(f->most - nodes, 0);
    double reserve = POOLS_MARGIN + f->in->pause * changes;
    double left = fmax(f->left - reserve, 0), first = fmin(2 * delay_of(f->in, missing), left);

    return rate(f, nodes) * first + rate(f, f->demand_most) * (left - first);
}

static bool in_time_alone(const struct facts *f, int nodes, int more)
{
    return done_alone(f, nodes, more) >= f->work;
}

/* The fewest on-demand nodes, the base included, whose work never depends on spot nodes. */
static int fewest_safe(const struct facts *f)
{
    int low = f->safe, high = f->demand_most;

    if (in_time_alone(f, low, 0))
        return low;
    while (high - low > 1) {
        int middle = low + (high - low) / 2;

        if (in_time_alone(f, middle, 0))
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* The smallest allowed number of nodes that does the rest at an even pace. */
static int even_pace(const struct facts *f)
{
    double left = f->left - f->reserve, wanted = left > 0 ? f->work / left : INFINITY;
    int nodes = f->in->sizes->min;

    while (nodes < f->most && speed_at(f->in->speed, nodes) < wanted)
        nodes = sizes_next(f->in->sizes, nodes);
    return nodes;
}

/* On-demand nodes for the pace. No more come while spot nodes may still make up for it, and fewer
 * only for spot nodes that have joined, or when there are two too many: a node that is dropped and
 * booted again is what costs most. */
static int paced(const struct facts *f, const struct pools_memory *memory, bool presses)
{
    int want = at_least(even_pace(f) - f->in->base_nodes - f->spot, 0);
    int have = f->demand_there;

    want = at_most(want, f->demand_most - f->safe);
    if (want >= have)
        return presses ? want : have;
    /* Nobody takes their place any more. */
    if (f->end < 2 * delay_of(f->in, 1))
        return have;
    if (have - want >= 2)
        return want;
    return f->spot > memory->spot ? want : have;
}

/* When the pressure or the safety may call for on-demand nodes though nothing has happened. */
static void wake_before_deadline(struct facts *f, double most)
{
    double now = rate(f, f->in->base_nodes + f->spot + f->demand);
    double spare = done_alone(f, f->safe + f->demand, 0) - f->work;
    double until = POOLS_LOOK_MOST;

    if (f->out->pressure < POOLS_PRESSURE && now < POOLS_PRESSURE * most)
        until = fmin(until, (POOLS_PRESSURE * most * (f->left - f->reserve) - f->work) /
                                (POOLS_PRESSURE * most - now));
    if (spare >= 0 && now < most)
        until = fmin(until, spare / (most - now));
    wake_in(f, fmax(until, POOLS_LOOK_LEAST));
}

/* On-demand nodes that the deadline needs. keep: those that are not exchanged for spot nodes. */
static int for_deadline(struct facts *f, const struct pools_memory *memory, int *keep)
{
    const struct pools_input *in = f->in;
    double most = rate(f, f->demand_most), left = f->left - f->reserve;
    int wanted = 0;

    if (f->work == 0)
        return 0;
    f->out->pressure = most > 0 && left > 0 ? f->work / (most * left) : INFINITY;
    if (f->demand_most <= f->safe || most <= 0) {
        f->out->why = POOLS_NO_FALLBACK;
        return 0;
    }
    if (in->mode == POOLS_DEADLINE) {
        wanted = paced(f, memory, f->out->pressure >= POOLS_PRESSURE);
        if (wanted > 0)
            f->out->why = POOLS_PACE;
    }
    if (!in_time_alone(f, f->safe + f->demand, 0)) {
        int all = f->demand_most - f->safe;

        *keep = fewest_safe(f) - f->safe;
        wanted = at_least(wanted,
                          at_least(*keep, at_most(all, f->most - in->base_nodes - f->spot)));
        f->out->why = f->work > most * f->left ? POOLS_LATE : POOLS_SAFETY;
    } else {
        *keep = fewest_safe(f) - f->safe;
    }
    wake_before_deadline(f, most);
    /* Nodes that boot do not stand in for those that work. */
    return at_least(wanted, at_most(f->demand, *keep) + f->demand_there - f->demand);
}

/* ---- without a deadline ---------------------------------------------------------------------- */

/* Which spot nodes are missing, and since when. */
static void note_loss(const struct facts *f, struct pools_memory *memory)
{
    int most = f->most - f->in->base_nodes;

    memory->before_loss = at_most(at_least(memory->before_loss, f->spot), at_least(most, 0));
    if (f->spot >= memory->before_loss) {
        memory->below = false;
    } else if (!memory->below) {
        memory->below = true;
        memory->below_since = f->in->now;
    }
    memory->spot = f->spot;
}

/* As many on-demand nodes as spot nodes were lost and have not come back. Those that work stay
 * until spot nodes work. */
static int for_lost(struct facts *f, const struct pools_memory *memory)
{
    double since = f->in->now - memory->below_since;
    int missing = memory->before_loss - f->spot, lost = missing - f->spot_comes;
    int stay = at_most(f->demand, missing);

    if (!memory->below || missing <= 0)
        return 0;
    if (lost <= 0)
        return stay;
    if (since < f->in->after) {
        wake_in(f, f->in->after - since);
        return at_most(f->demand_there, missing);
    }
    f->out->why = POOLS_SUPPLEMENT;
    return at_least(lost, stay);
}

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

/* Is the budget used up before the next look? `spare` is what new nodes may cost. */
static bool exhausted(struct facts *f, double *spare)
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

/* Nodes of one kind of pools, to be shared out. */
struct share {
    struct facts *f;
    bool fallback;
    bool grows; /* new nodes may be asked for */
    bool gives; /* ready nodes may be given back */
    enum pools_why why_not;
    const int *cheapest;
    double *spare;
};

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

/* Share out so many nodes to the pools of one kind, cheapest first. */
static void share_out(const struct share *share, int nodes)
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
           !in_time_alone(f, f->safe + f->demand, 2 * nodes);
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
        wanted = for_deadline(f, memory, keep);
    if (in->mode == POOLS_AFTER)
        wanted = at_least(wanted, for_lost(f, &f->out->memory));
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
    note_loss(&f, &out->memory);
    out->memory.exhausted = exhausted(&f, &spare) || (memory->exhausted && in->budget > 0);

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
    share_out(&share, demand);

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
    share_out(&share, spot);
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

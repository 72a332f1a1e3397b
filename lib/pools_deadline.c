/* SPDX-License-Identifier: GPL-2.0-or-later */
/* On-demand nodes: what a deadline needs, and what stands in for lost spot nodes (pools.h). */
#include <math.h>
#include <stddef.h>

#include "lib/pools_private.h"

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

bool pools_in_time_alone(const struct facts *f, int nodes, int more)
{
    return done_alone(f, nodes, more) >= f->work;
}

/* The fewest on-demand nodes, the base included, whose work never depends on spot nodes. */
static int fewest_safe(const struct facts *f)
{
    int low = f->safe, high = f->demand_most;

    if (pools_in_time_alone(f, low, 0))
        return low;
    while (high - low > 1) {
        int middle = low + (high - low) / 2;

        if (pools_in_time_alone(f, middle, 0))
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

int pools_for_deadline(struct facts *f, const struct pools_memory *memory, int *keep)
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
    if (!pools_in_time_alone(f, f->safe + f->demand, 0)) {
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

void pools_note_loss(const struct facts *f, struct pools_memory *memory)
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
int pools_for_lost(struct facts *f, const struct pools_memory *memory)
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

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the pools share (lib/pools.h).
 *
 * pools.c           the situation, counted; what all pools together give back; words
 * pools_deadline.c  on-demand nodes for a deadline, and in the place of lost spot nodes
 * pools_share.c     money, and which pools are asked */
#ifndef ELASTIC_POOLS_PRIVATE_H
#define ELASTIC_POOLS_PRIVATE_H

#include "lib/pools.h"

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

static inline int at_most(int a, int b)
{
    return a < b ? a : b;
}

static inline int at_least(int a, int b)
{
    return a > b ? a : b;
}

static inline int staying(const struct pools_pool *pool)
{
    return pool->ready - pool->noticed;
}

static inline bool too_dear(const struct pools_input *in, const struct pools_pool *pool)
{
    return in->max_price > 0 && pool->price > in->max_price;
}

static inline bool paused(const struct pools_input *in, const struct pools_pool *pool)
{
    return pool->pause_until > in->now;
}

/* Do requests that wait not count, since their pool has failed? */
static inline bool forgets(const struct pools_input *in, const struct pools_pool *pool)
{
    return paused(in, pool) && !pool->refuses;
}

static inline int limit_of(const struct pools_pool *pool)
{
    return pool->max_nodes > 0 ? pool->max_nodes : SIZES_NODES_MAX;
}

/* Remember the earliest moment at which the answer may change by itself. */
static inline void wake_in(struct facts *f, double delay)
{
    if (delay <= 0)
        delay = 0.01;
    if (f->out->wake == 0 || delay < f->out->wake)
        f->out->wake = delay;
}

/* Units of work per second with so many nodes in the job. */
static inline double rate(const struct facts *f, int nodes)
{
    return speed_at(f->in->speed, sizes_floor(f->in->sizes, nodes));
}

/* ---- pools_deadline.c ------------------------------------------------------------------------ */

/* On-demand nodes that the deadline needs. keep: those that are not exchanged for spot nodes. */
int pools_for_deadline(struct facts *f, const struct pools_memory *memory, int *keep);
/* Would so many on-demand nodes that work already be in time if all spot nodes were lost now, with
 * `more` changes of the world? */
bool pools_in_time_alone(const struct facts *f, int nodes, int more);
/* Which spot nodes are missing, and since when. */
void pools_note_loss(const struct facts *f, struct pools_memory *memory);
/* As many on-demand nodes as spot nodes were lost and have not come back. */
int pools_for_lost(struct facts *f, const struct pools_memory *memory);

/* ---- pools_share.c --------------------------------------------------------------------------- */

/* Is the budget used up before the next look? `spare` is what new nodes may cost. */
bool pools_exhausted(struct facts *f, double *spare);

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

/* Share out so many nodes to the pools of one kind, cheapest first. */
void pools_share_out(const struct share *share, int nodes);

#endif

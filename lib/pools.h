/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How many nodes of which pool an elastic job should have: spot first, on-demand when it pays.
 *
 * Pure: the leader describes the situation, pools_decide answers. What one decision leaves to the
 * next is struct pools_memory, which the leader keeps. All times are seconds on one clock, prices
 * per node and hour. doc/internals/pools.md has the rules in words. */
#ifndef ELASTIC_POOLS_H
#define ELASTIC_POOLS_H

#include <stdbool.h>

#include "lib/retry.h"
#include "lib/sizes.h"
#include "lib/speed.h"

#define POOLS_MAX 16

/* When nodes of a fallback pool (on-demand) are asked for. */
enum pools_mode {
    POOLS_NEVER,
    POOLS_DEADLINE, /* when the deadline needs them */
    POOLS_AFTER,    /* when lost spot nodes have not come back after some seconds */
};

struct pools_pool {
    const char *name;
    double price;
    double speed;   /* of a node, relative to the other pools; 0: 1 */
    bool fallback;  /* on-demand: nobody takes its nodes */
    bool wake;      /* its nodes may have to boot */
    int max_nodes;  /* of one job; 0: no limit but the job's */
    int max_resume; /* nodes of one job that boot at once, where `wake`; 0: no limit */
    double boot;    /* estimate: from CONFIGURING to joined */
    double suspend; /* a node costs for so long after it has been given back */
    double pause_until;
    bool refuses; /* … since it takes no more requests: those that it has taken may come */
    /* Extension nodes that the job has. */
    int ready;            /* joined */
    int noticed;          /* … of these: about to be taken */
    int advised;          /* … of these: to be replaced first, then given back */
    int booting;          /* allocated, not joined */
    int pending;          /* asked for, not allocated */
    double pending_since; /* the oldest pending request */
};

/* What the leader keeps from one decision to the next, and over a takeover. All zero at first. */
struct pools_memory {
    int spot;           /* working spot nodes, at the last decision */
    int before_loss;    /* the most working spot nodes since the job last had as many */
    bool below;         /* there are fewer now … */
    double below_since; /* … since then */
    bool exhausted;     /* the budget was used up; cleared by who raises it */
};

struct pools_input {
    double now;
    const struct sizes *sizes;
    int target;     /* cap set by `selastic resize`, else sizes->max */
    int base_nodes; /* nodes of the base job that work, whatever pool they are of */
    bool base_safe; /* nobody takes the nodes of the base */
    double base_price;
    double deadline; /* <= 0: none */
    enum pools_mode mode;
    double after;       /* seconds of POOLS_AFTER */
    double done, total; /* units of work; total <= 0: nobody reports it */
    const struct speed *speed;
    double pause;     /* seconds in which nobody works when the world changes */
    double changed;   /* when it last changed; < 0: never */
    double max_price; /* 0: none */
    double budget;    /* 0: none */
    double spent;
    const struct pools_pool *pools;
    int pool_count;
};

enum pools_why {
    /* Of the job: what its fallback nodes are for, or why there are none. */
    POOLS_SPOT,
    POOLS_PACE,
    POOLS_SAFETY,
    POOLS_LATE,
    POOLS_SUPPLEMENT,
    POOLS_NO_WORK,
    POOLS_NO_SPEED,
    POOLS_NO_FALLBACK,
    POOLS_LATER,
    POOLS_BUDGET,
    /* Of a pool: why it is asked for no more nodes. */
    POOLS_ASKED, /* it is asked */
    POOLS_ENOUGH,
    POOLS_FULL,
    POOLS_BOOTS,
    POOLS_PAUSED,
    POOLS_PRICE,
    POOLS_STALE,
    POOLS_ENDING,
    POOLS_SETTLES,
    POOLS_WHY_COUNT
};

struct pools_target {
    int nodes;     /* to have, those that are noticed not counted: ready, booting and pending */
    int ask;       /* … of these: to ask for now */
    int cancel;    /* pending ones to cancel */
    int give_back; /* ready ones to give back: advised ones first, then the newest */
    bool gives_up; /* its pending nodes do not come: it gets a pause, and another pool is asked */
    enum pools_why why;
};

struct pools_output {
    struct pools_target targets[POOLS_MAX];
    int order[POOLS_MAX]; /* pools in the order in which their nodes are given back */
    enum pools_why why;
    double wake;     /* decide again after so many seconds even if nothing happens; 0: no need */
    double end;      /* expected with the nodes of now; < 0: not known */
    double pressure; /* share of the time left that all on-demand nodes need; < 0: not known */
    struct pools_memory memory; /* for the next decision */
};

/* From this pressure on, on-demand nodes keep the pace. Measured with bench/spot. */
#define POOLS_PRESSURE 0.8
/* Seconds of the time left that nobody counts on: requests and changes take a moment. */
#define POOLS_MARGIN 60.0
/* Pending nodes of a pool that do not come in this time are asked of another pool. */
#define POOLS_PATIENCE 60.0
/* A node is not worth its boot for less than this: the shortest stay that a budget pays. */
#define POOLS_STAY 600.0
/* The longest and the shortest time between two decisions under a deadline or a budget. */
#define POOLS_LOOK_MOST  600.0
#define POOLS_LOOK_LEAST 5.0
/* The job does not grow by choice within so many pauses of a change. */
#define POOLS_SETTLE 10.0
/* Pauses of a pool that has failed (ParallelCluster: ten minutes). */
#define POOLS_BACKOFF      60.0
#define POOLS_BACKOFF_MOST 600.0

/* The pools must not be more than POOLS_MAX. */
void pools_decide(const struct pools_input *in, const struct pools_memory *memory,
                  struct pools_output *out);

/* In words, for `selastic show`. */
const char *pools_words(enum pools_why why);

/* The pauses of a new pool. An extension of it that ends before it has joined, or that a limit
 * stops, is retry_failed(); one that joins is retry_reset(). `after` is pause_until. */
struct retry pools_backoff(void);

/* The estimate of a boot after one more has been measured; estimate <= 0: the first one. */
double pools_boot(double estimate, double measured);

#endif

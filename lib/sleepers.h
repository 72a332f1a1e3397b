/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nodes of pools that are powered down, where extensions must not power nodes up (lib/wake.h).
 * Pure: time is a parameter, in seconds.
 *
 * Slurm has no option with which a job refuses such nodes. So an extension excludes them by name,
 * and asks for no more nodes than the others: Slurm would refuse it. What is known of a pool is old
 * after a few seconds; before an extension is submitted it has to be asked for. */
#ifndef ELASTIC_SLEEPERS_H
#define ELASTIC_SLEEPERS_H

#include <stdbool.h>
#include <time.h>

#include "lib/sizes.h"

#define SLEEPERS_AGAIN 30.0 /* seconds between two questions for the same */

enum sleepers_state {
    SLEEPERS_UNKNOWN, /* nobody has asked, or Slurm does not tell */
    SLEEPERS_NONE,    /* no extension can power a node up here */
    SLEEPERS_LISTED,
};

struct sleepers_pool {
    enum sleepers_state state;
    double wanted; /* an extension waits for an answer, since then; 0: none */
    double seen;   /* the last answer, 0: none */
    double again;  /* no extension is possible; not to be asked for before */
    time_t as_of;  /* of the lists, by Slurm's clock; 0: there are none */
    char **up, **asleep;
    char problem[160]; /* why Slurm does not tell; "": it does */
    char why[256];     /* why no extension can be asked for; "": one can */
};

struct sleepers; /* of all pools of the site */

struct sleepers *sleepers_create(int pools); /* NULL: out of memory */
void sleepers_destroy(struct sleepers *sleepers);

/* The pool of that number. */
struct sleepers_pool *sleepers_of(const struct sleepers *sleepers, int number);

/* Slurm has answered. up and asleep belong to the pool then; both NULL with SLEEPERS_LISTED: they
 * are as they were. problem: NULL unless it is not known. */
void sleepers_take(struct sleepers_pool *pool, enum sleepers_state state, time_t as_of, char **up,
                   char **asleep, const char *problem, double now);

struct sleepers_request {
    const char *name; /* of the pool */
    int nodes;        /* wanted */
    int have;         /* what the job has, and what is on its way */
    int coming;       /* on its way, to this pool: they will be some of those that are up */
    const struct sizes *sizes;
    char *const *others; /* nodes that it has, or excludes anyway */
};

/* For how many nodes an extension may be submitted now. 0: for none, or not before Slurm has been
 * asked (`wanted`), or not before `again`; then `why` says so to users. */
int sleepers_limit(struct sleepers_pool *pool, const struct sleepers_request *request, double now);

#endif

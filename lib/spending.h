/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the nodes of a job have cost: node hours of each pool, with the time that a cloud node stays
 * up after the job has given it back.
 *
 * Pure. Prices are per node and hour, in the site's currency. The struct is plain, so that it can
 * be kept in a file; `at` then has to be moved to the clock of the next leader. */
#ifndef ELASTIC_SPENDING_H
#define ELASTIC_SPENDING_H

/* The pools of a job, and its base. */
#define SPENDING_MAX      17
#define SPENDING_NAME_MAX 63

struct spending_pool {
    char name[SPENDING_NAME_MAX + 1];
    int nodes; /* now: allocated, whether they boot or work */
    double price;
    double suspend;      /* seconds until Slurm powers an idle node down */
    double node_seconds; /* allocated until spending.at */
    double tail_seconds; /* after nodes were given back */
    double cost;
};

/* All zero: nothing yet. */
struct spending {
    double at; /* all is accounted for until then */
    int count;
    struct spending_pool pools[SPENDING_MAX];
};

/* From now on the job has so many nodes of this pool, at this price. What it had until now is
 * accounted for. Nodes that are fewer than before were given back: they cost until they are powered
 * down. Returns -1 without effect if there are too many pools, or if the name is too long. */
int spending_set(struct spending *spending, double now, const char *name, int nodes, double price,
                 double suspend);

/* NULL: the pool is not known. */
const struct spending_pool *spending_find(const struct spending *spending, const char *name);

/* All nodes are given back, at spending.at. */
void spending_give_back(struct spending *spending);

/* Account for the time until now. */
void spending_run(struct spending *spending, double now);

/* Until spending.at, of all pools. */
double spending_cost(const struct spending *spending);
/* Cost of an hour with the nodes of now. */
double spending_per_hour(const struct spending *spending);
/* Node hours of a pool, tails included; 0 if the pool is not known. */
double spending_hours(const struct spending *spending, const char *name);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the nodes of a job have cost (spending.h). */
#include "lib/spending.h"

#include <stddef.h>
#include <string.h>

#define HOUR 3600.0

const struct spending_pool *spending_find(const struct spending *spending, const char *name)
{
    for (int i = 0; i < spending->count; i++)
        if (strcmp(spending->pools[i].name, name) == 0)
            return &spending->pools[i];
    return NULL;
}

void spending_run(struct spending *spending, double now)
{
    double seconds = now - spending->at;

    if (seconds <= 0)
        return;
    for (int i = 0; i < spending->count; i++) {
        struct spending_pool *pool = &spending->pools[i];

        pool->node_seconds += seconds * pool->nodes;
        pool->cost += seconds * pool->nodes * pool->price / HOUR;
    }
    spending->at = now;
}

int spending_set(struct spending *spending, double now, const char *name, int nodes, double price,
                 double suspend)
{
    struct spending_pool *pool = (struct spending_pool *)spending_find(spending, name);

    if (pool == NULL && (spending->count == SPENDING_MAX || strlen(name) > SPENDING_NAME_MAX))
        return -1;
    spending_run(spending, now);
    if (pool == NULL) {
        pool = &spending->pools[spending->count++];
        *pool = (struct spending_pool){0};
        strcpy(pool->name, name);
    }
    if (nodes < pool->nodes) {
        double tail = (pool->nodes - nodes) * pool->suspend;

        pool->tail_seconds += tail;
        pool->cost += tail * pool->price / HOUR;
    }
    pool->nodes = nodes;
    pool->price = price;
    pool->suspend = suspend;
    return 0;
}

void spending_give_back(struct spending *spending)
{
    for (int i = 0; i < spending->count; i++) {
        const struct spending_pool *pool = &spending->pools[i];

        spending_set(spending, spending->at, pool->name, 0, pool->price, pool->suspend);
    }
}

double spending_cost(const struct spending *spending)
{
    double cost = 0;

    for (int i = 0; i < spending->count; i++)
        cost += spending->pools[i].cost;
    return cost;
}

double spending_per_hour(const struct spending *spending)
{
    double cost = 0;

    for (int i = 0; i < spending->count; i++)
        cost += spending->pools[i].nodes * spending->pools[i].price;
    return cost;
}

double spending_hours(const struct spending *spending, const char *name)
{
    const struct spending_pool *pool = spending_find(spending, name);

    return pool == NULL ? 0 : (pool->node_seconds + pool->tail_seconds) / HOUR;
}

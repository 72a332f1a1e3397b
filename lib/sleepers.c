/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nodes that are powered down (sleepers.h). */
#include "lib/sleepers.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/names.h"
#include "lib/text.h"

#define FRESH      5.0   /* seconds for which a list is good enough to submit an extension */
#define NONE_FRESH 600.0 /* … after which is asked again whether there is anything to stay off */

struct sleepers {
    int count;
    struct sleepers_pool pools[];
};

struct sleepers *sleepers_create(int pools)
{
    struct sleepers *sleepers = calloc(1, sizeof(*sleepers) +
                                              (size_t)pools * sizeof(sleepers->pools[0]));

    if (sleepers != NULL)
        sleepers->count = pools;
    return sleepers;
}

void sleepers_destroy(struct sleepers *sleepers)
{
    if (sleepers == NULL)
        return;
    for (int i = 0; i < sleepers->count; i++) {
        strings_free(sleepers->pools[i].up);
        strings_free(sleepers->pools[i].asleep);
    }
    free(sleepers);
}

struct sleepers_pool *sleepers_of(const struct sleepers *sleepers, int number)
{
    return (struct sleepers_pool *)&sleepers->pools[number];
}

void sleepers_take(struct sleepers_pool *pool, enum sleepers_state state, time_t as_of, char **up,
                   char **asleep, const char *problem, double now)
{
    pool->state = state;
    pool->seen = now;
    pool->as_of = as_of;
    snprintf(pool->problem, sizeof(pool->problem), "%s", problem != NULL ? problem : "");
    if (state == SLEEPERS_LISTED && up == NULL && asleep == NULL)
        return;
    strings_free(pool->up);
    strings_free(pool->asleep);
    pool->up = up;
    pool->asleep = asleep;
}

static int refuse(struct sleepers_pool *pool, double now)
{
    pool->again = now + SLEEPERS_AGAIN;
    return 0;
}

/* Of the nodes that are up, `left` can be had. */
static int explain(struct sleepers_pool *pool, const struct sleepers_request *request, int left,
                   double now)
{
    if (left <= 0)
        snprintf(pool->why, sizeof(pool->why),
                 "pool %s: all its other nodes are powered down and wake=no", request->name);
    else
        snprintf(pool->why, sizeof(pool->why),
                 "pool %s: only %d of its other nodes %s not powered down, too few for an allowed "
                 "size, and wake=no",
                 request->name, left, left == 1 ? "is" : "are");
    return refuse(pool, now);
}

int sleepers_limit(struct sleepers_pool *pool, const struct sleepers_request *request, double now)
{
    double fresh = pool->state == SLEEPERS_NONE ? NONE_FRESH : FRESH;
    bool is_old = pool->seen == 0 || now > pool->seen + fresh;
    int left, nodes = request->nodes;

    if (now < pool->again)
        return 0;
    if (is_old && pool->wanted <= pool->seen)
        pool->wanted = now;
    if (is_old && pool->state != SLEEPERS_NONE)
        return 0;
    if (pool->state == SLEEPERS_UNKNOWN) {
        snprintf(pool->why, sizeof(pool->why),
                 "pool %s: wake=no, and it is not known which nodes are powered down: %s",
                 request->name, pool->problem);
        return refuse(pool, now);
    }
    if (pool->state == SLEEPERS_LISTED) {
        left = names_count_without(pool->up, request->others) - request->coming;
        if (left < nodes)
            nodes = sizes_floor(request->sizes, request->have + (left > 0 ? left : 0)) -
                    request->have;
        if (nodes <= 0)
            return explain(pool, request, left, now);
    }
    pool->why[0] = '\0';
    return nodes;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the tasks of a gang fit (slots.h). */
#include "lib/slots.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

bool slots_equal(const struct slots_gang *a, const struct slots_gang *b)
{
    return a->size.cpus == b->size.cpus && a->size.gpus == b->size.gpus &&
           a->size.memory == b->size.memory && a->tasks == b->tasks && a->per_node == b->per_node &&
           a->owned == b->owned;
}

int slots_fit(const struct slots_size *free, const struct slots_size *size)
{
    int64_t fit = INT_MAX;

    if (size->cpus > 0)
        fit = least(fit, free->cpus / size->cpus);
    if (size->gpus > 0)
        fit = least(fit, free->gpus / size->gpus);
    if (size->memory > 0)
        fit = least(fit, free->memory / size->memory);
    return fit > 0 ? (int)fit : 0;
}

void slots_take(struct slots_size *free, const struct slots_size *size)
{
    free->cpus -= size->cpus;
    free->gpus -= size->gpus;
    free->memory -= size->memory;
}

void slots_give(struct slots_size *free, const struct slots_size *size)
{
    free->cpus += size->cpus;
    free->gpus += size->gpus;
    free->memory += size->memory;
}

/* Does a come before b? It has less free. */
static bool is_better(const struct slots_node *first, const struct slots_node *second)
{
    const struct slots_size *a = &first->free, *b = &second->free;

    if (first->avoided != second->avoided)
        return first->avoided < second->avoided;
    if (a->gpus != b->gpus)
        return a->gpus < b->gpus;
    if (a->cpus != b->cpus)
        return a->cpus < b->cpus;
    return a->memory < b->memory;
}

/* The best node on which so many tasks fit; -1: there is none. fits: how many fit on
 * each node; NULL: it is to be found out. */
static int best_fit(const struct slots_node *nodes, int count, const struct slots_size *size,
                    int tasks, const int *fits)
{
    struct slots_size need = {size->cpus * tasks, size->gpus * tasks, size->memory * tasks};
    int best = -1;

    for (int i = 0; i < count; i++) {
        const struct slots_size *free = &nodes[i].free;

        if (nodes[i].closed || free->cpus < need.cpus || free->gpus < need.gpus ||
            free->memory < need.memory || (fits != NULL && fits[i] < tasks))
            continue;
        if (best < 0 || is_better(&nodes[i], &nodes[best]))
            best = i;
    }
    return best;
}

/* The node on which the most tasks fit; of equal ones the best. */
static int roomiest(const struct slots_node *nodes, int count, const int *fits)
{
    int best = 0;

    for (int i = 1; i < count; i++)
        if (fits[i] > fits[best] || (fits[i] == fits[best] && is_better(&nodes[i], &nodes[best])))
            best = i;
    return best;
}

/* On several nodes: as many tasks as fit on the roomiest node, or per_node, again and again. The
 * last tasks go to the node with the least left. */
static bool spread(const struct slots_node *nodes, int count, const struct slots_gang *gang,
                   int *fits, int *where)
{
    int done = 0;

    while (done < gang->tasks) {
        int left = gang->tasks - done;
        int most = gang->per_node > 0 ? (int)least(gang->per_node, left) : left;
        int node = best_fit(nodes, count, &gang->size, most, fits);

        if (node < 0 && gang->per_node == 0 && count > 0) {
            node = roomiest(nodes, count, fits);
            most = fits[node];
        }
        if (node < 0 || most == 0)
            return false;
        for (int i = 0; i < most; i++)
            where[done++] = node;
        fits[node] = 0;
    }
    return true;
}

/* On nodes of the group of that node. seen: the nodes of groups that have been tried. fits: room
 * for as many numbers as there are nodes. */
static bool spread_in_group(const struct slots_node *nodes, int count, int first,
                            const struct slots_gang *gang, bool *seen, int *fits, int *where)
{
    int64_t all = 0;

    for (int i = 0; i < count; i++) {
        bool within = nodes[i].group == nodes[first].group;

        seen[i] = seen[i] || within;
        fits[i] = within && !nodes[i].closed ? slots_fit(&nodes[i].free, &gang->size) : 0;
        all += fits[i];
    }
    return all >= gang->tasks && spread(nodes, count, gang, fits, where);
}

bool slots_place(const struct slots_node *nodes, int count, const struct slots_gang *gang,
                 int *where)
{
    bool together = gang->per_node == 0 || gang->per_node >= gang->tasks;
    int node = together ? best_fit(nodes, count, &gang->size, gang->tasks, NULL) : -1;
    int *fits;
    bool *seen, placed = false;

    if (node >= 0) {
        for (int i = 0; i < gang->tasks; i++)
            where[i] = node;
        return true;
    }
    if (gang->tasks == 1 || count == 0 || (together && gang->per_node > 0))
        return false;
    fits = calloc((size_t)count, sizeof(*fits));
    seen = calloc((size_t)count, sizeof(*seen));
    for (int i = 0; fits != NULL && seen != NULL && i < count && !placed; i++)
        placed = !seen[i] && spread_in_group(nodes, count, i, gang, seen, fits, where);
    free(fits);
    free(seen);
    return placed;
}

const char *slots_too_large(const struct slots_size *node, const struct slots_gang *gang,
                            char *text, size_t size)
{
    int tasks = gang->per_node > 0 ? gang->per_node : 1;
    struct slots_size need = {gang->size.cpus * tasks, gang->size.gpus * tasks,
                              gang->size.memory * tasks};

    if (need.cpus > node->cpus)
        snprintf(text, size, need.cpus == 1 ? "%d CPU" : "%d CPUs", need.cpus);
    else if (need.gpus > node->gpus)
        snprintf(text, size, need.gpus == 1 ? "%d GPU" : "%d GPUs", need.gpus);
    else if (need.memory > node->memory)
        snprintf(text, size, "%lld MiB of memory", (long long)need.memory);
    else
        return NULL;
    return text;
}

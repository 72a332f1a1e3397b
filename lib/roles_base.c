/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How many nodes hold what is guaranteed (roles_base.h). */
#include "lib/roles_base.h"

#include <stdlib.h>
#include <string.h>

/* A node of a world that takes all that is left needs a CPU at least. */
static struct slots_gang gang_of(const struct role *role)
{
    struct slots_gang gang = role->gang;

    if (role->kind == ROLE_WORLD && gang.size.cpus == 0)
        gang.size.cpus = 1;
    return gang;
}

static void add_need(const struct role *role, struct roles_need *need)
{
    int64_t tasks = (int64_t)role->min * role->gang.tasks;

    if (role->kind == ROLE_WORLD)
        need->world = role->min;
    else
        need->tasks += tasks;
    need->cpus += tasks * role->gang.size.cpus;
    need->gpus += tasks * role->gang.size.gpus;
    need->memory += tasks * role->gang.size.memory;
}

void roles_need(const struct roles *roles, struct roles_need *need)
{
    *need = (struct roles_need){0};
    for (int i = 0; i < roles->count; i++)
        add_need(&roles->list[i], need);
}

void roles_need_of_base(const struct roles *roles, struct roles_need *need)
{
    *need = (struct roles_need){0};
    for (int i = 0; i < roles->count; i++)
        if (roles->list[i].base == NULL)
            add_need(&roles->list[i], need);
}

/* ---- nodes of one size ----------------------------------------------------------------------- */

struct base {
    struct slots_node *nodes;
    int count;
    int *where; /* of a gang */
};

/* The first `count` nodes count; those behind them are as they come. */
static int add_nodes(struct base *base, int count, const struct slots_size *size, struct error *err)
{
    struct slots_node *nodes;

    if (count > ROLES_BASE_MAX)
        return error_set(err, "what is guaranteed needs more than %d nodes", ROLES_BASE_MAX);
    nodes = realloc(base->nodes, (size_t)count * sizeof(*nodes));
    if (nodes == NULL)
        return error_set(err, "out of memory");
    base->nodes = nodes;
    for (int i = base->count; i < count; i++)
        base->nodes[i] = (struct slots_node){.free = *size};
    return 0;
}

/* Give a gang its slots, on more nodes where it takes them. A node more for each task is enough;
 * the fewest are found by halving. */
static int place(struct base *base, const struct slots_gang *gang, const struct slots_size *size,
                 struct error *err)
{
    int few = base->count, enough;

    if (!slots_place(base->nodes, base->count, gang, base->where)) {
        enough = base->count + gang->tasks < ROLES_BASE_MAX ? base->count + gang->tasks
                                                            : ROLES_BASE_MAX;
        if (add_nodes(base, enough, size, err) < 0)
            return -1;
        if (!slots_place(base->nodes, enough, gang, base->where))
            return add_nodes(base, ROLES_BASE_MAX + 1, size, err);
        while (enough - few > 1) {
            int half = few + (enough - few) / 2;

            if (slots_place(base->nodes, half, gang, base->where))
                enough = half;
            else
                few = half;
        }
        base->count = enough;
        slots_place(base->nodes, enough, gang, base->where);
    }
    for (int i = 0; i < gang->tasks; i++)
        slots_take(&base->nodes[base->where[i]].free, &gang->size);
    return 0;
}

/* The world has a task of its own size on each of its nodes. */
static int place_world(struct base *base, const struct role *role, const struct slots_size *size,
                       struct error *err)
{
    struct slots_gang gang = gang_of(role);

    for (int placed = 0, node = 0; placed < role->min; node++) {
        if (node == base->count) {
            if (add_nodes(base, node + 1, size, err) < 0)
                return -1;
            base->count++;
        }
        if (slots_fit(&base->nodes[node].free, &gang.size) < 1)
            continue;
        slots_take(&base->nodes[node].free, &gang.size);
        placed++;
    }
    return 0;
}

static int place_role(struct base *base, const struct role *role, const struct slots_size *size,
                      const char *partition, struct error *err)
{
    struct role asked = *role;

    asked.gang = gang_of(role);
    if (role_check_node(&asked, size, partition, err) < 0)
        return -1;
    if (role->kind == ROLE_WORLD)
        return place_world(base, role, size, err);
    for (int i = 0; i < role->min; i++) {
        if (place(base, &role->gang, size, err) < 0)
            return -1;
    }
    return 0;
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static void most_taken(const struct base *base, const struct slots_size *size,
                       struct slots_size *taken)
{
    *taken = (struct slots_size){0};
    for (int i = 0; i < base->count; i++) {
        const struct slots_size *left = &base->nodes[i].free;

        taken->cpus = larger(taken->cpus, size->cpus - left->cpus);
        taken->gpus = larger(taken->gpus, size->gpus - left->gpus);
        if (size->memory - left->memory > taken->memory)
            taken->memory = size->memory - left->memory;
    }
}

int roles_base_nodes(const struct roles *roles, const struct slots_size *node,
                     const char *partition, struct slots_size *taken, struct error *err)
{
    struct base base = {.where = calloc(ROLES_TASKS_MAX, sizeof(int))};
    int rc = base.where != NULL ? 0 : error_set(err, "out of memory");

    for (int i = 0; rc == 0 && i < roles->count; i++) {
        if (roles->list[i].base == NULL)
            rc = place_role(&base, &roles->list[i], node, partition, err);
    }
    if (rc == 0) {
        most_taken(&base, node, taken);
        rc = larger(base.count, 1);
    }
    free(base.where);
    free(base.nodes);
    return rc;
}

/* ---- nodes as they are ----------------------------------------------------------------------- */

int roles_fit(const struct role *role, const struct slots_node *nodes, int count)
{
    struct slots_gang gang = gang_of(role);
    struct slots_node *left = calloc((size_t)count + 1, sizeof(*left));
    int *where = calloc(ROLES_TASKS_MAX, sizeof(*where));
    int fit = 0;

    if (left == NULL || where == NULL)
        fit = -1;
    else if (count > 0)
        memcpy(left, nodes, (size_t)count * sizeof(*left));
    while (fit >= 0 && fit < role->max && slots_place(left, count, &gang, where)) {
        for (int i = 0; i < gang.tasks; i++)
            slots_take(&left[where[i]].free, &gang.size);
        /* A world has a node once. */
        left[where[0]].closed |= role->kind == ROLE_WORLD;
        fit++;
    }
    free(left);
    free(where);
    return fit;
}

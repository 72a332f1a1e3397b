/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reconciler: nodes and the slots on them (reconcile_private.h). */
#include <stdlib.h>
#include <string.h>

#include "lib/majority.h"
#include "lib/reconcile_private.h"

struct node *node_find(const struct reconcile *r, int id)
{
    int low = 0, high = r->node_count;

    while (low < high) {
        int middle = low + (high - low) / 2;

        if (r->nodes[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < r->node_count && r->nodes[low].id == id ? &r->nodes[low] : NULL;
}

bool node_add(struct reconcile *r, const struct reconcile_node *joins)
{
    struct request *request = request_find(r, joins->job);

    if (r->node_count > 0 && joins->id <= r->nodes[r->node_count - 1].id)
        return true;
    if (!reconcile_grow(r, (void **)&r->nodes, r->node_count, &r->node_room, sizeof(*r->nodes)) ||
        !reconcile_grow(r, (void **)&r->spots.list, r->node_count, &r->spots.room,
                        sizeof(*r->spots.list)))
        return false;
    r->nodes[r->node_count++] = (struct node){.id = joins->id,
                                              .job = joins->job,
                                              .free = joins->size,
                                              .gpus = joins->size.gpus,
                                              .safe = joins->safe,
                                              .role = joins->role,
                                              .world = joins->world && r->world >= 0 &&
                                                       !r->role[r->world].over};
    if (request != NULL) {
        request->nodes++;
        request->idle = r->now;
    }
    return true;
}

int reconcile_majority(const struct reconcile *r)
{
    int *gpus = calloc((size_t)r->node_count + 1, sizeof(*gpus)), number;

    if (gpus == NULL)
        return 0;
    for (int i = 0; i < r->node_count; i++)
        gpus[i] = r->nodes[i].gpus;
    number = majority(gpus, r->node_count);
    free(gpus);
    return number;
}

static bool is_on(const struct entry *e, int tasks, int node)
{
    for (int i = 0; i < tasks; i++)
        if (e->replica.tasks[i].node == node)
            return true;
    return false;
}

void node_goes(struct reconcile *r, struct node *node, double seconds, const char *why)
{
    int id = node->id;

    node->goes = true;
    for (int i = r->entry_count - 1; i >= 0; i--) {
        struct entry *e = r->entries[i];
        const struct role *role = role_of(r, e);
        double within = role->drain.within;

        if (!is_on(e, e->replica.gang->tasks, id))
            continue;
        if (seconds > 0 && seconds < within)
            within = seconds;
        /* There is never a second one that leads, and an owner keeps its gang. */
        if ((role->leads || e->replica.gang->owned) && entry_stays(e) && !r->stopping)
            e->replica.again = true;
        else
            e->replica.leaves = true;
        entry_drain(r, e, within, why);
    }
}

void node_gone(struct reconcile *r, struct node *node, const char *why)
{
    struct request *request = request_find(r, node->job);
    int id = node->id;

    node->goes = true;
    for (int i = r->entry_count - 1; i >= 0; i--) {
        struct entry *e = r->entries[i];
        int tasks = e->replica.gang->tasks, replica = e->replica.id;

        for (int task = 0; task < tasks && entry_find(r, replica) == e; task++)
            if (e->replica.tasks[task].node == id)
                entry_task_ended(r, e, task, -1, why);
    }
    node = node_find(r, id);
    memmove(node, node + 1, (size_t)(&r->nodes[r->node_count] - (node + 1)) * sizeof(*node));
    r->node_count--;
    if (request == NULL)
        return;
    request->expected--;
    if (--request->nodes == 0 && request->state != REQUEST_RETURNED)
        ask_setback(r, request);
}

void node_take(struct reconcile *r, const struct entry *e, int task)
{
    struct node *node = node_find(r, e->replica.tasks[task].node);
    struct request *request = request_find(r, node->job);

    slots_take(&node->free, &e->replica.gang->size);
    node->tasks++;
    if (request != NULL) {
        request->used = true;
        request->idle = -1;
    }
}

void node_give(struct reconcile *r, const struct entry *e, int task)
{
    struct node *node = node_find(r, e->replica.tasks[task].node);

    if (node == NULL)
        return;
    slots_give(&node->free, &e->replica.gang->size);
    node->tasks--;
}

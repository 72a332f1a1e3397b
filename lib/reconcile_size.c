/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reconciler: a role gets larger or smaller (reconcile_private.h). */
#include <limits.h>
#include <stdlib.h>

#include "lib/reconcile_private.h"

void size_count(struct reconcile *r)
{
    for (int role = 0; role < r->roles->count; role++)
        r->role[role].size = r->role[role].ready = r->role[role].unplaced = r->role[role].assured =
            0;
    FOR_ENTRIES (r, e) {
        struct role_state *state = &r->role[e->replica.role];

        if (!entry_stays(e))
            continue;
        state->size++;
        state->ready += e->replica.state == REPLICA_READY;
        /* One that is to be started again soon gets the slots back that it had. */
        state->unplaced += e->replica.state == REPLICA_WANTED && e->spent == NULL &&
                           e->replica.pause <= r->now;
        state->assured += e->replica.state == REPLICA_WANTED
                              ? e->spent != NULL || e->replica.pause > r->now
                              : entry_is_safe(r, e);
    }
}

int size_guaranteed(const struct reconcile *r, int role)
{
    const struct role *of = &r->roles->list[role];
    int target = r->role[role].target;

    return of->min < target ? of->min : target;
}

int size_missing(const struct reconcile *r, int role)
{
    const struct role_state *state = &r->role[role];
    int missing = state->target - state->size + state->unplaced;

    return missing > 0 ? missing : 0;
}

#define NOT_READY 3 /* worth of replicas that are not ready, or less */

/* What goes first: 0 first of all. */
static int worth(const struct reconcile *r, const struct entry *e)
{
    switch (e->replica.state) {
    case REPLICA_WANTED:
        return e->spent != NULL ? 0 : 1;
    case REPLICA_FAILED:
    case REPLICA_PLACED:
        return 2;
    case REPLICA_STARTING:
        return 3;
    default:
        return entry_is_safe(r, e) ? 5 : 4;
    }
}

static void remove_one(struct reconcile *r, struct entry *e)
{
    e->replica.leaves = true;
    entry_drain(r, e, role_of(r, e)->drain.within, "its role is to be smaller");
}

static bool is_in(const struct reconcile *r, const struct entry *e, uint32_t job)
{
    int tasks = role_of(r, e)->gang.tasks;

    for (int i = 0; i < tasks; i++) {
        const struct node *node = node_find(r, e->replica.tasks[i].node);

        if (node != NULL && node->job == job)
            return true;
    }
    return false;
}

/* Replicas of that role in the extension `job`; INT_MAX if there are others, too. */
static int replicas_in(const struct reconcile *r, int role, uint32_t job)
{
    int count = 0;

    FOR_ENTRIES (r, e)
        if (entry_stays(e) && is_in(r, e, job)) {
            if (e->replica.role != role)
                return INT_MAX;
            count++;
        }
    return count;
}

/* The extension with the most replicas that are not too many to go, so that its nodes go back.
 * Removes them, and returns how many there were. */
static int empty_an_extension(struct reconcile *r, int role, int excess)
{
    uint32_t job = 0;
    int most = 0;

    for (int i = 0; i < r->request_count; i++) {
        int count = r->requests[i].role == role && r->requests[i].nodes > 0
                        ? replicas_in(r, role, r->requests[i].job)
                        : 0;

        if (count <= excess && count >= most && count > 0) {
            most = count;
            job = r->requests[i].job;
        }
    }
    for (int i = r->entry_count - 1; most > 0 && i >= 0; i--)
        if (entry_stays(r->entries[i]) && is_in(r, r->entries[i], job))
            remove_one(r, r->entries[i]);
    return most;
}

struct candidate {
    struct entry *entry;
    int worth, index;
};

/* What goes first of a role. */
static int compare(const void *a, const void *b)
{
    const struct candidate *one = a, *other = b;

    if (one->worth != other->worth)
        return one->worth - other->worth;
    return other->index - one->index;
}

/* Those of the candidates that are of that worth, or less, until there are no more to go. */
static int remove_up_to(struct reconcile *r, struct candidate *list, int count, int worth_most,
                        int excess)
{
    for (int i = 0; i < count && excess > 0 && list[i].worth <= worth_most; i++)
        if (list[i].entry != NULL) {
            remove_one(r, list[i].entry);
            list[i].entry = NULL;
            excess--;
        }
    return excess;
}

/* Not ready ones first, then whole extensions, then the highest index; those on nodes that nobody
 * preempts last. */
static void shrink(struct reconcile *r, int role, int excess)
{
    struct candidate *list = calloc((size_t)r->role[role].size, sizeof(*list));
    int count = 0, emptied;

    if (list == NULL) {
        r->no_memory = true;
        return;
    }
    FOR_ENTRIES (r, e)
        if (e->replica.role == role && entry_stays(e))
            list[count++] = (struct candidate){e, worth(r, e), e->replica.index};
    qsort(list, (size_t)count, sizeof(*list), compare);
    excess = remove_up_to(r, list, count, NOT_READY, excess);
    while (excess > 0 && (emptied = empty_an_extension(r, role, excess)) > 0)
        excess -= emptied;
    for (int i = 0; i < count; i++)
        if (list[i].entry != NULL && list[i].worth > NOT_READY && !entry_stays(list[i].entry))
            list[i].entry = NULL; /* went with its extension */
    remove_up_to(r, list, count, INT_MAX, excess);
    free(list);
}

void size_all(struct reconcile *r)
{
    size_count(r);
    for (int role = 0; role < r->roles->count; role++) {
        const struct role *of = &r->roles->list[role];
        struct role_state *state = &r->role[role];
        int size = state->size, wanted;

        if (of->kind == ROLE_WORLD)
            continue;
        wanted = of->asks ? state->target : size_guaranteed(r, role);
        if (size > state->target)
            shrink(r, role, size - state->target);
        for (; size < wanted && !r->stopping && !r->no_memory; size++)
            entry_add(r, role);
    }
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reconciler: a role gets larger or smaller (reconcile_private.h). */
#include <limits.h>
#include <stdlib.h>

#include "lib/reconcile_private.h"

void size_count(struct reconcile *r)
{
    for (int role = 0; role < r->roles->count; role++) {
        struct role_state *state = &r->role[role];

        state->size = state->ready = state->assured = 0;
        for (int i = 0; i < state->form_count; i++)
            state->forms[i].size = state->forms[i].unplaced = 0;
    }
    FOR_ENTRIES (r, e) {
        struct role_state *state = &r->role[e->replica.role];
        struct form *form = &state->forms[e->replica.form];

        if (!entry_stays(e))
            continue;
        state->size++;
        form->size++;
        state->ready += e->replica.state == REPLICA_READY;
        /* One that is to be started again soon gets the slots back that it had. */
        form->unplaced += entry_waits(r, e);
        if (e->replica.form > 0)
            continue;
        state->assured += e->replica.state == REPLICA_WANTED
                              ? e->spent != NULL || e->replica.pause > r->now
                              : entry_is_safe(r, e);
    }
}

int size_guaranteed(const struct reconcile *r, int role)
{
    const struct role *of = &r->roles->list[role];
    int wanted = size_wanted(r, role, 0);

    return of->min < wanted ? of->min : wanted;
}

int size_wanted(const struct reconcile *r, int role, int form)
{
    const struct role_state *state = &r->role[role];
    int wanted = state->target;

    if (form > 0)
        return state->forms[form].count;
    for (int i = 1; i < state->form_count; i++)
        wanted -= state->forms[i].count;
    return wanted > 0 ? wanted : 0;
}

int size_missing(const struct reconcile *r, int role, int form)
{
    const struct form *of = &r->role[role].forms[form];
    int missing = size_wanted(r, role, form) - of->size + of->unplaced;

    return missing > 0 ? missing : 0;
}

void size_less(struct reconcile *r, const struct entry *e)
{
    struct role_state *state = &r->role[e->replica.role];
    int *count = &state->forms[e->replica.form].count;

    if (state->target > 0)
        state->target--;
    if (e->replica.form > 0 && *count > 0)
        --*count;
}

static int least(int a, int b)
{
    return a < b ? a : b;
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

/* Which replicas of a role are to be fewer. */
struct which {
    int role;
    int form; /* or ALL_FORMS, PLAIN_FORMS: then fewer of what has gone should be there */
};

#define ALL_FORMS   (-1)
#define PLAIN_FORMS (-2) /* those that nobody owns */

static bool is_of(const struct which *which, const struct entry *e)
{
    return e->replica.role == which->role && entry_stays(e) &&
           (which->form == ALL_FORMS || e->replica.form == which->form ||
            (which->form == PLAIN_FORMS && !e->replica.gang->owned));
}

static void remove_one(struct reconcile *r, const struct which *which, struct entry *e)
{
    int *count = &r->role[which->role].forms[e->replica.form].count;

    if (which->form < 0 && e->replica.form > 0 && *count > 0)
        --*count;
    e->replica.leaves = true;
    entry_drain(r, e, role_of(r, e)->drain.within, "its role is to be smaller");
}

static bool is_in(const struct reconcile *r, const struct entry *e, uint32_t job)
{
    int tasks = e->replica.gang->tasks;

    for (int i = 0; i < tasks; i++) {
        const struct node *node = node_find(r, e->replica.tasks[i].node);

        if (node != NULL && node->job == job)
            return true;
    }
    return false;
}

/* Such replicas in the extension `job`; INT_MAX if there are others, too. */
static int replicas_in(const struct reconcile *r, const struct which *which, uint32_t job)
{
    int count = 0;

    FOR_ENTRIES (r, e)
        if (entry_stays(e) && is_in(r, e, job)) {
            if (!is_of(which, e))
                return INT_MAX;
            count++;
        }
    return count;
}

/* The extension with the most replicas that are not too many to go, so that its nodes go back.
 * Removes them, and returns how many there were. */
static int empty_an_extension(struct reconcile *r, const struct which *which, int excess)
{
    uint32_t job = 0;
    int most = 0;

    for (int i = 0; i < r->request_count; i++) {
        int count = r->requests[i].role == which->role && r->requests[i].nodes > 0
                        ? replicas_in(r, which, r->requests[i].job)
                        : 0;

        if (count <= excess && count >= most && count > 0) {
            most = count;
            job = r->requests[i].job;
        }
    }
    for (int i = r->entry_count - 1; most > 0 && i >= 0; i--)
        if (entry_stays(r->entries[i]) && is_in(r, r->entries[i], job))
            remove_one(r, which, r->entries[i]);
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
static int remove_up_to(struct reconcile *r, const struct which *which, struct candidate *list,
                        int count, int worth_most, int excess)
{
    for (int i = 0; i < count && excess > 0 && list[i].worth <= worth_most; i++)
        if (list[i].entry != NULL) {
            remove_one(r, which, list[i].entry);
            list[i].entry = NULL;
            excess--;
        }
    return excess;
}

/* Not ready ones first, then whole extensions, then the highest index; those on nodes that nobody
 * preempts last. */
static void shrink(struct reconcile *r, const struct which *which, int excess)
{
    struct candidate *list = calloc((size_t)r->role[which->role].size, sizeof(*list));
    int count = 0, emptied;

    if (list == NULL) {
        r->no_memory = true;
        return;
    }
    FOR_ENTRIES (r, e)
        if (is_of(which, e))
            list[count++] = (struct candidate){e, worth(r, e), e->replica.index};
    qsort(list, (size_t)count, sizeof(*list), compare);
    excess = remove_up_to(r, which, list, count, NOT_READY, excess);
    while (excess > 0 && (emptied = empty_an_extension(r, which, excess)) > 0)
        excess -= emptied;
    for (int i = 0; i < count; i++)
        if (list[i].entry != NULL && list[i].worth > NOT_READY && !entry_stays(list[i].entry))
            list[i].entry = NULL; /* went with its extension */
    remove_up_to(r, which, list, count, INT_MAX, excess);
    free(list);
    size_count(r);
}

/* What a takeover has brought, and was not asked for, goes first. Then a smaller role loses
 * replicas of whatever form, but those that are owned last. */
static void shrink_role(struct reconcile *r, int role)
{
    struct role_state *state = &r->role[role];
    int rest, plain = 0;

    for (int form = 1; form < state->form_count; form++)
        if (state->forms[form].size > state->forms[form].count)
            shrink(r, &(struct which){role, form},
                   state->forms[form].size - state->forms[form].count);
    for (int form = 0; form < state->form_count; form++)
        plain += state->forms[form].gang.owned ? 0 : state->forms[form].size;
    if (state->size > state->target && plain > 0)
        shrink(r, &(struct which){role, PLAIN_FORMS}, least(state->size - state->target, plain));
    if (state->size > state->target)
        shrink(r, &(struct which){role, ALL_FORMS}, state->size - state->target);
    rest = state->target;
    for (int form = 1; form < state->form_count; form++) {
        if (state->forms[form].count > rest)
            state->forms[form].count = rest;
        rest -= state->forms[form].count;
    }
    if (state->forms[0].size > rest)
        shrink(r, &(struct which){role, 0}, state->forms[0].size - rest);
}

/* After a takeover pairs may still come back. */
static bool may_grow(const struct reconcile *r, const struct form *form)
{
    return !r->stopping && !r->no_memory && (r->base_done || !form->gang.owned);
}

static void grow_role(struct reconcile *r, int role)
{
    bool asks = r->roles->list[role].asks;

    for (int form = 0; form < r->role[role].form_count; form++) {
        int wanted = asks || form > 0 ? size_wanted(r, role, form) : size_guaranteed(r, role);

        for (int size = r->role[role].forms[form].size;
             size < wanted && may_grow(r, &r->role[role].forms[form]); size++)
            entry_add(r, role, form);
    }
}

void size_all(struct reconcile *r)
{
    size_count(r);
    for (int role = 0; role < r->roles->count; role++)
        if (r->roles->list[role].kind != ROLE_WORLD && !pair_is_owner(r, role) &&
            !r->role[role].closed) {
            shrink_role(r, role);
            grow_role(r, role);
        }
    pair_settle(r);
}

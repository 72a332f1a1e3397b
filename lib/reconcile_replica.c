/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reconciler: one replica from state to state (reconcile_private.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/reconcile_private.h"

static int position(const struct reconcile *r, int id)
{
    int low = 0, high = r->entry_count;

    while (low < high) {
        int middle = low + (high - low) / 2;

        if (r->entries[middle]->replica.id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct entry *entry_find(const struct reconcile *r, int id)
{
    int at = position(r, id);

    return at < r->entry_count && r->entries[at]->replica.id == id ? r->entries[at] : NULL;
}

/* The lowest index that no replica of the role has; it is taken. -1: out of memory. */
static int take_index(struct reconcile *r, int role)
{
    struct role_state *state = &r->role[role];
    int index = state->lowest;

    while (index < state->taken_count && state->taken[index])
        index++;
    if (index == state->taken_count) {
        if (!reconcile_grow(r, (void **)&state->taken, index, &state->taken_room,
                            sizeof(*state->taken)))
            return -1;
        state->taken_count++;
    }
    state->taken[index] = true;
    state->lowest = index + 1;
    return index;
}

static void give_index(struct reconcile *r, int role, int index)
{
    struct role_state *state = &r->role[role];

    state->taken[index] = false;
    if (index < state->lowest)
        state->lowest = index;
}

/* A replica of that index, WANTED, with a new id. NULL: out of memory. */
static struct entry *add_entry(struct reconcile *r, int role, int form, int index)
{
    const struct slots_gang *gang = &r->role[role].forms[form].gang;
    const struct role *of = &r->roles->list[role];
    struct entry *e = index >= 0 ? calloc(1, sizeof(*e)) : NULL;

    if (e != NULL)
        e->replica.tasks = calloc((size_t)gang->tasks, sizeof(*e->replica.tasks));
    if (e == NULL || e->replica.tasks == NULL ||
        !reconcile_grow(r, (void **)&r->entries, r->entry_count, &r->entry_room,
                        sizeof(*r->entries))) {
        r->no_memory = true;
        if (e != NULL)
            free(e->replica.tasks);
        free(e);
        return NULL;
    }
    e->replica.id = ++r->last_id;
    e->replica.role = role;
    e->replica.index = index;
    e->replica.form = form;
    e->replica.gang = gang;
    e->owner = -1;
    e->retry.first = of->restart.first_pause;
    e->retry.max = of->restart.max_pause;
    r->entries[r->entry_count++] = e;
    entry_set(r, e, REPLICA_WANTED, 0, "");
    return e;
}

struct entry *entry_add(struct reconcile *r, int role, int form)
{
    return add_entry(r, role, form, take_index(r, role));
}

/* The index is free, or becomes so: who only waits has another one. False: it is not. */
static bool take_this_index(struct reconcile *r, int role, int index)
{
    struct role_state *state = &r->role[role];

    FOR_ENTRIES (r, e)
        if (e->replica.role == role && e->replica.index == index) {
            if (e->replica.state != REPLICA_WANTED)
                return false;
            entry_forget(r, e);
            break;
        }
    for (; state->taken_count <= index; state->taken_count++) {
        if (!reconcile_grow(r, (void **)&state->taken, state->taken_count, &state->taken_room,
                            sizeof(*state->taken)))
            return false;
        state->taken[state->taken_count] = false;
    }
    state->taken[index] = true;
    return true;
}

/* In the order of the ids; the newest one has been added last. */
static void put_in_order(struct reconcile *r, int id)
{
    struct entry *e = r->entries[r->entry_count - 1];
    int at;

    r->entry_count--;
    at = position(r, id);
    memmove(&r->entries[at + 1], &r->entries[at],
            (size_t)(r->entry_count - at) * sizeof(*r->entries));
    r->entries[at] = e;
    r->entry_count++;
}

struct entry *entry_adopt(struct reconcile *r, const struct reconcile_fact *fact)
{
    const struct role *of = &r->roles->list[fact->role];
    struct node *node = node_find(r, fact->node);
    struct entry *e;
    int form;

    if (node == NULL || entry_find(r, fact->replica) != NULL ||
        (form = form_find(r, fact->role, fact->gang)) < 0 ||
        !take_this_index(r, fact->role, fact->index) ||
        (e = add_entry(r, fact->role, form, fact->index)) == NULL)
        return NULL;
    e->replica.id = fact->replica;
    put_in_order(r, fact->replica);
    e->replica.start = fact->start;
    e->owner = fact->owner;
    for (int i = 0; i < e->replica.gang->tasks; i++) {
        e->replica.tasks[i] = (struct replica_task){.node = node->id, .state = REPLICA_TASK_ASKED};
        node_take(r, e, i);
    }
    entry_set(r, e, REPLICA_STARTING, of->ready.within, "");
    return e;
}

bool entry_waits(const struct reconcile *r, const struct entry *e)
{
    return e->replica.state == REPLICA_WANTED && entry_stays(e) && e->spent == NULL &&
           e->replica.pause <= r->now && pair_may_be_placed(r, e);
}

bool entry_stays(const struct entry *e)
{
    return !e->replica.leaves;
}

bool entry_is_safe(const struct reconcile *r, const struct entry *e)
{
    int tasks = e->replica.gang->tasks;

    for (int i = 0; i < tasks; i++) {
        const struct node *node = node_find(r, e->replica.tasks[i].node);

        if (node == NULL || !node->safe)
            return false;
    }
    return true;
}

void entry_set(struct reconcile *r, struct entry *e, enum replica_state state, double seconds,
               const char *reason)
{
    struct replica *replica = &e->replica;
    bool offered = replica->state == REPLICA_READY;

    r->changes++;
    if (offered && state != REPLICA_READY && r->now - replica->since >= RECONCILE_STABLE)
        retry_reset(&e->retry);
    replica->state = state;
    replica->since = r->now;
    replica->until = seconds > 0 ? r->now + seconds : 0;
    replica->killed = false;
    snprintf(replica->reason, sizeof(replica->reason), "%s", reason != NULL ? reason : "");
    if (offered != (state == REPLICA_READY))
        r->endpoints = true;
}

void entry_forget(struct reconcile *r, struct entry *e)
{
    int at = position(r, e->replica.id);

    r->changes++;
    give_index(r, e->replica.role, e->replica.index);
    memmove(&r->entries[at], &r->entries[at + 1],
            (size_t)(r->entry_count - at - 1) * sizeof(*r->entries));
    r->entry_count--;
    free(e->replica.tasks);
    free(e);
}

static bool has_slot(const struct replica_task *task)
{
    return task->node != 0 && task->state != REPLICA_TASK_ENDED;
}

static void clear_tasks(struct reconcile *r, struct entry *e)
{
    int tasks = e->replica.gang->tasks;

    for (int i = 0; i < tasks; i++) {
        if (has_slot(&e->replica.tasks[i]))
            node_give(r, e, i);
        e->replica.tasks[i] = (struct replica_task){0};
    }
}

static struct reconcile_action *act_on(struct reconcile *r, enum reconcile_action_kind kind,
                                       const struct entry *e, int task)
{
    struct reconcile_action *a = reconcile_act(r, kind);

    if (a == NULL)
        return NULL;
    a->role = e->replica.role;
    a->replica = e->replica.id;
    a->start = e->replica.start;
    a->task = task;
    a->node = e->replica.tasks[task].node;
    return a;
}

void entry_start(struct reconcile *r, struct entry *e)
{
    const struct role *role = role_of(r, e);
    const struct entry *owner = pair_of(r, e);

    e->replica.start = ++r->starts;
    e->replica.failed = false;
    e->owner = owner != NULL ? owner->replica.index : -1;
    e->status = 0;
    entry_set(r, e, REPLICA_STARTING, role->ready.within, "");
    for (int i = 0; i < e->replica.gang->tasks; i++) {
        e->replica.tasks[i].state = REPLICA_TASK_ASKED;
        act_on(r, RECONCILE_START, e, i);
    }
}

/* Tasks that are left are told to end. seconds 0: SIGKILL. */
static void end_tasks(struct reconcile *r, struct entry *e, double seconds)
{
    int tasks = e->replica.gang->tasks;

    for (int i = 0; i < tasks; i++) {
        struct reconcile_action *a;

        if (!has_slot(&e->replica.tasks[i]))
            continue;
        a = act_on(r, seconds > 0 ? RECONCILE_DRAIN : RECONCILE_KILL, e, i);
        if (a != NULL)
            a->seconds = seconds;
    }
}

static bool has_ended(const struct reconcile *r, const struct entry *e)
{
    int tasks = e->replica.gang->tasks;

    for (int i = 0; i < tasks; i++)
        if (has_slot(&e->replica.tasks[i]))
            return false;
    return true;
}

/* Its tasks have ended, as they were to: it is gone, or starts anew. */
static void drained(struct reconcile *r, struct entry *e)
{
    clear_tasks(r, e);
    if (e->replica.leaves || r->stopping) {
        entry_forget(r, e);
        return;
    }
    e->replica.again = false;
    entry_set(r, e, REPLICA_WANTED, 0, "it starts anew");
}

/* Its tasks have ended after a failure. */
static void failed(struct reconcile *r, struct entry *e)
{
    struct role_state *state = &r->role[e->replica.role];
    char reason[sizeof(e->replica.reason)];
    bool final = false;
    int tasks = e->replica.gang->tasks;

    if (e->replica.leaves || r->stopping) {
        drained(r, e);
        return;
    }
    for (int i = 0; i < tasks; i++)
        final = final || recovery_is_final(e->replica.tasks[i].status);
    clear_tasks(r, e);
    memcpy(reason, e->replica.reason, sizeof(reason));
    entry_set(r, e, REPLICA_WANTED, 0, reason);
    if (!e->counts)
        return;
    if (final || !recovery_count(state->recovery, r->now)) {
        e->spent = final ? "which is final" : "and no restart is left";
        e->replica.spent = true;
        reconcile_say(r, e->replica.role, "%s is not started again: %s, %s", entry_name(r, e).text,
                      reason, e->spent);
        return;
    }
    retry_failed(&e->retry, r->now);
    e->replica.pause = e->retry.after;
}

/* All its tasks have ended with 0. */
static void finished(struct reconcile *r, struct entry *e)
{
    struct role_state *state = &r->role[e->replica.role];

    state->finished++;
    if (pair_is_owner(r, e->replica.role) && !e->replica.leaves)
        pair_leave(r, e, "its aggregator has finished");
    else if (!e->replica.leaves)
        size_less(r, e);
    e->replica.leaves = true;
    entry_set(r, e, REPLICA_DRAINING, 0, "finished");
    drained(r, e);
}

/* The job ends as the leading replica has ended. */
static void leader_ended(struct reconcile *r, struct entry *e)
{
    int status = e->status;
    char why[160];

    snprintf(why, sizeof(why), "%s has ended with %d", entry_name(r, e).text, status);
    e->replica.leaves = true;
    entry_set(r, e, REPLICA_DRAINING, 0, why);
    drained(r, e);
    reconcile_stop(r, status, why);
}

static void settle(struct reconcile *r, struct entry *e)
{
    bool lost = false;
    int tasks = e->replica.gang->tasks;

    if (!has_ended(r, e))
        return;
    for (int i = 0; i < tasks; i++)
        lost = lost || e->replica.tasks[i].status < 0;
    if (role_of(r, e)->leads && !lost && !r->stopping &&
        !(e->replica.state == REPLICA_DRAINING && e->replica.again))
        leader_ended(r, e);
    else if (e->replica.state == REPLICA_DRAINING)
        drained(r, e);
    else if (e->replica.state == REPLICA_FAILED)
        failed(r, e);
    else
        finished(r, e);
}

void entry_drain(struct reconcile *r, struct entry *e, double seconds, const char *why)
{
    double until = r->now + seconds;

    switch (e->replica.state) {
    case REPLICA_WANTED:
    case REPLICA_PLACED:
        drained(r, e);
        return;
    case REPLICA_FAILED:
        return;
    case REPLICA_DRAINING:
        if (e->replica.killed || e->replica.until <= until)
            return;
        break;
    default:
        break;
    }
    entry_set(r, e, REPLICA_DRAINING, seconds, why);
    end_tasks(r, e, seconds);
}

void entry_fail(struct reconcile *r, struct entry *e, bool counts, const char *why)
{
    if (e->replica.state == REPLICA_FAILED || e->replica.state == REPLICA_DRAINING)
        return;
    e->counts = counts;
    e->replica.failed = counts;
    entry_set(r, e, REPLICA_FAILED, RECONCILE_KILL_LIMIT, why);
    e->replica.killed = true;
    end_tasks(r, e, 0);
    settle(r, e);
}

void entry_is_not_ready(struct reconcile *r, struct entry *e, const char *why)
{
    reconcile_say(r, e->replica.role, "%s: %s", entry_name(r, e).text,
                  why != NULL ? why : "not ready");
    entry_fail(r, e, true, why);
}

void entry_task_runs(struct reconcile *r, struct entry *e, int task)
{
    if (e->replica.tasks[task].state != REPLICA_TASK_ASKED)
        return;
    e->replica.tasks[task].state = REPLICA_TASK_RUNNING;
    if (role_of(r, e)->ready.how == ROLE_PROBE_NONE)
        entry_task_ready(r, e, task);
}

void entry_task_ready(struct reconcile *r, struct entry *e, int task)
{
    int tasks = e->replica.gang->tasks;
    enum replica_task_state *state = &e->replica.tasks[task].state;

    if (*state != REPLICA_TASK_ASKED && *state != REPLICA_TASK_RUNNING)
        return;
    *state = REPLICA_TASK_READY;
    for (int i = 0; i < tasks; i++)
        if (e->replica.tasks[i].state != REPLICA_TASK_READY)
            return;
    if (e->replica.state == REPLICA_STARTING)
        entry_set(r, e, REPLICA_READY, 0, "");
}

void entry_task_ended(struct reconcile *r, struct entry *e, int task, int status, const char *why)
{
    struct replica_task *t = &e->replica.tasks[task];

    if (!has_slot(t))
        return;
    node_give(r, e, task);
    t->state = REPLICA_TASK_ENDED;
    t->status = status;
    if (e->status == 0)
        e->status = status;
    if (e->replica.state == REPLICA_PLACED) {
        clear_tasks(r, e);
        entry_set(r, e, REPLICA_WANTED, 0, why);
    } else if (status != 0 && e->replica.state != REPLICA_DRAINING &&
               e->replica.state != REPLICA_FAILED) {
        entry_fail(r, e, status > 0, why);
    } else {
        settle(r, e);
    }
}

/* Nobody has said that these tasks have ended, though they were killed. */
static void give_up(struct reconcile *r, struct entry *e)
{
    int tasks = e->replica.gang->tasks, id = e->replica.id;

    reconcile_say(r, e->replica.role, "nothing is heard of %s, which was to be killed",
                  entry_name(r, e).text);
    for (int i = 0; i < tasks && entry_find(r, id) == e; i++)
        entry_task_ended(r, e, i, -1, "nothing is heard of it");
}

void entry_late(struct reconcile *r, struct entry *e)
{
    char why[80];

    switch (e->replica.state) {
    case REPLICA_STARTING:
        snprintf(why, sizeof(why), "not ready within %g s", role_of(r, e)->ready.within);
        entry_is_not_ready(r, e, why);
        return;
    case REPLICA_DRAINING:
    case REPLICA_FAILED:
        if (e->replica.killed) {
            give_up(r, e);
            return;
        }
        e->replica.killed = true;
        e->replica.until = r->now + RECONCILE_KILL_LIMIT;
        end_tasks(r, e, 0);
        return;
    default:
        e->replica.until = 0;
    }
}

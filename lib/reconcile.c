/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reconciler: facts, the order of a run, the end of the job (reconcile.h). */
#include "lib/reconcile.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/reconcile_private.h"

#define ACTIONS_FIRST 16

bool reconcile_grow(struct reconcile *r, void **list, int count, int *room, size_t size)
{
    int next = *room > 0 ? 2 * *room : ACTIONS_FIRST;
    void *larger;

    if (count < *room)
        return true;
    larger = realloc(*list, (size_t)next * size);
    if (larger == NULL) {
        r->no_memory = true;
        return false;
    }
    *list = larger;
    *room = next;
    return true;
}

struct reconcile_action *reconcile_act(struct reconcile *r, enum reconcile_action_kind kind)
{
    struct reconcile_action *a;

    if (!reconcile_grow(r, (void **)&r->out->list, r->out->count, &r->out->room,
                        sizeof(*r->out->list)))
        return NULL;
    a = &r->out->list[r->out->count++];
    *a = (struct reconcile_action){.kind = kind, .role = -1};
    return a;
}

void reconcile_say(struct reconcile *r, int role, const char *fmt, ...)
{
    struct reconcile_action *a = reconcile_act(r, RECONCILE_SAY);
    va_list args;

    if (a == NULL)
        return;
    a->role = role;
    va_start(args, fmt);
    vsnprintf(a->text, sizeof(a->text), fmt, args);
    va_end(args);
}

/* ---- life ------------------------------------------------------------------------------------ */

static bool prepare_role(struct reconcile *r, int index)
{
    const struct role *role = &r->roles->list[index];
    struct role_state *state = &r->role[index];
    struct budget budget = {role->restart.max, (int)role->restart.window};

    state->target = role->asks ? role->min : role->max;
    state->closed = role->kind == ROLE_SHARDS;
    if (role->kind == ROLE_WORLD && role->trains) { /* until a fit needs it */
        state->target = 0;
        state->over = true;
    }
    if (!form_begin(r, index))
        return false;
    state->recovery = recovery_create(&budget, 0);
    return state->recovery != NULL;
}

struct reconcile *reconcile_create(const struct reconcile_options *options)
{
    const struct roles *roles = options->roles;
    struct reconcile *r = calloc(1, sizeof(*r));
    bool made = r != NULL;

    if (!made)
        return NULL;
    r->options = *options;
    r->roles = roles;
    r->world = roles_world(roles);
    r->placed = options->first_start > 0;
    r->starts = r->last_id = options->first_start;
    r->role = calloc((size_t)roles->count, sizeof(*r->role));
    made = r->role != NULL;
    for (int i = 0; i < roles->count && made; i++)
        made = prepare_role(r, i);
    if (!made) {
        reconcile_destroy(r);
        return NULL;
    }
    return r;
}

void reconcile_destroy(struct reconcile *r)
{
    if (r == NULL)
        return;
    while (r->entry_count > 0)
        entry_forget(r, r->entries[r->entry_count - 1]);
    for (int i = 0; i < r->roles->count && r->role != NULL; i++) {
        recovery_destroy(r->role[i].recovery);
        free(r->role[i].taken);
    }
    free(r->entries);
    free(r->waiting);
    free(r->role);
    free(r->nodes);
    free(r->requests);
    free(r->spots.list);
    free(r->spots.where);
    free(r);
}

/* ---- facts ----------------------------------------------------------------------------------- */

/* The replica and task that the fact is about, if it is about the present start. */
static struct entry *subject(const struct reconcile *r, const struct reconcile_fact *fact)
{
    struct entry *e = entry_find(r, fact->replica);

    return e != NULL && e->replica.start == fact->start && fact->task >= 0 &&
                   fact->task < e->replica.gang->tasks
               ? e
               : NULL;
}

static void on_node(struct reconcile *r, const struct reconcile_fact *fact)
{
    node_add(r, fact->joins);
}

static void on_node_goes(struct reconcile *r, const struct reconcile_fact *fact)
{
    struct node *node = node_find(r, fact->node);

    if (node != NULL)
        node_goes(r, node, fact->grace, fact->text);
}

static void on_node_gone(struct reconcile *r, const struct reconcile_fact *fact)
{
    struct node *node = node_find(r, fact->node);

    if (node != NULL)
        node_gone(r, node, fact->text);
}

static void on_base_done(struct reconcile *r, const struct reconcile_fact *fact)
{
    (void)fact;
    r->base_done = true;
}

static void on_running(struct reconcile *r, const struct reconcile_fact *fact)
{
    struct entry *e = subject(r, fact);

    if (e != NULL)
        entry_task_runs(r, e, fact->task);
}

static void on_task_ready(struct reconcile *r, const struct reconcile_fact *fact)
{
    struct entry *e = subject(r, fact);

    if (e != NULL)
        entry_task_ready(r, e, fact->task);
}

static void on_unready(struct reconcile *r, const struct reconcile_fact *fact)
{
    struct entry *e = subject(r, fact);

    if (e != NULL && e->replica.state == REPLICA_READY)
        entry_is_not_ready(r, e, fact->text);
}

static void on_exited(struct reconcile *r, const struct reconcile_fact *fact)
{
    struct entry *e = subject(r, fact);

    if (e != NULL)
        entry_task_ended(r, e, fact->task, fact->status, fact->text);
}

static void on_adopt(struct reconcile *r, const struct reconcile_fact *fact)
{
    if (fact->role >= 0 && fact->role < r->roles->count &&
        r->roles->list[fact->role].kind != ROLE_WORLD && fact->index >= 0 &&
        fact->index < ROLES_REPLICAS_MAX && fact->replica > 0 &&
        fact->replica <= r->options.first_start && fact->start > 0 &&
        fact->start <= r->options.first_start && !r->stopping)
        entry_adopt(r, fact);
}

static bool is_sizable(const struct reconcile *r, int role)
{
    return role >= 0 && role < r->roles->count && r->roles->list[role].kind != ROLE_WORLD &&
           !r->stopping;
}

/* A fit needs the world, or does not any more. It trains once for each time. */
static void scale_world(struct reconcile *r, int count)
{
    struct role_state *state = &r->role[r->world];

    if (!r->roles->list[r->world].trains || r->stopping || count < 0 || count > 1 ||
        count == state->target)
        return;
    state->target = count;
    r->changes++;
    if (count == 1) {
        state->over = state->well = state->ended = false;
    } else if (state->over) {
        state->ended = false;
    }
}

static void on_scale(struct reconcile *r, const struct reconcile_fact *fact)
{
    struct role_state *state;
    int form;

    if (r->world >= 0 && fact->role == r->world) {
        scale_world(r, fact->count);
        return;
    }
    if (!is_sizable(r, fact->role) || pair_is_owner(r, fact->role) || fact->count < 0 ||
        (form = form_find(r, fact->role, fact->gang)) < 0)
        return;
    state = &r->role[fact->role];
    if (form > 0 && fact->count > state->target)
        state->forms[form].count += fact->count - state->target;
    state->target = fact->count;
    for (form = 0; form < state->form_count; form++)
        state->forms[form].fewer = 0;
}

static void on_remove(struct reconcile *r, const struct reconcile_fact *fact)
{
    struct entry *e = entry_find(r, fact->replica);

    if (e == NULL || !entry_stays(e) || r->stopping)
        return;
    if (pair_is_owner(r, e->replica.role)) {
        pair_leave(r, e, fact->text);
        return;
    }
    size_less(r, e);
    e->replica.leaves = true;
    entry_drain(r, e, role_of(r, e)->drain.within, fact->text);
}

static void on_fail(struct reconcile *r, const struct reconcile_fact *fact)
{
    struct entry *e = entry_find(r, fact->replica);

    if (e == NULL || !entry_stays(e) || r->stopping ||
        (e->replica.state != REPLICA_STARTING && e->replica.state != REPLICA_READY))
        return;
    e->replica.again = true;
    entry_drain(r, e, role_of(r, e)->drain.within, fact->text);
}

static void on_stop(struct reconcile *r, const struct reconcile_fact *fact)
{
    reconcile_stop(r, fact->status, fact->text);
}

static void on_world(struct reconcile *r, const struct reconcile_fact *fact)
{
    if (r->world >= 0)
        r->role[r->world].running = fact->count > 0;
}

static void on_world_over(struct reconcile *r, const struct reconcile_fact *fact)
{
    struct role_state *state = r->world >= 0 ? &r->role[r->world] : NULL;
    char why[80];

    if (state == NULL || state->over)
        return;
    state->over = true;
    state->running = false;
    state->well = fact->status == 0;
    /* It has not been told to, so that it is the training that has ended. */
    state->ended = !r->stopping && (!r->roles->list[r->world].trains || state->target > 0);
    state->status = fact->status;
    for (int i = 0; i < r->node_count; i++)
        world_leave(&r->nodes[i]);
    r->changes++;
    if (r->stopping) /* it has been told to */
        snprintf(why, sizeof(why), "%s has ended", r->roles->list[r->world].name);
    else
        snprintf(why, sizeof(why), "%s has ended with %d", r->roles->list[r->world].name,
                 fact->status);
    if (r->roles->list[r->world].leads)
        reconcile_stop(r, fact->status, why);
    else
        reconcile_say(r, r->world, "%s", why);
}

static void on_requested(struct reconcile *r, const struct reconcile_fact *fact)
{
    struct request *request = request_asked(r, fact->role, fact->form);

    if (request == NULL && request_find(r, fact->job) == NULL && is_sizable(r, fact->role))
        request = request_add(r, fact->role, 0, 1);
    if (request == NULL)
        return;
    request->job = fact->job;
    request->state = REQUEST_PENDING;
    request->since = r->now;
}

static void on_granted(struct reconcile *r, const struct reconcile_fact *fact)
{
    struct request *request = request_find(r, fact->job);
    struct form *form;

    if (request == NULL || request->state == REQUEST_RETURNED)
        return;
    form = &r->role[request->role].forms[request->form];
    request->expected = fact->count > 0 ? fact->count : 1;
    if (request->state == REQUEST_GRANTED)
        return;
    /* There may be room for more. */
    if (r->now - request->since < RECONCILE_STALE && form->fewer < ROLES_REPLICAS_MAX)
        form->fewer *= 2;
    request->state = REQUEST_GRANTED;
    request->since = r->now;
    form->refusal[0] = '\0';
}

static void on_refused(struct reconcile *r, const struct reconcile_fact *fact)
{
    struct request *request = request_asked(r, fact->role, fact->form);

    if (request != NULL && request_halve(r, request)) {
        r->role[fact->role].forms[fact->form].too_many = request->replicas;
        r->role[fact->role].forms[fact->form].refused = r->now;
        request_drop(r, request);
    } else if (request != NULL) {
        r->role[fact->role].forms[fact->form].too_many = 0; /* the number is not what is wrong */
        request_refused(r, request, fact->text);
    }
}

static void on_passed(struct reconcile *r, const struct reconcile_fact *fact)
{
    struct request *request = request_find(r, fact->job);

    if (request != NULL && request->state == REQUEST_PENDING)
        request_drop(r, request);
}

static void on_denied(struct reconcile *r, const struct reconcile_fact *fact)
{
    struct request *request = request_find(r, fact->job);

    if (request == NULL)
        return;
    if (request->state == REQUEST_PENDING ||
        (request->state == REQUEST_GRANTED && request->nodes == 0 && !request->used))
        request_refused(r, request, fact->text);
    else
        request_drop(r, request);
}

static void on_open(struct reconcile *r, const struct reconcile_fact *fact)
{
    if (fact->role >= 0 && fact->role < r->roles->count)
        r->role[fact->role].closed = false;
}

static void (*const on_fact[RECONCILE_FACT_COUNT])(struct reconcile *r,
                                                   const struct reconcile_fact *fact) = {
    [RECONCILE_NODE] = on_node,           [RECONCILE_NODE_GOES] = on_node_goes,
    [RECONCILE_NODE_GONE] = on_node_gone, [RECONCILE_BASE_DONE] = on_base_done,
    [RECONCILE_RUNNING] = on_running,     [RECONCILE_TASK_READY] = on_task_ready,
    [RECONCILE_UNREADY] = on_unready,     [RECONCILE_EXITED] = on_exited,
    [RECONCILE_SCALE] = on_scale,         [RECONCILE_REMOVE] = on_remove,
    [RECONCILE_FAIL] = on_fail,           [RECONCILE_STOP] = on_stop,
    [RECONCILE_WORLD] = on_world,         [RECONCILE_REQUESTED] = on_requested,
    [RECONCILE_GRANTED] = on_granted,     [RECONCILE_REFUSED] = on_refused,
    [RECONCILE_DENIED] = on_denied,       [RECONCILE_PASSED] = on_passed,
    [RECONCILE_ADOPT] = on_adopt,         [RECONCILE_WORLD_OVER] = on_world_over,
    [RECONCILE_OPEN] = on_open,
};

static void begin(struct reconcile *r, double now, struct reconcile_actions *out)
{
    r->now = now;
    r->out = out;
    r->no_memory = false;
}

static int end(struct reconcile *r)
{
    if (r->endpoints && reconcile_act(r, RECONCILE_ENDPOINTS) != NULL)
        r->endpoints = false;
    r->out = NULL;
    return r->no_memory ? -1 : 0;
}

int reconcile_feed(struct reconcile *r, const struct reconcile_fact *fact,
                   struct reconcile_actions *out)
{
    begin(r, fact->now, out);
    if (!r->finished)
        on_fact[fact->kind](r, fact);
    return end(r);
}

/* ---- a run ----------------------------------------------------------------------------------- */

static void look_at_deadlines(struct reconcile *r)
{
    for (int i = r->entry_count - 1; i >= 0; i--)
        if (r->entries[i]->replica.until > 0 && r->entries[i]->replica.until <= r->now)
            entry_late(r, r->entries[i]);
}

void reconcile_stop(struct reconcile *r, int status, const char *why)
{
    if (r->stopping)
        return;
    r->stopping = true;
    r->status = status;
    reconcile_say(r, -1, "%s", why != NULL ? why : "the job ends");
    for (int i = r->entry_count - 1; i >= 0; i--) {
        struct entry *e = r->entries[i];
        bool runs = e->replica.state == REPLICA_STARTING || e->replica.state == REPLICA_READY;

        e->replica.leaves = true;
        if (!runs || r->roles->clean != ROLES_CLEAN_NONE || role_of(r, e)->leads)
            entry_drain(r, e, role_of(r, e)->drain.within, "the job ends");
    }
}

static void look_at_end(struct reconcile *r)
{
    struct reconcile_action *a;

    if (!r->stopping || r->entry_count > 0 || r->finished ||
        (r->world >= 0 && !r->role[r->world].over))
        return;
    a = reconcile_act(r, RECONCILE_FINISH);
    if (a == NULL)
        return;
    a->status = r->status;
    r->finished = true;
}

/* Who makes way, and who is placed, may decide who else does. */
static void settle_slots(struct reconcile *r)
{
    unsigned changes;

    do {
        changes = r->changes;
        size_all(r);
        place_all(r);
    } while (r->changes != changes && !r->no_memory);
}

int reconcile_run(struct reconcile *r, double now, struct reconcile_actions *out)
{
    begin(r, now, out);
    if (!r->finished) {
        look_at_deadlines(r);
        settle_slots(r);
        ask_all(r);
        look_at_end(r);
    }
    return end(r);
}

double reconcile_deadline(const struct reconcile *r)
{
    double at = r->finished ? 0 : ask_deadline(r);

    FOR_ENTRIES (r, e) {
        at = reconcile_earlier(at, e->replica.until);
        if (e->replica.state == REPLICA_WANTED && e->replica.pause > r->now)
            at = reconcile_earlier(at, e->replica.pause);
    }
    return at;
}

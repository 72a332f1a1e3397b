/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reconciler: what is asked of Slurm, and what goes back (reconcile_private.h). */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "lib/reconcile_private.h"

struct request *request_find(const struct reconcile *r, uint32_t job)
{
    for (int i = 0; i < r->request_count; i++)
        if (r->requests[i].job == job && r->requests[i].state != REQUEST_ASKED)
            return &r->requests[i];
    return NULL;
}

struct request *request_asked(const struct reconcile *r, int role, int form)
{
    for (int i = 0; i < r->request_count; i++)
        if (r->requests[i].role == role && r->requests[i].form == form &&
            r->requests[i].state == REQUEST_ASKED)
            return &r->requests[i];
    return NULL;
}

void request_drop(struct reconcile *r, struct request *request)
{
    size_t rest = (size_t)(&r->requests[r->request_count] - (request + 1));

    memmove(request, request + 1, rest * sizeof(*request));
    r->request_count--;
}

static struct form *form_of(const struct reconcile *r, const struct request *request)
{
    return &r->role[request->role].forms[request->form];
}

void ask_setback(struct reconcile *r, const struct request *request)
{
    struct form *form = form_of(r, request);

    setbacks_add(&form->setbacks, r->now, r->options.grow_delay, form->asked);
}

double ask_not_before(const struct reconcile *r, const struct form *form)
{
    return form->setbacks.last < 0
               ? 0
               : form->setbacks.last + setbacks_pause(&form->setbacks, r->options.grow_delay);
}

void request_refused(struct reconcile *r, struct request *request, const char *why)
{
    struct form *form = form_of(r, request);

    snprintf(form->refusal, sizeof(form->refusal), "%s", why != NULL ? why : "");
    ask_setback(r, request);
    request_drop(r, request);
}

bool request_halve(struct reconcile *r, const struct request *request)
{
    if (request->replicas <= 1)
        return false;
    form_of(r, request)->fewer = (request->replicas + 1) / 2;
    return true;
}

struct request *request_add(struct reconcile *r, int role, int form, int replicas)
{
    struct request *request;

    if (!reconcile_grow(r, (void **)&r->requests, r->request_count, &r->request_room,
                        sizeof(*r->requests)))
        return NULL;
    request = &r->requests[r->request_count++];
    *request = (struct request){.role = role,
                                .form = form,
                                .replicas = replicas,
                                .state = REQUEST_ASKED,
                                .since = r->now,
                                .idle = -1};
    return request;
}

/* ---- what goes back -------------------------------------------------------------------------- */

static bool is_empty(const struct reconcile *r, uint32_t job)
{
    for (int i = 0; i < r->node_count; i++)
        if (r->nodes[i].job == job && r->nodes[i].tasks > 0)
            return false;
    return true;
}

static void give_back(struct reconcile *r, struct request *request)
{
    struct reconcile_action *a = reconcile_act(r, RECONCILE_GIVE_BACK);

    if (a != NULL) {
        a->role = request->role;
        a->job = request->job;
        snprintf(a->text, sizeof(a->text), "%s",
                 request->used ? "no replica needs it" : "no replica fits there");
    }
    if (!request->used)
        ask_setback(r, request);
    request->state = REQUEST_RETURNED;
    for (int i = 0; i < r->node_count; i++)
        if (r->nodes[i].job == request->job)
            r->nodes[i].goes = true;
}

/* Does a replica of the role wait, also for the end of its pause? */
static bool has_waiting(const struct reconcile *r, int role)
{
    FOR_ENTRIES (r, e)
        if (e->replica.role == role && e->replica.state == REPLICA_WANTED && entry_stays(e) &&
            e->spent == NULL)
            return true;
    return false;
}

static bool lacks_any(const struct reconcile *r, int role)
{
    for (int form = 0; form < r->role[role].form_count; form++)
        if (size_missing(r, role, form) > 0)
            return true;
    return has_waiting(r, role);
}

/* Extensions without replicas: at once if no replica of the role could use them, else after a
 * while. */
static void look_at_extension(struct reconcile *r, struct request *request)
{
    bool unneeded = r->stopping || !lacks_any(r, request->role);

    if (request->state != REQUEST_GRANTED)
        return;
    if (!is_empty(r, request->job)) {
        request->idle = -1;
        return;
    }
    if (request->idle < 0)
        request->idle = r->now;
    if (unneeded || (request->nodes > 0 && r->now - request->idle >= RECONCILE_IDLE))
        give_back(r, request);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void withdraw(struct reconcile *r, struct request *request)
{
    struct reconcile_action *a = reconcile_act(r, RECONCILE_WITHDRAW);

    if (a != NULL) {
        a->role = request->role;
        a->job = request->job;
    }
    request->state = REQUEST_WITHDRAWN;
}

/* A request that waits for too long is made again for fewer replicas; one that nobody needs is
 * taken back. */
static void look_at_pending(struct reconcile *r, struct request *request)
{
    if (request->state != REQUEST_PENDING)
        return;
    if (r->stopping || size_missing(r, request->role, request->form) == 0) {
        withdraw(r, request);
    } else if (r->now - request->since >= RECONCILE_STALE && request_halve(r, request)) {
        withdraw(r, request);
    }
}

/* So many of its replicas come with nodes that have not joined, or that have not got any yet: where
 * none fits, another extension would be no better. */
static int still_coming(const struct request *request)
{
    int missing = request->expected - request->nodes;

    if (request_is_open(request) ||
        (request->state == REQUEST_GRANTED && request->nodes > 0 && !request->used))
        return request->replicas;
    return request->state == REQUEST_GRANTED && missing > 0
               ? (request->replicas * missing + request->expected - 1) / request->expected
               : 0;
}

static int coming(const struct reconcile *r, int role, int form)
{
    int count = 0;

    for (int i = 0; i < r->request_count; i++)
        if (r->requests[i].role == role && r->requests[i].form == form)
            count += still_coming(&r->requests[i]);
    return count;
}

/* Does that role have an open request in that form? all: so many requests of all are open. */
static bool has_open(const struct reconcile *r, int role, int form, int *all)
{
    bool open = false;

    *all = 0;
    for (int i = 0; i < r->request_count; i++) {
        *all += request_is_open(&r->requests[i]);
        open = open || (request_is_open(&r->requests[i]) && r->requests[i].role == role &&
                        r->requests[i].form == form);
    }
    return open;
}

static bool has_room_for_nodes(const struct reconcile *r, int open)
{
    return r->roles->max_nodes == 0 || r->node_count + open < r->roles->max_nodes;
}

/* Of the replicas that are missing, are any guaranteed ones, for which there is a pool? */
static bool needs_safe(const struct reconcile *r, int role)
{
    int safe = 0;

    if (r->roles->list[role].base == NULL)
        return false;
    FOR_ENTRIES (r, e)
        safe += e->replica.role == role && e->replica.form == 0 && entry_stays(e) &&
                e->replica.state != REPLICA_WANTED && entry_is_safe(r, e);
    return safe < size_guaranteed(r, role);
}

static void ask(struct reconcile *r, int role, int form, int replicas)
{
    bool safe = form == 0 && needs_safe(r, role);
    struct reconcile_action *a;

    if (safe && replicas > size_guaranteed(r, role))
        replicas = size_guaranteed(r, role);
    if (request_add(r, role, form, replicas) == NULL)
        return;
    r->role[role].forms[form].asked = r->now;
    a = reconcile_act(r, RECONCILE_ASK);
    if (a == NULL)
        return;
    a->role = role;
    a->form = form;
    a->count = replicas;
    a->safe = safe;
}

/* Replicas of one request at most. One that takes several nodes comes and goes alone. */
static int most_at_once(const struct reconcile *r, const struct form *form)
{
    const struct slots_gang *gang = &form->gang;
    int most = form->fewer > 0 ? form->fewer : INT_MAX;

    if (gang->per_node > 0 && gang->tasks > gang->per_node)
        return 1;
    if (form->too_many > 0 && r->now - form->refused < RECONCILE_FORGET && most >= form->too_many)
        most = form->too_many - 1;
    return most;
}

static void ask_for(struct reconcile *r, int role, int form)
{
    const struct form *of = &r->role[role].forms[form];
    int missing = size_missing(r, role, form) - coming(r, role, form), most = most_at_once(r, of),
        open;

    if (missing <= 0 || r->roles->list[role].leads || r->now < ask_not_before(r, of))
        return;
    if (has_open(r, role, form, &open) || open >= r->options.max_pending ||
        !has_room_for_nodes(r, open))
        return;
    ask(r, role, form, missing < most ? missing : most);
}

void ask_all(struct reconcile *r)
{
    size_count(r);
    for (int i = 0; i < r->request_count; i++) {
        look_at_pending(r, &r->requests[i]);
        look_at_extension(r, &r->requests[i]);
    }
    for (int role = 0; role < r->roles->count && r->base_done && !r->stopping; role++)
        for (int form = 0;
             form < r->role[role].form_count && r->roles->list[role].kind != ROLE_WORLD; form++)
            ask_for(r, role, form);
}

double ask_deadline(const struct reconcile *r)
{
    double at = 0;

    for (int i = 0; i < r->request_count; i++) {
        const struct request *request = &r->requests[i];

        if (request->state == REQUEST_PENDING && request->replicas > 1)
            at = reconcile_earlier(at, request->since + RECONCILE_STALE);
        if (request->state == REQUEST_GRANTED && request->nodes > 0 && request->idle >= 0)
            at = reconcile_earlier(at, request->idle + RECONCILE_IDLE);
    }
    for (int role = 0; role < r->roles->count; role++)
        for (int form = 0; form < r->role[role].form_count; form++) {
            double next = ask_not_before(r, &r->role[role].forms[form]);

            if (size_missing(r, role, form) > 0 && next > r->now)
                at = reconcile_earlier(at, next);
        }
    return at;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reconciler: what others read (reconcile.h). */
#include <stdio.h>
#include <string.h>

#include "lib/reconcile_private.h"

int reconcile_count(const struct reconcile *r)
{
    return r->entry_count;
}

const struct replica *reconcile_at(const struct reconcile *r, int i)
{
    return &r->entries[i]->replica;
}

const struct replica *reconcile_find(const struct reconcile *r, int id)
{
    const struct entry *e = entry_find(r, id);

    return e != NULL ? &e->replica : NULL;
}

const struct replica *reconcile_named(const struct reconcile *r, const char *name)
{
    FOR_ENTRIES (r, e)
        if (strcmp(entry_name(r, e).text, name) == 0)
            return &e->replica;
    return NULL;
}

int reconcile_tasks_on(const struct reconcile *r, int node)
{
    const struct node *n = node_find(r, node);

    return n != NULL ? n->tasks : 0;
}

bool reconcile_has_world(const struct reconcile *r, int node)
{
    const struct node *n = node_find(r, node);

    return n != NULL && n->world;
}

const struct slots_size *reconcile_size_of_world(const struct reconcile *r, int node)
{
    return reconcile_has_world(r, node) ? &node_find(r, node)->of_world : NULL;
}

int reconcile_target(const struct reconcile *r, int role)
{
    return r->role[role].target;
}

int reconcile_in_state(const struct reconcile *r, int role, enum replica_state state)
{
    int count = 0;

    FOR_ENTRIES (r, e)
        count += e->replica.role == role && e->replica.state == state;
    return count;
}

int reconcile_finished(const struct reconcile *r, int role)
{
    return r->role[role].finished;
}

bool reconcile_stopping(const struct reconcile *r)
{
    return r->stopping;
}

int reconcile_world_nodes(const struct reconcile *r)
{
    int count = 0;

    for (int i = 0; i < r->node_count; i++)
        count += r->nodes[i].world;
    return count;
}

bool reconcile_world_is_over(const struct reconcile *r)
{
    return r->role[r->world].over;
}

bool reconcile_world_has_ended(const struct reconcile *r, int *status)
{
    *status = r->role[r->world].status;
    return r->role[r->world].over && r->role[r->world].ended;
}

bool reconcile_world_trains(const struct reconcile *r)
{
    return r->role[r->world].running;
}

const char *replica_state_text(enum replica_state state)
{
    static const char *const texts[REPLICA_STATE_COUNT] = {
        [REPLICA_WANTED] = "wanted",     [REPLICA_PLACED] = "placed",
        [REPLICA_STARTING] = "starting", [REPLICA_READY] = "ready",
        [REPLICA_DRAINING] = "draining", [REPLICA_FAILED] = "failed",
    };

    return texts[state];
}

struct replica_name replica_name(const struct role *role, const struct replica *replica)
{
    struct replica_name name;

    snprintf(name.text, sizeof(name.text), "%s-%d", role->name, replica->index);
    return name;
}

/* "2 of 3 ready, 1 starting". */
static void why_size(const struct reconcile *r, int role, char *text, size_t size)
{
    static const enum replica_state others[] = {REPLICA_STARTING, REPLICA_PLACED, REPLICA_DRAINING,
                                                REPLICA_FAILED};
    size_t length;

    snprintf(text, size, "%d of %d ready", reconcile_in_state(r, role, REPLICA_READY),
             r->role[role].target);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        int count = reconcile_in_state(r, role, others[i]);

        length = strlen(text);
        if (count > 0)
            snprintf(text + length, size - length, ", %d %s", count, replica_state_text(others[i]));
    }
}

/* The replica of that role that is started last of those that have failed. */
static const struct entry *in_pause(const struct reconcile *r, int role, double now)
{
    FOR_ENTRIES (r, e)
        if (e->replica.role == role && e->replica.state == REPLICA_WANTED &&
            (e->spent != NULL || e->replica.pause > now))
            return e;
    return NULL;
}

/* The first form of which replicas are missing; NULL: none are. */
static const struct form *lacking(const struct reconcile *r, int role)
{
    for (int form = 0; form < r->role[role].form_count; form++)
        if (size_missing(r, role, form) > 0)
            return &r->role[role].forms[form];
    return NULL;
}

static const struct request *open_request(const struct reconcile *r, int role)
{
    for (int i = 0; i < r->request_count; i++)
        if (r->requests[i].role == role && request_is_open(&r->requests[i]))
            return &r->requests[i];
    return NULL;
}

static void why_more(const struct reconcile *r, int role, double now, char *text, size_t size)
{
    const struct role *of = &r->roles->list[role];
    const struct role_state *state = &r->role[role];
    const struct entry *e = in_pause(r, role, now);
    const struct request *request = open_request(r, role);
    const struct form *form = lacking(r, role);
    double pause = form != NULL ? ask_not_before(r, form) - now : 0;
    int missing = state->target, wait = 0;

    FOR_ENTRIES (r, other)
        if (other->replica.role == role && entry_stays(other)) {
            missing -= other->replica.state != REPLICA_WANTED || other->spent != NULL;
            wait += other->replica.state == REPLICA_PLACED;
        }
    text[0] = '\0';
    if (r->stopping)
        snprintf(text, size, "the job ends");
    else if (e != NULL && e->spent != NULL)
        snprintf(text, size, "%s is not started again: %s, %s", entry_name(r, e).text,
                 e->replica.reason, e->spent);
    else if (e != NULL)
        snprintf(text, size, "%s starts again in %.0f s: %s", entry_name(r, e).text,
                 e->replica.pause - now, e->replica.reason);
    else if (wait > 0)
        FOR_ENTRIES (r, other) {
            if (other->replica.role == role && other->replica.state == REPLICA_PLACED)
                snprintf(text, size, "%s", other->replica.reason);
        }
    else if (missing <= 0)
        snprintf(text, size,
                 state->target >= of->max ? "that is its largest size" : "nobody asks for more");
    else if (request != NULL)
        snprintf(text, size, "%d more asked for", missing);
    else if (of->leads)
        snprintf(text, size, "the base has no room");
    else if (r->roles->max_nodes > 0 && r->node_count >= r->roles->max_nodes)
        snprintf(text, size, "max-nodes: %d", r->roles->max_nodes);
    else if (pause > 0)
        snprintf(text, size, "%d are missing, asked for in %.0f s%s%s", missing, pause,
                 form->refusal[0] != '\0' ? ": " : "", form->refusal);
    else if (r->options.max_pending <= 0)
        snprintf(text, size, "the nodes of the job have no room for %d more", missing);
    else
        snprintf(text, size, "%d are missing", missing);
}

void reconcile_why(const struct reconcile *r, int role, double now, char *size, size_t size_max,
                   char *more, size_t more_max)
{
    why_size(r, role, size, size_max);
    why_more(r, role, now, more, more_max);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replicas that are to end, and get their signal later (role_holds.h). */
#include "agent/leader/role_holds.h"

#include <stdlib.h>

#define LEAST 0.1 /* seconds that a replica has after its signal */

struct held {
    struct reconcile_action action;
    double began, due;
};

struct role_holds {
    bool holds;
    struct held *list;
    int count, room;
};

static struct held *find(struct role_holds *own, const struct reconcile_action *a)
{
    for (int i = 0; i < own->count; i++)
        if (own->list[i].action.replica == a->replica && own->list[i].action.start == a->start &&
            own->list[i].action.node == a->node)
            return &own->list[i];
    return NULL;
}

bool role_holds_add(struct role_holds *own, const struct reconcile_action *action, double now)
{
    struct held *held = find(own, action); /* it has less time than before */

    if (!own->holds)
        return false;
    if (held == NULL && own->count == own->room) {
        int room = own->room > 0 ? 2 * own->room : 16;
        struct held *more = realloc(own->list, (size_t)room * sizeof(*more));

        if (more == NULL)
            return false;
        own->list = more;
        own->room = room;
    }
    if (held == NULL)
        held = &own->list[own->count++];
    *held = (struct held){*action, now, now + action->seconds / 2};
    return true;
}

void role_holds_set(struct role_holds *own, bool holds)
{
    own->holds = holds;
}

void role_holds_release(struct role_holds *own, int replica, int start)
{
    for (int i = 0; i < own->count; i++)
        if (own->list[i].action.replica == replica && own->list[i].action.start == start)
            own->list[i].due = 0;
}

/* It still waits for its signal, and has not been killed. */
static bool drains(const struct reconcile *reconcile, const struct reconcile_action *a)
{
    const struct replica *replica = reconcile_find(reconcile, a->replica);

    return replica != NULL && replica->start == a->start && replica->state == REPLICA_DRAINING &&
           !replica->killed;
}

bool role_holds_next(struct role_holds *own, const struct reconcile *reconcile, double now,
                     struct reconcile_action *action, double *due)
{
    *due = 0;
    for (int i = own->count - 1; i >= 0; i--) {
        struct held held = own->list[i];

        if (own->holds && now < held.due && drains(reconcile, &held.action)) {
            *due = *due == 0 || held.due < *due ? held.due : *due;
            continue;
        }
        own->list[i] = own->list[--own->count];
        if (!drains(reconcile, &held.action))
            continue;
        *action = held.action;
        action->seconds -= now - held.began;
        if (action->seconds < LEAST)
            action->seconds = LEAST;
        return true;
    }
    return false;
}

struct role_holds *role_holds_create(void)
{
    return calloc(1, sizeof(struct role_holds));
}

void role_holds_destroy(struct role_holds *own)
{
    if (own != NULL)
        free(own->list);
    free(own);
}

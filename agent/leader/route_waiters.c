/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Routers that wait for another table of routes (route_waiters.h). */
#include "agent/leader/route_waiters.h"

#include <stdlib.h>

#include "agent/leader/leader_internal.h"
#include "agent/leader/service_shell.h"

#define TABLE_WAIT  20.0 /* a router hears of the table after so long, also if it is the same */
#define WAITERS_MAX 64

static void take_off(struct leader_service *own, struct waiter *waiter)
{
    TAILQ_REMOVE(&own->waiters, waiter, entry);
    own->waiting--;
    free(waiter);
}

/* An answer that cannot be sent may end the link of others: the list is looked at anew. */
static struct waiter *next_told(struct leader *leader)
{
    struct leader_service *own = leader->of_roles.service;
    struct waiter *waiter;

    TAILQ_FOREACH (waiter, &own->waiters, entry)
        if ((own->table != NULL && own->revision > waiter->after) ||
            waiter->until <= leader_now(leader) || leader_has_ended(leader))
            return waiter;
    return NULL;
}

void route_waiters_tell(struct leader *leader)
{
    struct leader_service *own = leader->of_roles.service;
    struct waiter *waiter;

    while ((waiter = next_told(leader)) != NULL) {
        struct waiter told = *waiter;

        take_off(own, waiter);
        told.told(leader, told.link, own->table);
    }
    TAILQ_FOREACH (waiter, &own->waiters, entry)
        service_run_in(leader, waiter->until - leader_now(leader));
}

bool route_waiters_add(struct leader *leader, struct link *link, int64_t after,
                       route_waiters_told *told)
{
    struct leader_service *own = leader->of_roles.service;
    struct waiter *waiter = own->waiting < WAITERS_MAX ? calloc(1, sizeof(*waiter)) : NULL;

    if (waiter == NULL)
        return false;
    waiter->link = link;
    waiter->after = after;
    waiter->told = told;
    waiter->until = leader_now(leader) + TABLE_WAIT;
    TAILQ_INSERT_TAIL(&own->waiters, waiter, entry);
    own->waiting++;
    service_run_in(leader, 0);
    return true;
}

void route_waiters_closed(struct leader *leader, const struct link *link)
{
    struct leader_service *own = leader->of_roles.service;
    struct waiter *waiter, *next;

    for (waiter = TAILQ_FIRST(&own->waiters); waiter != NULL; waiter = next) {
        next = TAILQ_NEXT(waiter, entry);
        if (waiter->link == link)
            take_off(own, waiter);
    }
}

void route_waiters_clear(struct leader_service *own)
{
    while (!TAILQ_EMPTY(&own->waiters))
        take_off(own, TAILQ_FIRST(&own->waiters));
}

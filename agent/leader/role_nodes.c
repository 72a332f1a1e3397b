/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which nodes are there for replicas, when a leader begins (role_nodes.h). */
#include "agent/leader/role_nodes.h"

#include "agent/leader/extensions.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/lease.h"
#include "agent/leader/roster.h"
#include "agent/leader/slurm_look.h"

#define ROOM_LIMIT 60.0 /* seconds for a node that has joined to say what it has for replicas */
#define NOTICED    3    /* times heartbeat_timeout: then all know that their leader is lost */

bool role_nodes_began(const struct leader *leader)
{
    return change_has_begun(leader->change) ||
           (lease_term(leader) > 0 && change_phase(leader->change) != CHANGE_TAKING_OVER);
}

/* Have the nodes of the base that have joined said what they have for replicas? */
static bool base_has_room(const struct leader *leader)
{
    int joined = 0, rooms = 0;

    for (int i = 0; i < roster_count(leader); i++) {
        const struct leader_member *m = roster_at(leader, i);

        joined += m->part->base && m->link != NULL;
        rooms += m->part->base && m->link != NULL && m->room > 0;
    }
    return joined > 0 && rooms == joined;
}

/* After a takeover: have the nodes of extensions come back? Their replicas go on, and nothing is to
 * be started in their place. */
static bool extensions_have_room(struct leader *leader)
{
    if (lease_term(leader) == 0)
        return true;
    for (int i = 0; i < extensions_count(leader); i++) {
        const struct extension *ext = extensions_at(leader, i);
        int rooms = 0;

        for (int k = 0; k < roster_count(leader); k++)
            rooms += roster_at(leader, k)->part->job == ext->job && roster_at(leader, k)->room > 0;
        if (ext->state >= PLAN_BOOTING && ext->state < PLAN_LEAVING &&
            (rooms == 0 || rooms < ext->nodes))
            return false;
    }
    return slurm_look_base(leader) != NULL;
}

/* After a takeover: are there all nodes of the base but the one that led? Others may only have
 * noticed later that their leader is lost. Their replicas go on, too. */
static bool base_is_back(const struct leader *leader)
{
    int joined = 0;

    for (int i = 0; i < roster_count(leader); i++)
        joined += roster_at(leader, i)->part->base && roster_at(leader, i)->link != NULL;
    return lease_term(leader) == 0 || joined >= leader->options->base_nodes - 1;
}

/* When what has not come back counts as lost, if all that is there has said what it has. */
static double due_of_the_rest(struct leader *leader, double joined)
{
    double silence = leader->options->conf->heartbeat_timeout;

    if (!base_is_back(leader))
        return joined + NOTICED * silence;
    return extensions_have_room(leader) ? leader_now(leader) : joined + silence;
}

double role_nodes_due(struct leader *leader, double joined)
{
    return base_has_room(leader) ? due_of_the_rest(leader, joined) : joined + ROOM_LIMIT;
}

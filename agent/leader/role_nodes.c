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

/* After a takeover: nodes of the base that have not come back. */
static int count_missing(const struct leader *leader)
{
    int joined = 0;

    if (lease_term(leader) == 0)
        return 0;
    for (int i = 0; i < roster_count(leader); i++)
        joined += roster_at(leader, i)->part->base && roster_at(leader, i)->link != NULL;
    return leader->options->base_nodes - joined;
}

/* When what has not come back counts as lost, if all that is there has said what it has. One node
 * led, and is most often lost. Others may only have noticed later that their leader is lost, and a
 * leader that stood still may be back before them. Their replicas go on, too. */
static double due_of_the_rest(struct leader *leader, double joined)
{
    double silence = leader->options->conf->heartbeat_timeout;
    int missing = count_missing(leader);

    if (missing > 1)
        return joined + NOTICED * silence;
    return missing == 1 || !extensions_have_room(leader) ? joined + silence : leader_now(leader);
}

double role_nodes_due(struct leader *leader, double joined)
{
    return base_has_room(leader) ? due_of_the_rest(leader, joined) : joined + ROOM_LIMIT;
}

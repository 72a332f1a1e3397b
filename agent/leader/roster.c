/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The list of the leader's members (roster.h). */
#include <stdlib.h>

#include "agent/leader/leader_internal.h"
#include "agent/leader/roster.h"

struct roster {
    struct leader_member **members;
    int count, next_id;
    bool any_gone; /* a member has no link */
};

/* ---- who they are ---------------------------------------------------------------------------- */

int roster_count(const struct leader *leader)
{
    return leader->roster->count;
}

unsigned roster_arrivals(const struct leader *leader)
{
    return (unsigned)leader->roster->next_id;
}

struct leader_member *roster_at(const struct leader *leader, int i)
{
    const struct roster *roster = leader->roster;

    return i >= 0 && i < roster->count ? roster->members[i] : NULL;
}

/* Ids only grow, so the list is in their order. */
struct leader_member *roster_by_id(const struct leader *leader, int id)
{
    int low = 0, high = roster_count(leader);

    while (low < high) {
        int middle = low + (high - low) / 2;

        if (roster_at(leader, middle)->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < roster_count(leader) && roster_at(leader, low)->id == id ? roster_at(leader, low)
                                                                          : NULL;
}

struct leader_member *roster_by_room(const struct leader *leader, int room)
{
    for (int i = 0; i < leader->roster->count; i++)
        if (leader->roster->members[i]->room == room)
            return leader->roster->members[i];
    return NULL;
}

struct leader_member *roster_by_link(const struct leader *leader, const struct link *link)
{
    for (int i = 0; i < roster_count(leader); i++)
        if (roster_at(leader, i)->link == link)
            return roster_at(leader, i);
    return NULL;
}

bool roster_is_own(const struct leader *leader, const struct leader_member *m)
{
    return m->part->base && m->part->nodeid == leader->options->nodeid;
}

char **roster_nodes(const struct leader *leader)
{
    char **list = calloc((size_t)leader->roster->count + 1, sizeof(*list));
    int count = 0;

    for (int i = 0; list != NULL && i < leader->roster->count; i++)
        if (leader->roster->members[i]->link != NULL &&
            !change_is_left(leader->roster->members[i]->part))
            list[count++] = leader->roster->members[i]->part->node;
    return list;
}

bool roster_is_advised(const struct leader_member *m)
{
    return m->advised && m->link != NULL && !m->part->released && !m->part->reclaimed &&
           !change_is_left(m->part);
}

int roster_advised(const struct leader *leader, uint32_t job)
{
    int count = 0;

    for (int i = 0; i < leader->roster->count; i++)
        count += leader->roster->members[i]->part->job == job &&
                 roster_is_advised(leader->roster->members[i]);
    return count;
}

/* ---- the list -------------------------------------------------------------------------------- */

struct leader_member *roster_add(struct leader *leader, struct link *link)
{
    struct roster *roster = leader->roster;
    struct leader_member *m,
        **grown = realloc(roster->members, ((size_t)roster->count + 1) * sizeof(*grown));

    if (grown != NULL)
        roster->members = grown;
    m = grown != NULL ? calloc(1, sizeof(*m)) : NULL;
    if (m == NULL)
        return NULL;
    m->id = ++roster->next_id;
    m->link = link;
    m->owner = (struct link_owner){leader, m};
    link_set_arg(link, &m->owner);
    roster->members[roster->count++] = m;
    return m;
}

static void member_free(struct leader_member *member)
{
    free(member->switches);
    free(member);
}

void roster_drop_newest(struct leader *leader)
{
    struct roster *roster = leader->roster;
    struct leader_member *m = roster->members[--roster->count];

    link_set_arg(m->link, &leader->nobody);
    member_free(m);
}

void roster_unlink(struct leader *leader, struct leader_member *m)
{
    m->link = NULL;
    leader->roster->any_gone = true;
}

/* Forget members that have gone, have no place in a world, and of which no output waits. */
void roster_prune(struct leader *leader)
{
    struct roster *roster = leader->roster;
    int kept = 0;

    if (!roster->any_gone)
        return;
    roster->any_gone = false;
    for (int i = 0; i < roster->count; i++) {
        struct leader_member *m = roster->members[i];

        if (m->link == NULL && m->unwritten == 0 && change_forget(leader->change, m->id))
            member_free(m);
        else
            roster->members[kept++] = m;
        roster->any_gone = roster->any_gone ||
                           (kept > 0 && roster->members[kept - 1]->link == NULL);
    }
    roster->count = kept;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct roster *roster_create(void)
{
    return calloc(1, sizeof(struct roster));
}

void roster_destroy(struct roster *roster)
{
    if (roster == NULL)
        return;
    for (int i = 0; i < roster->count; i++)
        member_free(roster->members[i]);
    free(roster->members);
    free(roster);
}

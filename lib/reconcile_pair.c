/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reconciler: replicas that own gangs (reconcile_private.h).
 *
 * An owner is a replica of one role, its gang one of another role, which needs it. The gang counts
 * for the size of its role; there is an owner for each of them. The rules are in
 * doc/internals/roles.md. They look at what is, and not at what has happened. */
#include <stdio.h>

#include "lib/reconcile_private.h"

struct entry *pair_of(const struct reconcile *r, const struct entry *e)
{
    return e->replica.pair != 0 ? entry_find(r, e->replica.pair) : NULL;
}

static bool is_owner(const struct reconcile *r, const struct entry *e)
{
    return pair_is_owner(r, e->replica.role);
}

static void leave(struct reconcile *r, struct entry *e, const char *why)
{
    e->replica.leaves = true;
    entry_drain(r, e, role_of(r, e)->drain.within, why);
}

void pair_leave(struct reconcile *r, const struct entry *owner, const char *why)
{
    struct entry *gang = pair_of(r, owner);

    if (gang == NULL || !entry_stays(gang))
        return;
    size_less(r, gang);
    leave(r, gang, why);
}

/* ---- who belongs to whom --------------------------------------------------------------------- */

static void join(struct entry *owner, struct entry *gang)
{
    owner->replica.pair = gang->replica.id;
    gang->replica.pair = owner->replica.id;
}

/* One of them is gone, or goes. */
static void part(struct reconcile *r)
{
    FOR_ENTRIES (r, e) {
        struct entry *other = pair_of(r, e);

        if (e->replica.pair != 0 && (other == NULL || !entry_stays(other) || !entry_stays(e))) {
            if (other != NULL)
                other->replica.pair = 0;
            e->replica.pair = 0;
        }
    }
}

/* An owner without a gang; one of that index if there is any. NULL: there is none. */
static struct entry *free_owner(const struct reconcile *r, int index)
{
    struct entry *any = NULL;

    FOR_ENTRIES (r, e)
        if (is_owner(r, e) && entry_stays(e) && e->replica.pair == 0) {
            if (e->replica.index == index)
                return e;
            any = e;
        }
    return any;
}

/* same: only those that have been started together. */
static void match(struct reconcile *r, bool same)
{
    for (int i = 0; i < r->entry_count && !r->no_memory; i++) {
        struct entry *gang = r->entries[i], *owner;

        if (!gang->replica.gang->owned || !entry_stays(gang) || gang->replica.pair != 0)
            continue;
        owner = free_owner(r, gang->owner);
        if (same &&
            (owner == NULL || owner->replica.index != gang->owner || gang->replica.start == 0))
            continue;
        if (owner == NULL)
            owner = entry_add(r, r->roles->pairs.owner, 0);
        if (owner != NULL)
            join(owner, gang);
    }
}

static void dismiss(struct reconcile *r)
{
    for (int i = r->entry_count - 1; i >= 0; i--) {
        struct entry *e = r->entries[i];

        if (is_owner(r, e) && entry_stays(e) && e->replica.pair == 0)
            leave(r, e, "it has no learners any more");
    }
}

/* ---- what may run ---------------------------------------------------------------------------- */

static bool runs(const struct entry *e)
{
    return e->replica.state == REPLICA_STARTING || e->replica.state == REPLICA_READY;
}

/* The gang has been started with the present start of its owner. */
static bool belongs(const struct entry *gang, const struct entry *owner)
{
    return owner->replica.state == REPLICA_READY && owner->replica.index == gang->owner &&
           owner->replica.start < gang->replica.start;
}

static void restart_strays(struct reconcile *r)
{
    char why[100];

    FOR_ENTRIES (r, gang) {
        const struct entry *owner = pair_of(r, gang);

        if (!gang->replica.gang->owned || !entry_stays(gang) || !runs(gang) || owner == NULL ||
            belongs(gang, owner))
            continue;
        snprintf(why, sizeof(why), "waits for %s", entry_name(r, owner).text);
        gang->replica.again = true;
        entry_drain(r, gang, role_of(r, gang)->drain.within, why);
    }
}

bool pair_may_be_placed(const struct reconcile *r, const struct entry *e)
{
    const struct entry *owner = pair_of(r, e);

    return !e->replica.gang->owned ||
           (owner != NULL && (runs(owner) || owner->replica.state == REPLICA_PLACED));
}

bool pair_may_start(const struct reconcile *r, const struct entry *e)
{
    const struct entry *owner = pair_of(r, e);

    return !e->replica.gang->owned || (owner != NULL && owner->replica.state == REPLICA_READY);
}

void pair_settle(struct reconcile *r)
{
    struct role_state *owned = &r->role[r->roles->pairs.owned];
    int gangs = 0;

    if (!r->roles->pairs.any || !r->base_done || r->stopping)
        return;
    for (int form = 1; form < owned->form_count; form++)
        gangs += owned->forms[form].gang.owned ? owned->forms[form].count : 0;
    r->role[r->roles->pairs.owner].target = gangs;
    part(r);
    match(r, true);
    match(r, false);
    dismiss(r);
    restart_strays(r);
}

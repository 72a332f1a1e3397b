/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reconciler: replicas get slots (reconcile_private.h).
 *
 * The guaranteed replicas of all roles come first, on nodes that nobody preempts. Then the roles
 * get a replica each, in turn, until nothing fits. */
#include <stdio.h>

#include "lib/reconcile_private.h"

/* How many replicas a role gets in its turn: one, but for very many. */
#define TURNS 16

/* The replicas of a role and form that wait for slots, by id. */
struct line {
    struct entry **first;
    int count, next;
    int size; /* replicas that the role has in that form */
};

/* One for each form of a role. */
struct lines {
    struct line of[RECONCILE_FORMS];
};

static bool is_going(const struct entry *e)
{
    return e->replica.state == REPLICA_DRAINING || e->replica.state == REPLICA_FAILED;
}

/* ---- slots ----------------------------------------------------------------------------------- */

/* Replicas of a shard are on different nodes, so that it does not lose all of them with one node.
 * During an update it has more of them than it should. Then those that are there last matter: they
 * stay. */
static void keep_apart(struct reconcile *r, int role)
{
    int others = r->roles->list[role].max - 1;

    for (int i = r->entry_count - 1; i >= 0 && others > 0; i--) {
        const struct entry *e = r->entries[i];
        const struct node *node;

        if (e->replica.role != role || !entry_stays(e) || is_going(e))
            continue;
        node = node_find(r, e->replica.tasks[0].node);
        if (node == NULL || e->replica.tasks[0].state == REPLICA_TASK_ENDED)
            continue;
        r->spots.list[node - r->nodes].avoided++;
        others--;
    }
}

/* Nodes on which a replica of that role may be, for slots_place(). */
static void look_at_nodes(struct reconcile *r, int role, enum where_from from)
{
    if (r->spots.role == role && r->spots.from == from)
        return;
    r->spots.role = role;
    r->spots.from = from;
    r->spots.where[0] = -1;
    for (int i = 0; i < r->node_count; i++) {
        const struct node *node = &r->nodes[i];

        r->spots.list[i].free = node->free;
        r->spots.list[i].avoided = 0;
        r->spots.list[i].group = node->job;
        r->spots.list[i].closed = node->goes || (from == SAFE && !node->safe) ||
                                  (from == UNSAFE && node->safe) ||
                                  (node->role >= 0 && node->role != role);
    }
    if (r->roles->list[role].kind == ROLE_SHARDS)
        keep_apart(r, role);
}

/* Is the whole gang on the node that the last gang of the role was on? If that has room for another
 * one, it is still the node with the least left. */
static bool fits_again(const struct reconcile *r, const struct slots_gang *gang)
{
    const int *where = r->spots.where;

    for (int i = 1; i < gang->tasks; i++)
        if (where[i] != where[0])
            return false;
    return where[0] >= 0 && slots_fit(&r->spots.list[where[0]].free, &gang->size) >= gang->tasks;
}

static bool find_slots(struct reconcile *r, int role, int form, enum where_from from)
{
    const struct slots_gang *gang = &r->role[role].forms[form].gang;
    bool found;

    if (r->roles->list[role].kind == ROLE_SHARDS)
        r->spots.role = -1; /* the last one that got slots counts */
    look_at_nodes(r, role, from);
    if (r->spots.form != form || r->roles->list[role].kind == ROLE_SHARDS)
        r->spots.where[0] = -1;
    r->spots.form = form;
    if (fits_again(r, gang))
        return true;
    found = slots_place(r->spots.list, r->node_count, gang, r->spots.where);
    if (!found)
        r->spots.where[0] = -1;
    return found;
}

static void take_slots(struct reconcile *r, struct entry *e)
{
    const struct slots_gang *gang = e->replica.gang;

    for (int i = 0; i < gang->tasks; i++) {
        int at = r->spots.where[i];

        e->replica.tasks[i] = (struct replica_task){.node = r->nodes[at].id};
        node_take(r, e, i);
        slots_take(&r->spots.list[at].free, &gang->size);
    }
    entry_set(r, e, REPLICA_PLACED, 0, "");
}

/* ---- who waits ------------------------------------------------------------------------------- */

static struct line *line_of(struct lines *lines, const struct entry *e)
{
    return &lines[e->replica.role].of[e->replica.form];
}

/* Lines for each role. False: out of memory. */
static bool make_lines(struct reconcile *r, struct lines *lines)
{
    int begin = 0;

    while (r->waiting_room < r->entry_count)
        if (!reconcile_grow(r, (void **)&r->waiting, r->waiting_room, &r->waiting_room,
                            sizeof(struct entry *)))
            return false;
    size_count(r);
    FOR_ENTRIES (r, e)
        line_of(lines, e)->count += entry_waits(r, e);
    for (int role = 0; role < r->roles->count; role++)
        for (int form = 0; form < r->role[role].form_count; form++) {
            struct line *line = &lines[role].of[form];

            line->first = &r->waiting[begin];
            line->size = r->role[role].forms[form].size;
            begin += line->count;
            line->count = 0;
        }
    FOR_ENTRIES (r, e)
        if (entry_waits(r, e)) {
            struct line *line = line_of(lines, e);

            line->first[line->count++] = e;
        }
    return true;
}

/* ---- guaranteed replicas --------------------------------------------------------------------- */

/* Does it have a slot on a node that nobody preempts? */
static bool touches_safe(const struct reconcile *r, const struct entry *e)
{
    for (int i = 0; i < e->replica.gang->tasks; i++) {
        const struct node *node = node_find(r, e->replica.tasks[i].node);

        if (node != NULL && node->safe && e->replica.tasks[i].state != REPLICA_TASK_ENDED)
            return true;
    }
    return false;
}

/* The replica beyond the guaranteed ones of its role that would be the first to make way for those
 * of another role: of the last role, first those that are partly on nodes that Slurm may take, or
 * have needs of their own, then the highest index. NULL: there is none. */
static struct entry *in_the_way(const struct reconcile *r, int of)
{
    for (int role = r->roles->count - 1; role >= 0; role--) {
        struct entry *partly = NULL, *last = NULL;
        int safe = 0;

        if (role == of || r->roles->list[role].kind == ROLE_WORLD)
            continue;
        FOR_ENTRIES (r, e) {
            if (e->replica.role != role || !entry_stays(e) || e->makes_way || is_going(e) ||
                !touches_safe(r, e))
                continue;
            if (!entry_is_safe(r, e) || e->replica.form > 0) {
                partly = e;
                continue;
            }
            safe++;
            if (last == NULL || e->replica.index > last->replica.index)
                last = e;
        }
        if (partly != NULL || safe > size_guaranteed(r, role))
            return partly != NULL ? partly : last;
    }
    return NULL;
}

/* Its slots, as if they were free. */
static void suppose_gone(struct reconcile *r, const struct entry *e)
{
    for (int i = 0; i < e->replica.gang->tasks; i++)
        if (e->replica.tasks[i].state != REPLICA_TASK_ENDED) {
            const struct node *node = node_find(r, e->replica.tasks[i].node);

            slots_give(&r->spots.list[node - r->nodes].free, &e->replica.gang->size);
        }
}

/* Replicas beyond the guaranteed ones of their roles make way, if a guaranteed replica of this role
 * fits then, and does not fit anyway when those have ended that are on their way out. Until then
 * the room is kept. */
static bool make_way(struct reconcile *r, int role)
{
    const struct slots_gang *gang = &r->roles->list[role].gang;
    struct entry *other;
    bool fits;

    r->spots.role = -1;
    look_at_nodes(r, role, SAFE);
    FOR_ENTRIES (r, e)
        if (is_going(e))
            suppose_gone(r, e);
    fits = slots_place(r->spots.list, r->node_count, gang, r->spots.where);
    while (!fits && (other = in_the_way(r, role)) != NULL) {
        other->makes_way = true;
        suppose_gone(r, other);
        fits = slots_place(r->spots.list, r->node_count, gang, r->spots.where);
    }
    r->spots.role = -1;
    for (int i = r->entry_count - 1; i >= 0; i--) {
        struct entry *e = r->entries[i];

        if (!e->makes_way)
            continue;
        e->makes_way = false;
        if (!fits)
            continue;
        e->replica.leaves = true;
        entry_drain(r, e, role_of(r, e)->drain.within,
                    "its slots are those of guaranteed replicas");
    }
    return fits;
}

/* The guaranteed replicas that have no slots, or slots on nodes that Slurm may take. */
static void place_guaranteed(struct reconcile *r, int role, struct line *line)
{
    int need = size_guaranteed(r, role) - r->role[role].assured;

    for (int round = 0; round < 2; round++) {
        while (need > 0 && line->next < line->count && find_slots(r, role, 0, SAFE)) {
            take_slots(r, line->first[line->next++]);
            need--;
        }
        if (need <= 0 || line->next == line->count || r->roles->list[role].base != NULL)
            break;
        if (round == 1)
            r->spots.kept = true;
        else if (!make_way(r, role)) /* what had not been started is gone at once */
            break;
    }
}

/* ---- all others ------------------------------------------------------------------------------ */

/* One more replica of that role and form. False: there is none to be placed, or it fits nowhere. */
static bool place_one(struct reconcile *r, int role, int form, struct line *line)
{
    const struct role *of = &r->roles->list[role];
    struct entry *e = NULL;

    /* A new replica in the place of a failed one would not wait for the pause. */
    if (line->next >= line->count && (of->asks || line->size >= size_wanted(r, role, form)))
        return false;
    if (!find_slots(r, role, form, of->leads ? SAFE : r->spots.kept ? UNSAFE : ANY))
        return false;
    if (line->next < line->count) {
        e = line->first[line->next++];
    } else {
        e = entry_add(r, role, form);
        line->size++;
    }
    if (e == NULL)
        return false;
    take_slots(r, e);
    return true;
}

/* How many replicas have got slots in a turn of that line. */
static int place_turn(struct reconcile *r, int role, int form, struct line *line)
{
    int turn = 1 + (line->count - line->next) / TURNS, placed = 0;

    while (placed < turn && place_one(r, role, form, line))
        placed++;
    return placed;
}

static void place_in_turn(struct reconcile *r, struct lines *lines)
{
    bool any = true;

    while (any) {
        any = false;
        for (int role = 0; role < r->roles->count; role++)
            for (int form = 0;
                 form < r->role[role].form_count && r->roles->list[role].kind != ROLE_WORLD; form++)
                any = place_turn(r, role, form, &lines[role].of[form]) > 0 || any;
    }
}

/* ---- the world ------------------------------------------------------------------------------- */

static bool is_unspecified(const struct slots_size *size)
{
    return size->cpus == 0 && size->gpus == 0 && size->memory == 0;
}

/* Where its job file does not say what a node of the world takes, it takes what the guaranteed
 * replicas leave. */
static void take_for_world(struct node *node, const struct slots_size *size)
{
    node->world = node->counted = true;
    node->of_world = is_unspecified(size) ? node->free : *size;
    slots_take(&node->free, &node->of_world);
}

void world_leave(struct node *node)
{
    if (node->counted)
        slots_give(&node->free, &node->of_world);
    node->world = node->counted = false;
}

/* Nodes that the world has from before a takeover. Returns how many it has. */
static int count_for_world(struct reconcile *r, const struct slots_size *size)
{
    int nodes = 0;

    for (int i = 0; i < r->node_count; i++) {
        struct node *node = &r->nodes[i];

        if (node->world && !node->counted) {
            take_for_world(node, size);
            r->spots.role = -1;
        }
        nodes += node->world && !node->goes;
    }
    return nodes;
}

/* So many more nodes of the base, or none. */
static bool nodes_for_world(struct reconcile *r, int count)
{
    const struct slots_size *size = &r->roles->list[r->world].gang.size;
    struct slots_gang gang = {.size = *size, .tasks = count, .per_node = 1};
    bool fits;

    if (is_unspecified(size))
        gang.size.cpus = 1;
    look_at_nodes(r, r->world, SAFE);
    for (int i = 0; i < r->node_count; i++)
        if (r->nodes[i].world)
            r->spots.list[i].closed = true;
    fits = slots_place(r->spots.list, r->node_count, &gang, r->spots.where);
    for (int i = 0; i < count && fits; i++)
        take_for_world(&r->nodes[r->spots.where[i]], size);
    r->spots.role = -1;
    return fits;
}

/* The world gets its nodes of the base. What it has it keeps until it is over, so that nobody else
 * is there when it begins anew. A node that is lost is replaced, if another one of the base has
 * room that no guaranteed replica waits for; else the world may get an extension. */
static void place_world(struct reconcile *r, bool specified)
{
    const struct role *of = r->world >= 0 ? &r->roles->list[r->world] : NULL;
    char why[160];
    int missing, have;

    if (of == NULL || r->role[r->world].over || specified == is_unspecified(&of->gang.size))
        return;
    have = count_for_world(r, &of->gang.size);
    missing = of->min - have;
    if (r->placed && of->trains && have == 0) { /* it begins, with all of them */
        if (!r->spots.kept)
            nodes_for_world(r, missing);
    } else if (r->placed) {
        while (missing-- > 0 && !r->spots.kept && nodes_for_world(r, 1))
            ;
    } else if (missing > 0 && !nodes_for_world(r, missing)) {
        snprintf(why, sizeof(why), "the base has no %d nodes with room for %s", of->min, of->name);
        reconcile_stop(r, 1, why);
    }
}

/* ---- the leading role ------------------------------------------------------------------------ */

static void place_leading(struct reconcile *r, struct lines *lines)
{
    for (int role = 0; role < r->roles->count; role++) {
        const struct role *of = &r->roles->list[role];
        char why[160];

        if (!of->leads || of->kind == ROLE_WORLD)
            continue;
        place_guaranteed(r, role, &lines[role].of[0]);
        if (r->placed || lines[role].of[0].next == lines[role].of[0].count)
            continue;
        snprintf(why, sizeof(why), "the base has no room for %s", of->name);
        reconcile_stop(r, 1, why);
    }
}

/* At the start the world takes the nodes with the least room that will do, so that most is left for
 * the leading replica, which has to run at once, too: a job without it would never end. So later on
 * the leading replica comes first. */
static void place_first(struct reconcile *r, struct lines *lines)
{
    const struct slots_size *size = r->world >= 0 ? &r->roles->list[r->world].gang.size : NULL;

    if (size != NULL && !is_unspecified(size) && !r->role[r->world].over)
        count_for_world(r, size);
    if (r->placed)
        place_leading(r, lines);
    place_world(r, true);
    if (!r->placed && !r->stopping)
        place_leading(r, lines);
}

/* ---- start ----------------------------------------------------------------------------------- */

/* The first of the roles that it comes after which does not have its replicas. NULL: all have. */
static const struct role *waits_for(const struct reconcile *r, const struct role *role)
{
    for (int i = 0; i < role->after_count; i++) {
        int before = role->after[i];
        const struct role *of = &r->roles->list[before];
        int ready = r->role[before].ready;

        if (of->kind == ROLE_WORLD ? !r->role[before].running && !r->role[before].well
                                   : ready == 0 || ready < size_guaranteed(r, before))
            return of;
    }
    return NULL;
}

static void start_placed(struct reconcile *r)
{
    const struct role *before[ROLES_MAX];

    for (int role = 0; role < r->roles->count; role++)
        before[role] = waits_for(r, &r->roles->list[role]);
    FOR_ENTRIES (r, e) {
        const struct role *first = before[e->replica.role];

        if (e->replica.state != REPLICA_PLACED)
            continue;
        if (r->role[e->replica.role].closed)
            snprintf(e->replica.reason, sizeof(e->replica.reason), "waits for its service");
        else if (first == NULL && pair_may_start(r, e))
            entry_start(r, e);
        else if (first == NULL)
            snprintf(e->replica.reason, sizeof(e->replica.reason), "waits for %s",
                     entry_name(r, pair_of(r, e)).text);
        else
            snprintf(e->replica.reason, sizeof(e->replica.reason), "waits for %s", first->name);
    }
}

void place_all(struct reconcile *r)
{
    struct lines lines[ROLES_MAX] = {0};

    if (!r->base_done || r->stopping || !make_lines(r, lines))
        return;
    r->spots.role = -1;
    r->spots.kept = false;
    place_first(r, lines);
    if (r->stopping) /* one of them fits nowhere */
        return;
    for (int role = 0; role < r->roles->count; role++)
        if (r->roles->list[role].kind != ROLE_WORLD && !r->roles->list[role].leads)
            place_guaranteed(r, role, &lines[role].of[0]);
    place_world(r, false);
    r->placed = true;
    if (r->stopping)
        return;
    place_in_turn(r, lines);
    start_placed(r);
}

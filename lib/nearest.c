/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The idle nodes that are nearest to the nodes of a job (nearest.h). */
#include "lib/nearest.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_MAX ((int64_t)1 << 22) /* some ten milliseconds */

/* The worth of a choice: more pairs below one switch are better; of equal numbers of pairs, less
 * loss. */
struct worth {
    int64_t pairs, loss;
};

/* The nodes below one switch at one level. A switch stands above leaf switches at several levels if
 * it is the top of a short branch. All nodes together are one more group, above the top level. */
struct group {
    int idle, free, own;
    int room;            /* how many of its nodes may be taken: idle, but no more than wanted */
    int filled;          /* room of the groups within this one that are merged by now */
    int taken;           /* in the end */
    struct worth *worth; /* of taking 0, 1, … room nodes */
    /* How many nodes of them, by how many nodes the group above takes so far. */
    int *take;
};

struct search {
    const struct placement_map *map;
    const bool *idle, *free, *own;
    int count, growth, levels;
    struct group *groups; /* by level and switch, of which 0 is none */
};

static struct group *group_at(const struct search *search, int level, int above)
{
    return &search->groups[level * (search->map->switch_count + 1) + above + 1];
}

static struct group *all_nodes(const struct search *search)
{
    return group_at(search, search->levels, PLACEMENT_NONE);
}

/* The group that contains the group of a switch at a level. */
static struct group *group_of(const struct search *search, int level, int above)
{
    if (level + 1 == search->levels)
        return all_nodes(search);
    return group_at(search, level + 1, placement_next_above(search->map, above));
}

static void count_nodes(struct search *search)
{
    const struct placement_map *map = search->map;

    for (int i = 0; i < map->node_count; i++) {
        int above = map->switch_count > 0 ? map->leaf[i] : PLACEMENT_NONE;

        if (!search->idle[i] && !search->own[i])
            continue;
        for (int level = 0; level <= search->levels; level++) {
            struct group *group = level < search->levels ? group_at(search, level, above)
                                                         : all_nodes(search);

            group->idle += search->idle[i];
            group->free += search->idle[i] && search->free[i];
            group->own += search->own[i];
            group->room = group->idle < search->count ? group->idle : search->count;
            above = placement_next_above(map, above);
        }
    }
}

static int64_t pairs_with(const struct group *group, int taken)
{
    return (int64_t)taken * group->own + (int64_t)taken * (taken - 1) / 2;
}

/* The loss from taking that many nodes of a leaf switch. The leaf switches on which the job already
 * has nodes cannot be chosen any more. */
static int64_t loss_of(const struct search *search, const struct group *leaf, int taken)
{
    const int64_t most = (int64_t)search->map->node_count + search->growth + 1;
    int64_t rest = leaf->free > taken ? leaf->free - taken : 0, loss;

    if (taken == 0)
        return 0;
    loss = rest < search->growth ? most + search->growth - rest : rest - search->growth;
    if (leaf->own > 0)
        loss = 0;
    if (taken > leaf->free)
        loss += (taken - leaf->free) * 2 * most * most;
    return loss;
}

static int begin_group(const struct search *search, struct group *group, bool is_leaf)
{
    if ((group->worth = calloc((size_t)group->room + 1, sizeof(*group->worth))) == NULL)
        return -1;
    if (is_leaf) {
        group->filled = group->room;
        for (int i = 0; i <= group->room; i++)
            group->worth[i] = (struct worth){pairs_with(group, i), loss_of(search, group, i)};
    }
    return 0;
}

static bool is_better(const struct worth *a, const struct worth *b)
{
    return a->pairs != b->pairs ? a->pairs > b->pairs : a->loss < b->loss;
}

/* Add to the group above the choices that this group offers. */
static int merge(struct group *above, struct group *group)
{
    int filled = above->filled + group->room < above->room ? above->filled + group->room
                                                           : above->room;

    if ((group->take = calloc((size_t)filled + 1, sizeof(*group->take))) == NULL)
        return -1;
    /* From the largest number down, so that values that are still to be read are those without this
     * group. */
    for (int want = filled; want >= 0; want--) {
        int least = want > above->filled ? want - above->filled : 0;
        struct worth best = {-1, 0};

        for (int take = least; take <= want && take <= group->room; take++) {
            struct worth with = {above->worth[want - take].pairs + group->worth[take].pairs,
                                 above->worth[want - take].loss + group->worth[take].loss};

            if (is_better(&with, &best)) {
                best = with;
                group->take[want] = take;
            }
        }
        above->worth[want] = best;
    }
    above->filled = filled;
    return 0;
}

/* Merge all groups of a level, which is complete, into the groups above. */
static int merge_level(const struct search *search, int level)
{
    int rc = 0;

    for (int above = -1; above < search->map->switch_count && rc == 0; above++) {
        struct group *group = group_at(search, level, above), *to;

        if (group->room == 0)
            continue;
        for (int i = 0; level > 0 && i <= group->room; i++)
            group->worth[i].pairs += pairs_with(group, i);
        to = group_of(search, level, above);
        if (to->worth == NULL)
            rc = begin_group(search, to, false);
        if (rc == 0)
            rc = merge(to, group);
    }
    return rc;
}

static int solve(const struct search *search)
{
    int rc = 0;

    for (int above = -1; above < search->map->switch_count && rc == 0; above++)
        if (group_at(search, 0, above)->room > 0)
            rc = begin_group(search, group_at(search, 0, above), true);
    for (int level = 0; level < search->levels && rc == 0; level++)
        rc = merge_level(search, level);
    return rc;
}

/* Decide how many nodes each group gives. Of the groups within one group, the last was merged with
 * all others. */
static void share_out(const struct search *search)
{
    all_nodes(search)->taken = search->count;
    for (int level = search->levels - 1; level >= 0; level--) {
        for (int above = search->map->switch_count - 1; above >= -1; above--) {
            struct group *group = group_at(search, level, above), *of;

            if (group->room == 0)
                continue;
            of = group_of(search, level, above);
            group->taken = group->take[of->taken];
            of->taken -= group->taken;
        }
    }
}

static int pick_nodes(const struct search *search, bool *set)
{
    const struct placement_map *map = search->map;
    int leaves = 0;

    for (int above = -1; above < map->switch_count; above++)
        leaves += group_at(search, 0, above)->taken > 0;
    for (int kept = 0; kept <= 1; kept++) {
        for (int i = 0; i < map->node_count; i++) {
            struct group *leaf = group_at(search, 0,
                                          map->switch_count > 0 ? map->leaf[i] : PLACEMENT_NONE);

            if (search->idle[i] && leaf->taken > 0 && search->free[i] == (kept == 0)) {
                set[i] = true;
                leaf->taken--;
            }
        }
    }
    return leaves;
}

static void clear(struct search *search)
{
    const size_t count = ((size_t)search->levels + 1) * ((size_t)search->map->switch_count + 1);

    for (size_t i = 0; search->groups != NULL && i < count; i++) {
        free(search->groups[i].worth);
        free(search->groups[i].take);
    }
    free(search->groups);
}

int nearest_nodes(const struct placement_map *map, const bool *idle, const bool *free,
                  const bool *own, int count, int growth, bool *set)
{
    struct search search = {map, idle, free, own, count, growth, placement_levels(map), NULL};
    int rc = 0;

    memset(set, 0, (size_t)map->node_count * sizeof(*set));
    search.groups = calloc(((size_t)search.levels + 1) * ((size_t)map->switch_count + 1),
                           sizeof(*search.groups));
    if (search.groups == NULL)
        return -1;
    count_nodes(&search);
    if (all_nodes(&search)->room == count &&
        (int64_t)all_nodes(&search)->idle * count * search.levels <= STEPS_MAX) {
        rc = solve(&search);
        if (rc == 0) {
            share_out(&search);
            rc = pick_nodes(&search, set);
        }
    }
    clear(&search);
    return rc;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where elastic jobs go, and which extension jobs leave first (placement.h). */
#include "lib/placement.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cover.h"
#include "lib/nearest.h"

/* ---- the map --------------------------------------------------------------------------------- */

/* The switch that many levels above a node; the top switch where there are fewer levels. */
static int switch_above(const struct placement_map *map, int node, int level)
{
    int at = map->switch_count > 0 ? map->leaf[node] : PLACEMENT_NONE;

    while (at != PLACEMENT_NONE && level-- > 0 && map->parent[at] != PLACEMENT_NONE)
        at = map->parent[at];
    return at;
}

int placement_levels(const struct placement_map *map)
{
    int most = 1;

    for (int i = 0; i < map->switch_count; i++) {
        int levels = 1;

        for (int at = map->parent[i]; at != PLACEMENT_NONE; at = map->parent[at])
            levels++;
        if (levels > most)
            most = levels;
    }
    return most;
}

int placement_next_above(const struct placement_map *map, int at)
{
    return at == PLACEMENT_NONE || map->parent[at] == PLACEMENT_NONE ? at : map->parent[at];
}

int placement_distance(const struct placement_map *map, int a, int b)
{
    int level = 0;

    a = switch_above(map, a, 0);
    b = switch_above(map, b, 0);
    while (a != b) {
        int next_a = placement_next_above(map, a), next_b = placement_next_above(map, b);

        if (next_a == a && next_b == b)
            return placement_levels(map);
        a = next_a;
        b = next_b;
        level++;
    }
    return level;
}

static int count_nodes(const struct placement_map *map, const bool *nodes)
{
    int count = 0;

    for (int i = 0; i < map->node_count; i++)
        count += nodes[i];
    return count;
}

/* ---- tiers ----------------------------------------------------------------------------------- */

void placement_tiers_clear(struct placement_tiers *tiers)
{
    for (int i = 0; i < tiers->count; i++)
        free(tiers->tier[i].nodes);
    *tiers = (struct placement_tiers){0};
}

/* Takes over the tier's nodes. A tier that is of no use is freed: too few nodes, all nodes that
 * there are, or the nodes of an earlier tier. */
static void add_tier(const struct placement_map *map, struct placement_tiers *tiers,
                     const struct placement_tier *tier, int min, int all)
{
    bool useful = tier->count >= min && tier->count < all && tiers->count < PLACEMENT_TIERS_MAX;

    for (int i = 0; i < tiers->count && useful; i++)
        useful = memcmp(tiers->tier[i].nodes, tier->nodes, (size_t)map->node_count) != 0;
    if (useful)
        tiers->tier[tiers->count++] = *tier;
    else
        free(tier->nodes);
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* Free nodes of one shape below one switch. */
struct group {
    int level, above, shape;
    int free;
};

struct search {
    const struct placement_map *map;
    const bool *free;
    int shapes;
    int *counts;  /* of free nodes, by switch and shape: a large table, of which little is in use */
    size_t *used; /* indices of the used entries, at most one for each node */
    int used_count;
};

/* Its counts: none. */
static int search_begin(struct search *search, const struct placement_map *map, const bool *free)
{
    int most = PLACEMENT_NONE;

    for (int i = 0; i < map->node_count; i++)
        if (map->shape[i] > most)
            most = map->shape[i];
    *search = (struct search){.map = map, .free = free, .shapes = most + 2};
    /* One more row and column, for nodes whose switch or shape is not known. */
    search->counts = calloc((size_t)(map->switch_count + 1) * (size_t)search->shapes,
                            sizeof(*search->counts));
    search->used = calloc((size_t)map->node_count + 1, sizeof(*search->used));
    return search->counts != NULL && search->used != NULL ? 0 : -1;
}

static void search_end(struct search *search)
{
    free(search->counts);
    free(search->used);
}

static size_t cell_of(const struct search *search, int above, int shape)
{
    return (size_t)(above + 1) * (size_t)search->shapes + (size_t)(shape + 1);
}

static void count_level(struct search *search, int level)
{
    const struct placement_map *map = search->map;

    for (int i = 0; i < search->used_count; i++)
        search->counts[search->used[i]] = 0;
    search->used_count = 0;
    for (int i = 0; i < map->node_count; i++) {
        size_t cell;

        if (!search->free[i])
            continue;
        cell = cell_of(search, switch_above(map, i, level), map->shape[i]);
        if (search->counts[cell]++ == 0)
            search->used[search->used_count++] = cell;
    }
}

/* The group with the fewest free nodes, but at least need. With most: the group with the most free
 * nodes. Of equal groups the first. */
static bool find_group(struct search *search, int level, int need, bool most, struct group *found)
{
    const size_t shapes = (size_t)search->shapes;
    size_t at = 0;
    int best = 0;

    count_level(search, level);
    for (int i = 0; i < search->used_count; i++) {
        size_t cell = search->used[i];
        int free = search->counts[cell];

        if (free < need)
            continue;
        if (best == 0 || (most ? free > best : free < best) || (free == best && cell < at)) {
            best = free;
            at = cell;
        }
    }
    if (best > 0)
        *found = (struct group){level, (int)(at / shapes) - 1, (int)(at % shapes) - 1, best};
    return best > 0;
}

static int add_group(const struct placement_map *map, struct placement_tiers *tiers,
                     const bool *usable, const struct group *group, int min)
{
    struct placement_tier tier = {
        .level = group->level, .above = group->above, .shape = group->shape, .free = group->free};

    if ((tier.nodes = calloc((size_t)map->node_count + 1, sizeof(bool))) == NULL)
        return -1;
    for (int i = 0; i < map->node_count; i++)
        tier.nodes[i] = usable[i] && map->shape[i] == group->shape &&
                        switch_above(map, i, group->level) == group->above;
    tier.count = count_nodes(map, tier.nodes);
    add_tier(map, tiers, &tier, min, count_nodes(map, usable));
    return 0;
}

/* Add the best leaf switch with nodes of the set: the one where that many are free, and as few more
 * as possible. If there is none: the leaf switch with the most, if it has min. */
static int add_leaf(const struct placement_map *map, struct placement_tiers *tiers,
                    const bool *usable, const bool *free_nodes, const bool *set, int min,
                    int wanted)
{
    bool *both = calloc((size_t)map->node_count + 1, sizeof(*both));
    struct search search = {0};
    struct group leaf;
    int rc = both != NULL ? search_begin(&search, map, both) : -1;

    for (int i = 0; rc == 0 && i < map->node_count; i++)
        both[i] = free_nodes[i] && set[i];
    if (rc == 0 &&
        (find_group(&search, 0, wanted, false, &leaf) || find_group(&search, 0, min, true, &leaf)))
        rc = add_group(map, tiers, usable, &leaf, min);
    search_end(&search);
    free(both);
    return rc;
}

int placement_keep(const struct placement_map *map, const struct placement_claim *claims, int count,
                   bool *free_nodes)
{
    struct search search; /* with the counts of claimed nodes */
    int rc = search_begin(&search, map, free_nodes);

    for (int i = 0; i < count && rc == 0; i++)
        if (claims[i].growth > 0)
            search.counts[cell_of(&search, switch_above(map, claims[i].node, 0),
                                  map->shape[claims[i].node])] += claims[i].growth;
    for (int i = 0; i < map->node_count && rc == 0; i++) {
        size_t cell = cell_of(&search, switch_above(map, i, 0), map->shape[i]);

        if (free_nodes[i] && search.counts[cell] > 0) {
            free_nodes[i] = false;
            search.counts[cell]--;
        }
    }
    search_end(&search);
    return rc;
}

/* ---- bases ----------------------------------------------------------------------------------- */

/* The set of a group, for its leaf; the group itself is tried after it. */
static int add_leaf_of(const struct placement_map *map, struct placement_tiers *tiers,
                       const bool *usable, const bool *free_nodes, const struct group *group,
                       int min, int max)
{
    bool *set = calloc((size_t)map->node_count + 1, sizeof(*set));
    int rc = -1;

    for (int i = 0; set != NULL && i < map->node_count; i++)
        set[i] = map->shape[i] == group->shape &&
                 switch_above(map, i, group->level) == group->above;
    if (set != NULL)
        rc = add_leaf(map, tiers, usable, free_nodes, set, min, max);
    free(set);
    return rc;
}

int placement_base(const struct placement_map *map, const struct placement_room *room, int min,
                   int max, struct placement_tiers *tiers)
{
    int levels = placement_levels(map), rc;
    struct group group = {0};
    struct search search;
    bool found = false;

    *tiers = (struct placement_tiers){0};
    rc = search_begin(&search, map, room->free);
    for (int level = 0; level < levels && !found && rc == 0; level++)
        found = find_group(&search, level, max, false, &group);
    if (!found && rc == 0)
        found = find_group(&search, levels - 1, min, true, &group);
    search_end(&search);
    if (found && group.level > 0)
        rc = add_leaf_of(map, tiers, room->usable, room->free, &group, min, max);
    if (found && rc == 0)
        rc = add_group(map, tiers, room->usable, &group, min);
    return rc;
}

/* ---- extensions ------------------------------------------------------------------------------ */

/* The shape of most nodes of a set; of equally frequent shapes the first. */
static int common_shape(const struct placement_map *map, const bool *nodes)
{
    int best = PLACEMENT_NONE, most = 0;

    for (int i = 0; i < map->node_count; i++) {
        int same = 0;

        /* Each shape is counted where it first occurs. A job has few shapes, mostly one. */
        if (!nodes[i] || (most > 0 && map->shape[i] == best))
            continue;
        for (int k = 0; k < map->node_count; k++)
            same += nodes[k] && map->shape[k] == map->shape[i];
        if (same > most || (same == most && map->shape[i] < best)) {
            most = same;
            best = map->shape[i];
        }
    }
    return best;
}

/* Mark each switch that is the switch at that level above one of the nodes. above[0] stands for no
 * switch. Returns the marked switch if there is only one, else PLACEMENT_NONE. */
static int mark_above(const struct placement_map *map, const bool *nodes, int level, bool *above)
{
    int only = PLACEMENT_NONE, count = 0;

    memset(above, 0, ((size_t)map->switch_count + 1) * sizeof(*above));
    for (int i = 0; i < map->node_count; i++) {
        int at;

        if (!nodes[i] || above[(at = switch_above(map, i, level)) + 1])
            continue;
        above[at + 1] = true;
        only = ++count == 1 ? at : PLACEMENT_NONE;
    }
    return only;
}

/* What an extension asks for. */
struct wish {
    const struct placement_map *map;
    const struct placement_room *room;
    const bool *nodes;
    int min, growth;
    bool *above; /* room for mark_above */
    /* The nodes of the level before: a leaf switch of that level is never better than all of
     * them. */
    bool *before;
};

/* Add the nodes of a shape that are nearest to the job's nodes. Below one leaf switch all usable
 * nodes are as good. Below several leaf switches the set has only the nearest nodes: Slurm would
 * choose nodes that are near each other only. */
static int add_nearest(const struct wish *wish, struct placement_tiers *tiers, int shape)
{
    const struct placement_map *map = wish->map;
    const bool *usable = wish->room->usable;
    struct placement_tier tier = {.level = PLACEMENT_ANY, .above = PLACEMENT_NONE, .shape = shape};
    bool *idle = calloc((size_t)map->node_count + 1, sizeof(*idle));
    int leaves = -1;

    tier.nodes = calloc((size_t)map->node_count + 1, sizeof(bool));
    for (int i = 0; idle != NULL && i < map->node_count; i++)
        idle[i] = wish->room->idle[i] && (shape == PLACEMENT_ANY || map->shape[i] == shape);
    if (idle != NULL && tier.nodes != NULL)
        leaves = nearest_nodes(map, idle, wish->room->free, wish->nodes, wish->min,
                               wish->growth - wish->min, tier.nodes);
    tier.nearest = leaves > 1;
    for (int i = 0; leaves == 1 && i < map->node_count && tier.level != 0; i++) {
        if (tier.nodes[i]) {
            tier.level = 0;
            tier.above = switch_above(map, i, 0);
        }
    }
    for (int i = 0; leaves == 1 && i < map->node_count; i++)
        tier.nodes[i] = usable[i] && (shape == PLACEMENT_ANY || map->shape[i] == shape) &&
                        switch_above(map, i, 0) == tier.above;
    free(idle);
    if (leaves <= 0) {
        free(tier.nodes);
        return leaves;
    }
    tier.count = count_nodes(map, tier.nodes);
    add_tier(map, tiers, &tier, wish->min, count_nodes(map, usable));
    return 0;
}

/* Add the nodes of a shape below the switches of a level. Before them, add the nodes of the best
 * leaf switch that is new at this level. */
static int add_level(const struct wish *wish, struct placement_tiers *tiers, int level, int shape)
{
    const struct placement_map *map = wish->map;
    struct placement_tier tier = {.level = level, .shape = shape, .above = PLACEMENT_NONE};
    int rc = 0;

    if ((tier.nodes = calloc((size_t)map->node_count + 1, sizeof(bool))) == NULL)
        return -1;
    if (level != PLACEMENT_ANY)
        tier.above = mark_above(map, wish->nodes, level, wish->above);
    for (int i = 0; i < map->node_count; i++)
        tier.nodes[i] = wish->room->usable[i] &&
                        (shape == PLACEMENT_ANY || map->shape[i] == shape) &&
                        (level == PLACEMENT_ANY || wish->above[switch_above(map, i, level) + 1]);
    tier.count = count_nodes(map, tier.nodes);
    for (int i = 0; i < map->node_count; i++)
        wish->before[i] = tier.nodes[i] && !wish->before[i];
    if (level != 0 && shape != PLACEMENT_ANY)
        rc = add_leaf(map, tiers, wish->room->usable, wish->room->free, wish->before, wish->min,
                      wish->growth);
    memcpy(wish->before, tier.nodes, (size_t)map->node_count);
    add_tier(map, tiers, &tier, wish->min, count_nodes(map, wish->room->usable));
    return rc;
}

/* Levels that are tried one by one; in deeper trees all levels above count as one. */
#define LEVELS_MAX 3

int placement_extension(const struct placement_map *map, const struct placement_room *room,
                        const bool *nodes, int min, int growth, struct placement_tiers *tiers)
{
    const int shape = common_shape(map, nodes), levels = placement_levels(map);
    const int tried = levels < LEVELS_MAX ? levels : LEVELS_MAX;
    struct wish wish = {map,
                        room,
                        nodes,
                        min,
                        growth < min ? min : growth,
                        calloc((size_t)map->switch_count + 1, sizeof(bool)),
                        calloc((size_t)map->node_count + 1, sizeof(bool))};
    int rc = wish.above != NULL && wish.before != NULL ? 0 : -1;

    *tiers = (struct placement_tiers){0};
    if (rc == 0)
        rc = add_nearest(&wish, tiers, shape);
    for (int level = 0; level < tried && rc == 0; level++)
        rc = add_level(&wish, tiers, level, shape);
    if (rc == 0)
        rc = add_level(&wish, tiers, PLACEMENT_ANY, shape);
    if (rc == 0)
        rc = add_nearest(&wish, tiers, PLACEMENT_ANY);
    for (int level = 0; level < tried && rc == 0; level++)
        rc = add_level(&wish, tiers, level, PLACEMENT_ANY);
    free(wish.above);
    free(wish.before);
    return rc;
}

/* ---- victims --------------------------------------------------------------------------------- */

/* The weights of nodes stay so small that the costs of all jobs fit into 63 bits. */
#define WEIGHT_LIMIT ((int64_t)1 << 62)

/* The order of jobs of the same priority. A raised base has a lower priority of its own. */
enum class {
    CLASS_EXTENSION,
    CLASS_RAISED,
    CLASS_RIGID,
    CLASS_SPARED,
};

/* Where a job is in the order. */
struct rank {
    int64_t priority;
    enum class class;
};

struct ranking {
    const struct placement_candidate *list;
    int count;
    struct rank *ranks; /* of each candidate */
};

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

bool placement_node_counts(int64_t amount, int64_t base_amount, int base_nodes)
{
    return amount > 0 && base_nodes > 0 && amount >= base_amount / base_nodes;
}

bool placement_is_spared(const struct placement_candidate *candidate)
{
    int own = candidate->nodes - candidate->extended;

    return candidate->kind == PLACEMENT_BASE && candidate->extended > 0 &&
           candidate->extended >= own;
}

int placement_cost(const struct placement_candidate *candidate)
{
    return candidate->kind != PLACEMENT_BASE || placement_is_spared(candidate)
               ? candidate->nodes
               : candidate->nodes - candidate->extended;
}

/* A base that is not spared counts as a rigid job. */
static bool is_rigid(const struct placement_candidate *candidate)
{
    return candidate->kind != PLACEMENT_EXTENSION && !placement_is_spared(candidate);
}

bool placement_passes_over(const struct placement_candidate *list, int count, const bool *leaves)
{
    int64_t lowest = INT64_MAX, highest = INT64_MIN;

    for (int i = 0; i < count; i++) {
        if (leaves[i] && is_rigid(&list[i]) && list[i].priority > highest)
            highest = list[i].priority;
        if (!leaves[i] && placement_is_spared(&list[i]) && list[i].usable > 0 &&
            list[i].priority < lowest)
            lowest = list[i].priority;
    }
    return highest > lowest;
}

/* The highest priority of an extension before which no rigid job comes that is above the base. So
 * extensions leave before the base, and no rigid job does for it. Jobs that are of no use do not
 * leave, and so do not count. */
static int64_t raised_priority(const struct ranking *ranking,
                               const struct placement_candidate *base)
{
    int64_t limit = INT64_MAX, priority = base->priority;

    for (int i = 0; i < ranking->count; i++) {
        const struct placement_candidate *at = &ranking->list[i];

        if (is_rigid(at) && at->usable > 0 && at->priority > base->priority && at->priority < limit)
            limit = at->priority;
    }
    for (int i = 0; i < ranking->count; i++) {
        const struct placement_candidate *at = &ranking->list[i];

        if (at->kind == PLACEMENT_EXTENSION && at->usable > 0 && at->priority > priority &&
            at->priority <= limit)
            priority = at->priority;
    }
    return priority;
}

static struct rank rank_of(const struct ranking *ranking, const struct placement_candidate *at)
{
    int64_t raised;

    if (!placement_is_spared(at))
        return (struct rank){at->priority,
                             at->kind == PLACEMENT_EXTENSION ? CLASS_EXTENSION : CLASS_RIGID};
    raised = at->usable > 0 ? raised_priority(ranking, at) : at->priority;
    return (struct rank){raised, raised > at->priority ? CLASS_RAISED : CLASS_SPARED};
}

/* The order in which jobs are best preempted. Indices of the list. */
static int compare(const struct ranking *ranking, int first, int second)
{
    const struct placement_candidate *a = &ranking->list[first], *b = &ranking->list[second];
    const struct rank *rank_a = &ranking->ranks[first], *rank_b = &ranking->ranks[second];
    int rc = compare_numbers(rank_a->priority, rank_b->priority);

    if (rc == 0)
        rc = compare_numbers(rank_a->class, rank_b->class);
    if (rc == 0)
        rc = compare_numbers(a->priority, b->priority); /* of raised bases */
    if (rc == 0)
        rc = compare_numbers(b->distance, a->distance);
    if (rc == 0)
        rc = compare_numbers(b->start, a->start);
    if (rc == 0)
        rc = compare_numbers(b->job, a->job);
    return rc;
}

static int compare_entries(const void *a, const void *b, void *ranking)
{
    return compare(ranking, *(const int *)a, *(const int *)b);
}

/* Puts the indices of all candidates into order. */
static void put_in_order(struct ranking *ranking, int *order)
{
    for (int i = 0; i < ranking->count; i++) {
        order[i] = i;
        ranking->ranks[i] = rank_of(ranking, &ranking->list[i]);
    }
    if (ranking->count > 0)
        qsort_r(order, (size_t)ranking->count, sizeof(*order), compare_entries, ranking);
}

/* Jobs of one group are equal but for the number of nodes that they cost. Extensions and rigid jobs
 * of one priority are a group if no raised base is between them. */
static bool same_group(const struct ranking *ranking, int first, int second)
{
    const struct placement_candidate *a = &ranking->list[first], *b = &ranking->list[second];

    return ranking->ranks[first].priority == ranking->ranks[second].priority &&
           a->priority == b->priority && placement_is_spared(a) == placement_is_spared(b);
}

/* How many of the ordered candidates must be looked at. These are the first groups that together
 * have enough nodes. 0: all candidates together have too few. */
static int enough(const struct ranking *ranking, const int *order, int need)
{
    int64_t usable = 0;

    for (int i = 0; i < ranking->count; i++) {
        usable += ranking->list[order[i]].usable;
        if (usable >= need &&
            (i + 1 == ranking->count || !same_group(ranking, order[i], order[i + 1])))
            return i + 1;
    }
    return 0;
}

/* The cost of the first candidates in order. A node of a spared base weighs more than all nodes of
 * the extensions, and of the rigid jobs that come before it in the order. A node of a rigid job
 * weighs more than all nodes of the spared bases that come before it. With extremely many nodes the
 * highest weights are equal. */
static void weigh(const struct ranking *ranking, const int *order, int count,
                  struct cover_item *items)
{
    int64_t weight = 1, factor = 1;
    bool last_spared = false;

    for (int i = 0; i < count; i++)
        factor += placement_cost(&ranking->list[order[i]]);
    for (int i = 0; i < count; i++) {
        const struct placement_candidate *at = &ranking->list[order[i]];
        bool spared = placement_is_spared(at), extension = at->kind == PLACEMENT_EXTENSION;

        if (!extension && at->usable > 0 && spared != last_spared) {
            last_spared = spared;
            if (weight <= WEIGHT_LIMIT / factor / factor)
                weight *= factor;
        }
        items[i] = (struct cover_item){at->usable, placement_cost(at) * (extension ? 1 : weight)};
    }
}

/* The cheapest of the first `count` candidates in order. */
static int pick(const struct ranking *ranking, const int *order, int count, int need, bool *picked)
{
    struct cover_item *items = calloc((size_t)count, sizeof(*items));

    if (items == NULL)
        return -1;
    weigh(ranking, order, count, items);
    cover_pick(items, count, need, picked);
    free(items);
    return 0;
}

/* Move the picked jobs to the front. Both parts stay in order. */
static int move_picked(int *order, int count, const bool *picked)
{
    int *rest = malloc((size_t)count * sizeof(*rest)), moved = 0, kept = 0;

    if (rest == NULL)
        return -1;
    for (int i = 0; i < count; i++) {
        if (picked[i])
            order[moved++] = order[i];
        else
            rest[kept++] = order[i];
    }
    memcpy(order + moved, rest, (size_t)kept * sizeof(*rest));
    free(rest);
    return moved;
}

int placement_victims(const struct placement_candidate *list, int count, int need, int *order)
{
    struct ranking ranking = {list, count, calloc((size_t)count + 1, sizeof(*ranking.ranks))};
    bool *picked = calloc((size_t)count + 1, sizeof(*picked));
    int considered, rc = ranking.ranks != NULL && picked != NULL ? 0 : -1;

    if (rc == 0) {
        put_in_order(&ranking, order);
        considered = need > 0 ? enough(&ranking, order, need) : 0;
        if (considered > 0)
            rc = pick(&ranking, order, considered, need, picked);
        if (considered > 0 && rc == 0)
            rc = move_picked(order, count, picked);
    }
    free(ranking.ranks);
    free(picked);
    return rc;
}

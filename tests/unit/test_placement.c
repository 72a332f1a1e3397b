/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/placement: where bases and extensions are to be tried, and which jobs leave; by table, and
 * random clusters and candidates against a search of all that is possible. */
#include "lib/placement.h"

#include <stdbool.h>

#include "tests/unit/support.h"

#define NODES   16
#define UNKNOWN PLACEMENT_NONE
#define NONE    PLACEMENT_NONE

/* Four leaf switches (1 to 4) of four nodes, two and two below a switch (5, 6), all below 0. */
static const int tree_parent[] = {NONE, 5, 5, 6, 6, 0, 0};
static const int tree_leaf[NODES] = {1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4};
static const int one_shape[NODES] = {0};
/* The third leaf has another shape, the fourth is mixed. */
static const int shapes[NODES] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1};

static const struct placement_map tree = {.node_count = NODES,
                                          .shape = shapes,
                                          .leaf = tree_leaf,
                                          .switch_count = 7,
                                          .parent = tree_parent};
static const struct placement_map plain_tree = {.node_count = NODES,
                                                .shape = one_shape,
                                                .leaf = tree_leaf,
                                                .switch_count = 7,
                                                .parent = tree_parent};
static const struct placement_map no_tree = {
    .node_count = NODES, .shape = shapes, .leaf = tree_leaf, .switch_count = 0};

/* "#..#": nodes of a set. */
static void read_set(const char *text, bool *set)
{
    for (int i = 0; i < NODES; i++)
        set[i] = text[i] == '#';
}

static const char *write_set(const bool *set)
{
    static char text[NODES + 1];

    for (int i = 0; i < NODES; i++)
        text[i] = set[i] ? '#' : '.';
    return text;
}

static void assert_tiers(struct placement_tiers *tiers, const char *const *expected)
{
    for (int i = 0; expected[i]; i++) {
        assert_true(i < tiers->count);
        assert_string_equal(write_set(tiers->tier[i].nodes), expected[i]);
    }
    assert_null(expected[tiers->count]);
    placement_tiers_clear(tiers);
}

static void test_distance(void **state)
{
    static const int parent[] = {NONE, 0, NONE};
    static const int leaf[] = {1, 1, 0, 2, NONE, NONE};
    static const struct placement_map uneven = {6, one_shape, leaf, 3, parent};

    (void)state;
    assert_int_equal(placement_levels(&tree), 3);
    assert_int_equal(placement_distance(&tree, 0, 3), 0);
    assert_int_equal(placement_distance(&tree, 0, 4), 1);
    assert_int_equal(placement_distance(&tree, 3, 15), 2);
    assert_int_equal(placement_levels(&no_tree), 1);
    assert_int_equal(placement_distance(&no_tree, 0, 15), 0);
    assert_int_equal(placement_distance(&uneven, 0, 2), 1);
    assert_int_equal(placement_distance(&uneven, 0, 3), 2); /* no switch above both */
    assert_int_equal(placement_distance(&uneven, 4, 5), 0);
    assert_int_equal(placement_distance(&uneven, 0, 4), 2);
}

static void test_base(void **state)
{
    static const struct {
        const char *what;
        const struct placement_map *map;
        const char *usable, *free;
        int min, max;
        const char *expected[4];
    } table[] = {
        {"the first leaf of those that hold MAX",
         &plain_tree,
         "################",
         "################",
         2,
         4,
         {"####............"}},
        {"the leaf with as few more as possible",
         &plain_tree,
         "################",
         "##########.#.##.",
         1,
         3,
         {"........####...."}},
        {"a leaf that holds MIN alone is not taken",
         &plain_tree,
         "################",
         "##......####....",
         2,
         4,
         {"........####...."}},
        {"best fit is on MAX, not on MIN",
         &plain_tree,
         "################",
         "##..###.####....",
         2,
         3,
         {"....####........"}},
        {"where no leaf holds MAX, the lowest switch, and its largest leaf",
         &plain_tree,
         "################",
         "##..###.#...##..",
         2,
         5,
         {"....####........", "########........"}},
        {"its leaves may be too small",
         &plain_tree,
         "################",
         "##..##..#...#...",
         3,
         4,
         {"########........"}},
        {"nothing holds MAX: the largest leaf",
         &plain_tree,
         "################",
         "##..####...#....",
         2,
         12,
         {"....####........"}},
        {"not even MIN is free", &plain_tree, "################", "##..............", 3, 8, {NULL}},
        {"of one shape", &tree, "################", "................", 1, 2, {NULL}},
        {"shapes are not mixed",
         &tree,
         "################",
         "............####",
         2,
         2,
         {"............##.."}},
        {"MAX of one shape counts",
         &tree,
         "################",
         "##....##..######",
         2,
         3,
         {"####............", "########........"}},
        {"only what is usable", &tree, "##.#............", "##.#............", 2, 4, {NULL}},
        {"shapes alone",
         &no_tree,
         "################",
         "################",
         2,
         6,
         {"........####..##"}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        bool usable[NODES], free[NODES];
        const struct placement_room room = {usable, free, free};
        struct placement_tiers tiers;

        read_set(table[i].usable, usable);
        read_set(table[i].free, free);
        print_message("# %s\n", table[i].what);
        assert_int_equal(placement_base(table[i].map, &room, table[i].min, table[i].max, &tiers),
                         0);
        assert_tiers(&tiers, table[i].expected);
    }
}

static void test_extension(void **state)
{
    static const struct {
        const char *what;
        const struct placement_map *map;
        const char *usable, *base;
        int min, growth;
        const char *expected[8];
    } table[] = {
        {"its leaf, the best of the others, the next switch, and so on",
         &plain_tree,
         "..##############",
         "##..............",
         2,
         2,
         {"..##............", "....####........", "..######........", "........####...."}},
        {"the leaf where all of its growth has room",
         &plain_tree,
         "....##.#####..##",
         "###.............",
         2,
         4,
         {"....##.#........", "........####...."}},
        {"what is left on its leaf, and no more elsewhere than need be; sets that are too small "
         "are left out",
         &plain_tree,
         "..##############",
         "##..............",
         3,
         3,
         {"..###...........", "....####........", "..######........", "........####...."}},
        {"a job on two leaves: where most of it is",
         &plain_tree,
         "..#..###########",
         "##.##...........",
         1,
         1,
         {"..#.............", "..#..###........", "........####...."}},
        {"its shape first, as near as possible; then near",
         &tree,
         "..##########..##",
         "............##..",
         1,
         1,
         {"..##............", "..######........", "..............##", "........####..##"}},
        {"the shape of most of its nodes, of equal ones the first",
         &tree,
         "##########....##",
         "..........####..",
         1,
         1,
         {"####............", "########........", "........##......", "........##....##"}},
        {"without switches",
         &no_tree,
         "..##########..##",
         "##..............",
         2,
         2,
         {"..######........"}},
        {"all are usable", &no_tree, "..######........", "##..............", 2, 2, {NULL}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        bool usable[NODES], base[NODES];
        const struct placement_room room = {usable, usable, usable};
        struct placement_tiers tiers;

        read_set(table[i].usable, usable);
        read_set(table[i].base, base);
        print_message("# %s\n", table[i].what);
        assert_int_equal(
            placement_extension(table[i].map, &room, base, table[i].min, table[i].growth, &tiers),
            0);
        assert_tiers(&tiers, table[i].expected);
    }
}

static void test_keep(void **state)
{
    static const struct {
        const char *what;
        const struct placement_map *map;
        const char *free;
        struct placement_claim claims[3]; /* until growth is 0 */
        const char *after;
    } table[] = {
        {"on its leaf", &plain_tree, "..##############", {{0, 1}}, "...#############"},
        {"no more than there is", &plain_tree, "..##############", {{0, 5}}, "....############"},
        {"two on one leaf, one elsewhere",
         &plain_tree,
         "..##############",
         {{0, 1}, {1, 1}, {15, 2}},
         "....########..##"},
        {"of its shape", &tree, "..############.#", {{14, 1}}, "..############.."},
        {"of its shape, which is not there",
         &tree,
         "..##############",
         {{8, 4}},
         "..######....####"},
        {"nothing", &plain_tree, "..##############", {{0, 0}}, "..##############"},
        {"without switches", &no_tree, "..##############", {{0, 3}}, ".....###########"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        bool free[NODES];
        int count = 0;

        while (count < 3 && table[i].claims[count].growth > 0)
            count++;
        read_set(table[i].free, free);
        print_message("# %s\n", table[i].what);
        assert_int_equal(placement_keep(table[i].map, table[i].claims, count, free), 0);
        assert_string_equal(write_set(free), table[i].after);
    }
}

/* ---- random clusters ------------------------------------------------------------------------- */

struct cluster {
    int shape[NODES], leaf[NODES], parent[8];
    struct placement_map map;
};

static void make_cluster(struct cluster *cluster, uint64_t *seed)
{
    int switches = (int)random_below(seed, 8);

    for (int i = 0; i < switches; i++) /* parents come first, so there is no circle */
        cluster->parent[i] = (int)random_below(seed, (uint32_t)i + 1) - 1;
    for (int i = 0; i < NODES; i++) {
        cluster->shape[i] = (int)random_below(seed, 3) - 1;
        cluster->leaf[i] = (int)random_below(seed, (uint32_t)switches + 1) - 1;
    }
    cluster->map = (struct placement_map){NODES, cluster->shape, cluster->leaf, switches,
                                          cluster->parent};
}

static void random_set(uint64_t *seed, const bool *of, bool *set)
{
    for (int i = 0; i < NODES; i++)
        set[i] = (!of || of[i]) && random_below(seed, 3) != 0;
}

/* Whether the two nodes are below one switch that is no more than level levels above each of them,
 * by walking up from both. */
static bool together(const struct placement_map *map, int a, int b, int level)
{
    int up[2] = {map->leaf[a], map->leaf[b]};

    if (map->switch_count == 0 || up[0] == up[1])
        return true;
    for (int i = 0; i < level; i++) {
        for (int k = 0; k < 2; k++)
            if (up[k] != NONE && map->parent[up[k]] != NONE)
                up[k] = map->parent[up[k]];
        if (up[0] == up[1])
            return true;
    }
    return false;
}

/* The most free nodes of one shape that are together; need: the fewest that are not less. 0:
 * none. */
static int best_group(const struct cluster *cluster, const bool *free, int level, int need,
                      bool most)
{
    int best = 0;

    for (int a = 0; a < NODES; a++) {
        int count = 0;

        for (int b = 0; free[a] && b < NODES; b++)
            count += free[b] && cluster->shape[a] == cluster->shape[b] &&
                     together(&cluster->map, a, b, level);
        if (count >= need && count > 0 && (best == 0 || (most ? count > best : count < best)))
            best = count;
    }
    return best;
}

static int count_set(const bool *set)
{
    int count = 0;

    for (int i = 0; i < NODES; i++)
        count += set[i];
    return count;
}

static void assert_subset(const bool *set, const bool *of)
{
    for (int i = 0; i < NODES; i++)
        assert_true(!set[i] || of[i]);
}

static void test_random_bases(void **state)
{
    uint64_t seed = 4711;
    int narrowed = 0;

    (void)state;
    for (int round = 0; round < RANDOM_ROUNDS(20000); round++) {
        struct cluster cluster;
        struct placement_tiers tiers;
        bool usable[NODES], free[NODES];
        const struct placement_room room = {usable, free, free};
        int min = 1 + (int)random_below(&seed, 4), max = min + (int)random_below(&seed, 6),
            best = 0;
        int levels;

        make_cluster(&cluster, &seed);
        random_set(&seed, NULL, usable);
        random_set(&seed, usable, free);
        levels = placement_levels(&cluster.map);
        for (int level = 0; level < levels && best == 0; level++)
            best = best_group(&cluster, free, level, max, false);
        if (best == 0)
            best = best_group(&cluster, free, levels - 1, min, true);
        assert_int_equal(placement_base(&cluster.map, &room, min, max, &tiers), 0);
        assert_true(tiers.count <= 2);
        for (int i = 0; i < tiers.count; i++) {
            const struct placement_tier *tier = &tiers.tier[i];

            assert_subset(tier->nodes, usable);
            assert_true(tier->count == count_set(tier->nodes) && tier->count >= min &&
                        tier->count < count_set(usable));
            for (int a = 0; a < NODES; a++)
                for (int b = 0; tier->nodes[a] && b < NODES; b++)
                    assert_true(!tier->nodes[b] || (cluster.shape[a] == cluster.shape[b] &&
                                                    together(&cluster.map, a, b, tier->level)));
        }
        if (tiers.count > 0) {
            const struct placement_tier *last = &tiers.tier[tiers.count - 1];

            narrowed++;
            assert_true(best > 0);
            /* Its switch is the last one to be tried, unless that are all usable nodes. */
            if (tiers.count == 2 || last->level > 0 || levels == 1)
                assert_true(last->free == best || last->level == 0);
            if (best_group(&cluster, free, 0, max, false) > 0)
                assert_int_equal(last->free, best_group(&cluster, free, 0, max, false));
        }
        placement_tiers_clear(&tiers);
    }
    assert_true(narrowed > RANDOM_ROUNDS(5000));
}

static void test_random_extensions(void **state)
{
    uint64_t seed = 815;

    (void)state;
    for (int round = 0; round < RANDOM_ROUNDS(20000); round++) {
        struct cluster cluster;
        struct placement_tiers tiers;
        bool usable[NODES], base[NODES] = {0};
        const struct placement_room room = {usable, usable, usable};
        int min = 1 + (int)random_below(&seed, 4), first = (int)random_below(&seed, NODES);
        int levels, growth = min + (int)random_below(&seed, 4);

        make_cluster(&cluster, &seed);
        levels = placement_levels(&cluster.map);
        base[first] = true;
        random_set(&seed, NULL, usable);
        usable[first] = false;
        assert_int_equal(placement_extension(&cluster.map, &room, base, min, growth, &tiers), 0);
        for (int level = 0; level < levels && level < 3; level++) {
            bool expected[NODES], there = false;

            for (int i = 0; i < NODES; i++)
                expected[i] = usable[i] && cluster.shape[i] == cluster.shape[first] &&
                              together(&cluster.map, i, first, level);
            for (int i = 0; i < tiers.count && !there; i++)
                there = memcmp(tiers.tier[i].nodes, expected, sizeof(expected)) == 0;
            assert_true(there ==
                        (count_set(expected) >= min && count_set(expected) < count_set(usable)));
        }
        for (int i = 0; i < tiers.count; i++) {
            const struct placement_tier *tier = &tiers.tier[i];

            assert_subset(tier->nodes, usable);
            assert_true(tier->count == count_set(tier->nodes) && tier->count >= min);
            for (int k = 0; k < NODES; k++)
                assert_true(!tier->nodes[k] || tier->shape == PLACEMENT_ANY ||
                            cluster.shape[k] == cluster.shape[first]);
            assert_true(i == 0 || tier->shape == PLACEMENT_ANY ||
                        tiers.tier[i - 1].shape != PLACEMENT_ANY);
        }
        placement_tiers_clear(&tiers);
    }
}

/* ---- victims --------------------------------------------------------------------------------- */

#define E PLACEMENT_EXTENSION
#define R PLACEMENT_RIGID
#define B PLACEMENT_BASE

static void test_victims(void **state)
{
    static const struct {
        const char *what;
        int need;
        struct placement_candidate
            list[5]; /* job, kind, priority, start, nodes, usable, distance, extended */
        uint32_t expected[5];
    } table[] = {
        {"one of the right size",
         2,
         {{1, E, 1, 0, 1, 1, 0, 0}, {2, E, 1, 0, 2, 2, 0, 0}, {3, E, 1, 0, 3, 3, 0, 0}},
         {2}},
        {"two that fit, not one that is too large",
         3,
         {{1, E, 1, 0, 1, 1, 0, 0}, {2, E, 1, 0, 2, 2, 0, 0}, {3, E, 1, 0, 4, 4, 0, 0}},
         {2, 1}},
        {"far before near", 2, {{1, E, 1, 9, 2, 2, 0, 0}, {2, E, 1, 1, 2, 2, 1, 0}}, {2}},
        {"young before old",
         2,
         {{1, E, 1, 1, 2, 2, 1, 0}, {2, E, 1, 9, 2, 2, 1, 0}, {3, E, 1, 5, 2, 2, 1, 0}},
         {2}},
        {"then the larger job id",
         1,
         {{1, E, 1, 1, 1, 1, 1, 0}, {7, E, 1, 1, 1, 1, 1, 0}, {3, E, 1, 1, 1, 1, 1, 0}},
         {7}},
        {"no excess before far", 2, {{1, E, 1, 1, 3, 3, 2, 0}, {2, E, 1, 1, 2, 2, 0, 0}}, {2}},
        {"never a base before an extension",
         2,
         {{1, B, 0, 9, 2, 2, 0, 1}, {2, E, 1, 1, 8, 8, 0, 0}},
         {2}},
        {"a base where nothing else is enough, and no more of it",
         4,
         {{1, B, 0, 9, 2, 2, 0, 1}, {2, B, 0, 9, 3, 3, 0, 2}, {3, E, 1, 1, 2, 2, 0, 0}},
         {3, 1}},
        {"a base of lower priority than a rigid job's",
         2,
         {{1, B, 1, 9, 2, 2, 0, 1}, {2, R, 5, 1, 2, 2, 0, 0}, {3, E, 1, 1, 1, 1, 0, 0}},
         {1}},
        {"no rigid job leaves for a base of a lower priority",
         2,
         {{1, B, 1, 9, 2, 2, 0, 1}, {2, R, 3, 1, 2, 2, 0, 0}, {3, E, 5, 1, 1, 1, 0, 0}},
         {1}},
        {"not of the priority of the base's own extension either",
         2,
         {{1, B, 1, 9, 1, 1, 0, 1},
          {2, E, 2, 9, 1, 1, 0, 0},
          {3, R, 2, 1, 1, 1, 0, 0},
          {4, R, 2, 5, 1, 1, 0, 0}},
         {2, 1}},
        {"not where another rigid job has to leave",
         5,
         {{1, B, 1, 9, 6, 2, 0, 4}, {2, R, 2, 1, 2, 2, 0, 0}, {3, R, 2, 1, 3, 3, 0, 0}},
         {1, 3}},
        {"nor where the base has more nodes",
         4,
         {{1, B, 1, 9, 9, 3, 0, 5}, {2, R, 2, 1, 2, 2, 0, 0}, {3, R, 2, 1, 1, 1, 0, 0}},
         {1, 3}},
        {"a base of no use does not leave for that",
         2,
         {{1, B, 1, 9, 2, 0, 0, 1}, {2, R, 2, 1, 2, 2, 0, 0}, {3, E, 2, 1, 3, 3, 0, 0}},
         {2}},
        {"nor one that is too small, where the rigid job has to leave",
         5,
         {{1, B, 1, 9, 2, 2, 0, 1}, {2, R, 2, 1, 5, 5, 0, 0}},
         {2}},
        {"of a base's own priority the rigid job leaves",
         2,
         {{1, B, 2, 9, 2, 2, 0, 1}, {2, R, 2, 1, 2, 2, 0, 0}, {3, E, 5, 1, 1, 1, 0, 0}},
         {2}},
        {"extensions of a higher priority leave before the base",
         2,
         {{1, B, 1, 9, 2, 2, 0, 1},
          {2, R, 3, 1, 2, 2, 0, 0},
          {3, E, 2, 1, 1, 1, 0, 0},
          {4, E, 3, 1, 1, 1, 0, 0}},
         {3, 4}},
        {"of two bases the one of lower priority",
         2,
         {{1, B, 2, 9, 2, 2, 0, 1}, {2, B, 1, 1, 3, 3, 0, 2}, {3, E, 5, 1, 1, 1, 0, 0}},
         {2}},
        {"a rigid job that is of no use lets no base leave for an extension",
         2,
         {{1, B, 1, 9, 2, 2, 0, 1}, {2, R, 3, 1, 2, 0, 0, 0}, {3, E, 5, 1, 2, 2, 0, 0}},
         {3}},
        /* MIN:MAX of 1:1, or no extension that runs: as a rigid job. */
        {"a young base alone before an old rigid job",
         2,
         {{1, B, 1, 9, 2, 2, 0, 0}, {2, R, 1, 1, 2, 2, 0, 0}, {3, E, 1, 1, 1, 1, 0, 0}},
         {1}},
        {"a base alone keeps its priority",
         2,
         {{1, B, 1, 9, 2, 2, 0, 0}, {2, R, 3, 1, 2, 2, 0, 0}, {3, E, 5, 1, 1, 1, 0, 0}},
         {1}},
        {"a base alone before one that has extensions",
         2,
         {{1, B, 1, 9, 2, 2, 0, 1}, {2, B, 1, 1, 2, 2, 0, 0}},
         {2}},
        {"a large base is not spared for a small extension",
         4,
         {{1, B, 1, 9, 5, 4, 0, 1}, {2, R, 1, 1, 5, 5, 0, 0}},
         {1}},
        {"a small extension does not make its base dearer",
         4,
         {{1, B, 1, 9, 5, 4, 0, 1}, {2, R, 1, 1, 4, 4, 0, 0}},
         {1}},
        {"as many nodes are spared as were extended",
         4,
         {{1, B, 1, 9, 8, 4, 0, 4}, {2, R, 1, 1, 8, 8, 0, 0}},
         {2}},
        {"the site's priorities hold",
         2,
         {{1, E, 2, 9, 2, 2, 0, 0}, {2, E, 1, 1, 4, 4, 0, 0}},
         {2}},
        {"two priorities together",
         3,
         {{1, E, 2, 9, 2, 2, 0, 0}, {2, E, 1, 1, 2, 2, 0, 0}},
         {2, 1}},
        {"an extension before a rigid job",
         2,
         {{1, R, 1, 9, 2, 2, 0, 0}, {2, E, 1, 1, 2, 2, 0, 0}},
         {2}},
        {"fewer nodes before that", 2, {{1, R, 1, 9, 2, 2, 0, 0}, {2, E, 1, 1, 3, 3, 0, 0}}, {1}},
        {"a rigid job of lower priority",
         2,
         {{1, R, 0, 9, 2, 2, 0, 0}, {2, E, 1, 1, 2, 2, 0, 0}},
         {1}},
        {"nodes that are no use",
         2,
         {{1, E, 1, 9, 5, 2, 0, 0}, {2, E, 1, 1, 3, 2, 0, 0}, {3, E, 1, 1, 9, 0, 3, 0}},
         {2}},
        {"not enough", 9, {{1, E, 1, 9, 5, 2, 0, 0}, {2, E, 1, 1, 3, 2, 0, 0}}, {0}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        int order[5], count = 0, expected = 0, got;

        while (count < 5 && table[i].list[count].job)
            count++;
        while (expected < 5 && table[i].expected[expected])
            expected++;
        print_message("# %s\n", table[i].what);
        got = placement_victims(table[i].list, count, table[i].need, order);
        assert_int_equal(got, expected);
        for (int k = 0; k < got; k++)
            assert_int_equal(table[i].list[order[k]].job, table[i].expected[k]);
    }
}

static void test_passes_over(void **state)
{
    static const struct {
        const char *what;
        struct placement_candidate list[3];
        bool leaves[3], passes_over;
    } table[] = {
        {"a base of lower priority",
         {{1, B, 1, 0, 2, 2, 0, 1}, {2, R, 2, 0, 2, 2, 0, 0}},
         {false, true},
         true},
        {"which leaves as well",
         {{1, B, 1, 0, 2, 2, 0, 1}, {2, R, 2, 0, 2, 2, 0, 0}},
         {true, true},
         false},
        {"of the same priority",
         {{1, B, 2, 0, 2, 2, 0, 1}, {2, R, 2, 0, 2, 2, 0, 0}},
         {false, true},
         false},
        {"of no use", {{1, B, 1, 0, 2, 0, 0, 1}, {2, R, 2, 0, 2, 2, 0, 0}}, {false, true}, false},
        {"not spared", {{1, B, 1, 0, 2, 2, 0, 0}, {2, R, 2, 0, 2, 2, 0, 0}}, {false, true}, false},
        {"an extension leaves",
         {{1, B, 1, 0, 2, 2, 0, 1}, {2, E, 2, 0, 2, 2, 0, 0}, {3, R, 2, 0, 2, 2, 0, 0}},
         {false, true, false},
         false},
        {"a base that is not spared leaves",
         {{1, B, 1, 0, 2, 2, 0, 1}, {2, B, 2, 0, 3, 2, 0, 1}},
         {false, true},
         true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        print_message("# %s\n", table[i].what);
        assert_int_equal(placement_passes_over(table[i].list, 3, table[i].leaves),
                         table[i].passes_over);
    }
    assert_int_equal(placement_cost(&(struct placement_candidate){.kind = E, .nodes = 3}), 3);
    assert_int_equal(placement_cost(&table[0].list[0]), 2);
    assert_int_equal(placement_cost(&table[6].list[1]), 2);
}

static void test_node_counts(void **state)
{
    (void)state;
    assert_true(placement_node_counts(8, 16, 2));
    assert_true(placement_node_counts(9, 8, 1));
    assert_true(placement_node_counts(8, 25, 3)); /* 9, 8 and 8 */
    assert_false(placement_node_counts(7, 16, 2));
    assert_false(placement_node_counts(1, 16, 1));
    assert_false(placement_node_counts(0, 0, 1));
    assert_false(placement_node_counts(8, 0, 0));
    /* Megabytes of very many nodes. */
    assert_true(placement_node_counts((int64_t)1 << 32, (int64_t)1 << 42, 1024));
    assert_false(placement_node_counts(((int64_t)1 << 32) - 1, (int64_t)1 << 42, 1024));
}

/* The acceptance of the issue, in small: extensions of 1 to 4 nodes, and 1 to 6 nodes wanted. */
static void test_smallest_loss(void **state)
{
    static const struct placement_candidate list[] = {{1, E, 1, 1, 1, 1, 0, 0},
                                                      {2, E, 1, 2, 2, 2, 0, 0},
                                                      {3, E, 1, 3, 3, 3, 0, 0},
                                                      {4, E, 1, 4, 4, 4, 0, 0}};

    (void)state;
    for (int need = 1; need <= 10; need++) {
        int order[4], leave = 0, count = placement_victims(list, 4, need, order);

        for (int i = 0; i < count; i++)
            leave += list[order[i]].nodes;
        assert_int_equal(leave, need);
    }
    assert_int_equal(placement_victims(list, 4, 11, (int[4]){0}), 0);
    assert_int_equal(placement_victims(list, 0, 1, (int[4]){0}), 0);
    assert_int_equal(placement_victims(list, 4, 0, (int[4]){0}), 0);
}

#define JOBS 9

#define PRIORITIES 4 /* of random jobs: 1 to 3 */
#define VALUES     (1 + 2 * PRIORITIES + 1)

static bool is_rigid(const struct placement_candidate *job)
{
    return job->kind != E && !placement_is_spared(job);
}

/* Does a leave before b? Both are of use. By the site's priorities alone, but that extensions leave
 * before a spared base if no rigid job stands between them. */
static bool is_before(const struct placement_candidate *list, int count,
                      const struct placement_candidate *a, const struct placement_candidate *b)
{
    bool spared_a = placement_is_spared(a), spared_b = placement_is_spared(b);
    const struct placement_candidate *base = spared_a ? a : b, *other = spared_a ? b : a;
    bool between = false;

    if (spared_a == spared_b || other->kind != E)
        return a->priority != b->priority ? a->priority < b->priority : spared_b && !spared_a;
    for (int i = 0; i < count; i++)
        between |= is_rigid(&list[i]) && list[i].usable > 0 && list[i].priority > base->priority &&
                   list[i].priority < other->priority;
    return between ? spared_a : spared_b;
}

/* What speaks against a job leaving. */
struct against {
    int place; /* jobs that leave before it */
    int level; /* 0: an extension, or a rigid job with no spared base below it */
};

/* Also those before it by way of a third one. */
static void count_before(const struct placement_candidate *list, int count, struct against *against)
{
    bool before[JOBS][JOBS];

    for (int a = 0; a < count; a++)
        for (int b = 0; b < count; b++)
            before[a][b] = list[a].usable > 0 && list[b].usable > 0 &&
                           is_before(list, count, &list[a], &list[b]);
    for (int by = 0; by < count; by++)
        for (int a = 0; a < count; a++)
            for (int b = 0; b < count; b++)
                before[a][b] |= before[a][by] && before[by][b];
    for (int b = 0; b < count; b++)
        for (int a = 0; a < count; a++)
            against[b].place += before[a][b];
}

/* Rigid jobs and spared bases are on levels in turn, by priority, the rigid jobs of a priority
 * first. */
static void find_levels(const struct placement_candidate *list, int count, struct against *against)
{
    int level = 0;

    for (int step = 0; step < 2 * PRIORITIES; step++) {
        bool spared = step % 2, seen = false;

        for (int i = 0; i < count; i++)
            seen |= list[i].kind != E && list[i].priority == step / 2 && list[i].usable > 0 &&
                    placement_is_spared(&list[i]) == spared;
        if (seen && level % 2 != spared)
            level++;
        for (int i = 0; i < count; i++)
            if (list[i].kind != E && list[i].priority == step / 2 &&
                placement_is_spared(&list[i]) == spared)
                against[i].level = level;
    }
}

/* What is bad about a set: the last of its jobs in the order; then nodes on each level, from the
 * highest down; then nodes. */
static void judge(const struct placement_candidate *list, int count, const struct against *against,
                  const bool *set, int64_t values[VALUES])
{
    memset(values, 0, VALUES * sizeof(*values));
    for (int i = 0; i < count; i++) {
        int64_t cost = set[i] ? placement_cost(&list[i]) : 0;

        if (set[i] && against[i].place > values[0])
            values[0] = against[i].place;
        if (against[i].level > 0)
            values[VALUES - 1 - against[i].level] += cost;
        values[VALUES - 1] += cost;
    }
}

/* The best of all sets of jobs that have enough. Whether there is one. */
static bool best_set(const struct placement_candidate *list, int count,
                     const struct against *against, int need, int64_t values[VALUES])
{
    bool found = false;

    for (int number = 0; number < 1 << count; number++) {
        int64_t value[VALUES], usable = 0;
        bool set[JOBS];
        int at = 0;

        for (int i = 0; i < count; i++) {
            set[i] = number >> i & 1;
            usable += set[i] ? list[i].usable : 0;
        }
        if (usable < need)
            continue;
        judge(list, count, against, set, value);
        while (at < VALUES - 1 && value[at] == values[at])
            at++;
        if (!found || value[at] < values[at])
            memcpy(values, value, sizeof(value));
        found = true;
    }
    return found;
}

static void make_candidates(struct placement_candidate *list, uint64_t *seed)
{
    for (int i = 0; i < JOBS; i++) {
        list[i] = (struct placement_candidate){.job = (uint32_t)i + 1,
                                               .kind = (enum placement_kind)random_below(seed, 3),
                                               .priority = 1 + random_below(seed, 3),
                                               .start = random_below(seed, 4),
                                               .nodes = 1 + (int)random_below(seed, 5),
                                               .distance = (int)random_below(seed, 3)};
        list[i].extended = (int)random_below(seed, (uint32_t)list[i].nodes);
        list[i].usable = (int)random_below(seed, (uint32_t)list[i].nodes + 1);
    }
}

/* No rigid job leaves whose place spared bases of a lower priority could take. */
static void assert_none_leaves_for_a_lower_base(const struct placement_candidate *list, int count,
                                                const bool *leaves, int usable, int need)
{
    for (int i = 0; i < count; i++) {
        int others = usable - list[i].usable;

        if (!leaves[i] || !is_rigid(&list[i]))
            continue;
        for (int k = 0; k < count; k++)
            if (!leaves[k] && placement_is_spared(&list[k]) && list[k].priority < list[i].priority)
                others += list[k].usable;
        assert_true(others < need);
    }
}

static void test_random_victims(void **state)
{
    uint64_t seed = 42;

    (void)state;
    for (int round = 0; round < RANDOM_ROUNDS(3000); round++) {
        struct placement_candidate list[JOBS];
        int order[JOBS], again[JOBS], need = 1 + (int)random_below(&seed, 16), count, usable = 0;
        struct against against[JOBS] = {0};
        int64_t expected[VALUES] = {0}, got[VALUES];
        bool seen[JOBS] = {0}, leaves[JOBS] = {0}, possible;

        make_candidates(list, &seed);
        count_before(list, JOBS, against);
        find_levels(list, JOBS, against);
        possible = best_set(list, JOBS, against, need, expected);
        count = placement_victims(list, JOBS, need, order);
        assert_int_equal(count > 0, possible);
        for (int i = 0; i < JOBS; i++) {
            assert_false(seen[order[i]]);
            seen[order[i]] = true;
        }
        for (int i = 0; i < count; i++) {
            const struct placement_candidate *at = &list[order[i]];

            assert_true(at->usable > 0);
            usable += at->usable;
            leaves[order[i]] = true;
        }
        if (count > 0) {
            assert_true(usable >= need);
            judge(list, JOBS, against, leaves, got);
            assert_memory_equal(got, expected, sizeof(got));
            assert_none_leaves_for_a_lower_base(list, JOBS, leaves, usable, need);
        }
        /* The order in which Slurm lists them does not matter. */
        for (int i = 0; i < JOBS / 2; i++) {
            struct placement_candidate other = list[i];

            list[i] = list[JOBS - 1 - i];
            list[JOBS - 1 - i] = other;
        }
        assert_int_equal(placement_victims(list, JOBS, need, again), count);
        for (int i = 0; i < JOBS; i++)
            assert_int_equal(JOBS - 1 - again[i], order[i]);
    }
}

/* More than is looked at one by one: still enough, none too many, quickly. */
static void test_many_victims(void **state)
{
    enum { MANY = 4000 };
    struct placement_candidate *list = calloc(MANY, sizeof(*list));
    int *order = calloc(MANY, sizeof(*order)), count, usable = 0;

    (void)state;
    assert_non_null(list);
    assert_non_null(order);
    for (int i = 0; i < MANY; i++)
        list[i] = (struct placement_candidate){(uint32_t)i + 1, E, 1, i, 2, 2, 0, 0};
    count = placement_victims(list, MANY, 5001, order);
    for (int i = 0; i < count; i++)
        usable += list[order[i]].usable;
    assert_int_equal(usable, 5002);
    assert_int_equal(list[order[0]].job, MANY); /* the youngest */
    free(list);
    free(order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distance),       cmocka_unit_test(test_base),
        cmocka_unit_test(test_extension),      cmocka_unit_test(test_keep),
        cmocka_unit_test(test_random_bases),   cmocka_unit_test(test_random_extensions),
        cmocka_unit_test(test_victims),        cmocka_unit_test(test_smallest_loss),
        cmocka_unit_test(test_node_counts),    cmocka_unit_test(test_passes_over),
        cmocka_unit_test(test_random_victims), cmocka_unit_test(test_many_victims),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("placement", tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/nearest: which nodes are nearest; by table, and random trees against all sets of nodes. */
#include "lib/nearest.h"

#include <stdbool.h>

#include "tests/unit/support.h"

#define NODES 12
#define NONE  PLACEMENT_NONE

/* Three leaf switches (1 to 3) of four nodes; the first two below switch 4, all below 0. */
static const int tree_parent[] = {NONE, 4, 4, 0, 0};
static const int tree_leaf[NODES] = {1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
static const int one_shape[NODES] = {0};
static const struct placement_map tree = {NODES, one_shape, tree_leaf, 5, tree_parent};
static const struct placement_map no_tree = {NODES, one_shape, tree_leaf, 0, NULL};

static void read_set(const char *text, bool *set)
{
    for (int i = 0; i < NODES; i++)
        set[i] = text[i] == '#';
}

static void test_table(void **state)
{
    static const struct {
        const char *what;
        const struct placement_map *map;
        const char *own, *idle, *free;
        int count, growth, leaves;
        const char *expected;
    } table[] = {
        {"beside it", &tree, "##..........", "..##########", "..##########", 2, 0, 1,
         "..##........"},
        {"what is left beside it, and no more elsewhere than need be", &tree, "###.........",
         "...#.###....", "...#.###....", 2, 0, 2, "...#.#......"},
        {"where most of it is", &tree, "##..#.......", "..##.###....", "..##.###....", 2, 0, 1,
         "..##........"},
        {"nodes that are kept for others are as near", &tree, "##..........", "..##########",
         "....########", 1, 0, 1, "..#........."},
        {"of equally near ones those that are not kept", &tree, "##..........", "..##########",
         "...#########", 1, 0, 1, "...#........"},
        {"on the leaf with room for what is to come", &tree, "............", "##..##..####",
         "##..##..####", 1, 2, 1, "........#..."},
        {"and little room beyond it", &tree, "............", "####.###..##", "####.###..##", 1, 1,
         1, "..........#."},
        {"below the next switch", &tree, "####........", "....##..####", "....##..####", 2, 4, 1,
         "....##......"},
        {"too few", &tree, "####........", "....##......", "....##......", 3, 0, 0, "............"},
        {"without switches", &no_tree, "#...........", "..##..##....", "....#.##....", 2, 0, 1,
         "......##...."},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        bool own[NODES], idle[NODES], free[NODES], set[NODES], expected[NODES];

        read_set(table[i].own, own);
        read_set(table[i].idle, idle);
        read_set(table[i].free, free);
        read_set(table[i].expected, expected);
        print_message("# %s\n", table[i].what);
        assert_int_equal(
            nearest_nodes(table[i].map, idle, free, own, table[i].count, table[i].growth, set),
            table[i].leaves);
        assert_memory_equal(set, expected, sizeof(set));
    }
}

/* ---- random trees ---------------------------------------------------------------------------- */

struct cluster {
    int shape[NODES], leaf[NODES], parent[8];
    struct placement_map map;
};

static void make_cluster(struct cluster *cluster, uint64_t *seed)
{
    int switches = (int)random_below(seed, 8);

    for (int i = 0; i < switches; i++)
        cluster->parent[i] = (int)random_below(seed, (uint32_t)i + 1) - 1;
    for (int i = 0; i < NODES; i++) {
        cluster->shape[i] = 0;
        cluster->leaf[i] = (int)random_below(seed, (uint32_t)switches + 1) - 1;
    }
    cluster->map = (struct placement_map){NODES, cluster->shape, cluster->leaf, switches,
                                          cluster->parent};
}

static int sum_of_distances(const struct placement_map *map, const bool *own, const bool *set)
{
    int sum = 0;

    for (int a = 0; a < NODES; a++)
        for (int b = a + 1; b < NODES; b++)
            if ((own[a] || set[a]) && (own[b] || set[b]))
                sum += placement_distance(map, a, b);
    return sum;
}

/* The least sum of all sets of count idle nodes, INT32_MAX if there is none. */
static int least_sum(const struct placement_map *map, const bool *own, const bool *idle, int count)
{
    int least = INT32_MAX;

    for (int number = 0; number < 1 << NODES; number++) {
        bool set[NODES], possible = __builtin_popcount((unsigned)number) == count;

        for (int i = 0; i < NODES && possible; i++) {
            set[i] = number >> i & 1;
            possible = !set[i] || idle[i];
        }
        if (possible) {
            int sum = sum_of_distances(map, own, set);

            least = sum < least ? sum : least;
        }
    }
    return least;
}

static void test_random(void **state)
{
    uint64_t seed = 2026;
    int apart = 0;

    (void)state;
    for (int round = 0; round < 1500; round++) {
        bool own[NODES], idle[NODES], free[NODES], set[NODES];
        int count = 1 + (int)random_below(&seed, 6), growth = (int)random_below(&seed, 4);
        int least, leaves, chosen = 0;
        struct cluster cluster;

        make_cluster(&cluster, &seed);
        for (int i = 0; i < NODES; i++) {
            own[i] = random_below(&seed, 4) == 0;
            idle[i] = !own[i] && random_below(&seed, 3) != 0;
            free[i] = idle[i] && random_below(&seed, 3) != 0;
        }
        least = least_sum(&cluster.map, own, idle, count);
        leaves = nearest_nodes(&cluster.map, idle, free, own, count, growth, set);
        assert_int_equal(leaves > 0, least < INT32_MAX);
        if (leaves == 0)
            continue;
        for (int i = 0; i < NODES; i++) {
            assert_true(!set[i] || idle[i]);
            chosen += set[i];
        }
        assert_int_equal(chosen, count);
        assert_int_equal(sum_of_distances(&cluster.map, own, set), least);
        apart += leaves > 1;
    }
    assert_true(apart > 200);
}

/* As many nodes as a large cluster has: quickly, or not at all. */
static void test_large(void **state)
{
    enum { MANY = 10000, LEAF = 40, LEAVES = MANY / LEAF };
    static int shape[MANY], leaf[MANY], parent[LEAVES + 1];
    static bool own[MANY], idle[MANY], set[MANY];
    const struct placement_map map = {MANY, shape, leaf, LEAVES + 1, parent};

    (void)state;
    for (int i = 0; i < MANY; i++) {
        leaf[i] = 1 + i / LEAF;
        idle[i] = i % 3 != 0;
        own[i] = i % 3 == 0 && i < LEAF;
    }
    parent[0] = NONE;
    assert_int_equal(nearest_nodes(&map, idle, idle, own, 100, 0, set), 4);
    for (int i = 0; i < LEAF; i++)
        assert_true(set[i] == idle[i]);
    assert_int_equal(nearest_nodes(&map, idle, idle, own, 6000, 0, set), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_large),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("nearest", tests, NULL, NULL);
}

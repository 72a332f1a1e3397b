/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The order of nodes along a tree of switches (lib/tree_order.c). */
#include "tests/unit/support.h"

#include <stdbool.h>

#include "lib/text.h"
#include "lib/tree_order.h"

#define NODES_MAX 12

static void test_path(void **state)
{
    static const struct {
        const char *address, *pattern, *path;
    } cases[] = {
        {"s0.s1.n1", "switch.switch.node", "s0.s1"},
        {"s0.n1", "switch.node", "s0"},
        {"s0.n1.cluster.site", "switch.node", "s0"},
        {"s0.[s1-s2].n1", "switch.switch.node", "s0.[s1-s2]"},
        {"b1.n1", "block.node", "b1"},
        {"n1", "node", ""}, /* no tree */
        {"n1", "", ""},
        {"s0.s1.n1", "switch.switch", ""},
        {"s0.n1", "switch.switch.node", ""}, /* less than the pattern says */
        {"n1", "switch.node", ""},
        {"", "switch.node", ""},
        {"s0.n1", NULL, ""},
        {NULL, "switch.node", ""},
        {NULL, NULL, ""},
        {"s0.n1", ".node", ""},
        {".s1.n1", "switch.switch.node", ""},
    };
    char path[TREE_PATH_MAX], address[2 * TREE_PATH_MAX];

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_string_equal(tree_path(cases[i].address, cases[i].pattern, path), cases[i].path);
    memset(address, 's', sizeof(address));
    strcpy(address + sizeof(address) - 4, ".n1");
    assert_string_equal(tree_path(address, "switch.node", path), "");
}

static void test_order(void **state)
{
    static const struct {
        const char *paths[NODES_MAX], *first, *last, *expected;
    } cases[] = {
        {{NULL}, "", "", ""},
        {{"t.a"}, "", "", "0"},
        /* without a tree nothing changes */
        {{"", ""}, "", "", "0 1"},
        /* leaves together, in the order of their names, nodes of a leaf as they were */
        {{"t.b", "t.a", "t.b", "t.a"}, "", "", "1 3 0 2"},
        {{"t.s10", "t.s9", "t.s10", "t.s1"}, "", "", "3 1 0 2"},
        {{"t.a", "t.ab", "t.a"}, "", "", "0 2 1"},
        /* begin where the ring comes from, end where it goes to */
        {{"t.a", "t.b", "t.c", "t.b"}, "t.b", "", "1 3 0 2"},
        {{"t.a", "t.b", "t.c", "t.d"}, "t.c", "t.a", "2 1 3 0"},
        {{"t.a", "t.b", "t.c"}, "t.b", "t.b", "1 0 2"},
        {{"t.a", "t.b"}, "t.x", "u.a", "0 1"},
        /* several levels: the nearest of the upper level first */
        {{"t.x.a", "t.y.c", "t.x.b", "t.y.d"}, "t.y.d", "t.x.a", "3 1 2 0"},
        {{"t.x.a", "t.y.c", "t.x.b", "t.y.d"}, "t.x.z", "t.x.a", "2 1 3 0"},
        /* who is not known comes last */
        {{"", "t.b", "t.a"}, "", "t.b", "0 2 1"},
        {{"t", "t.a", "t.b"}, "", "", "1 2 0"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int order[NODES_MAX], count = 0;
        char text[64] = "";

        while (count < NODES_MAX && cases[i].paths[count] != NULL)
            count++;
        tree_order(cases[i].paths, count, cases[i].first, cases[i].last, order);
        for (int k = 0; k < count; k++)
            text_append(text, sizeof(text), "%s%d", k > 0 ? " " : "", order[k]);
        assert_string_equal(text, cases[i].expected);
    }
}

static void test_no_path_is_an_empty_one(void **state)
{
    const char *paths[] = {NULL, "t.b", "", "t.a"};
    int order[4];

    (void)state;
    tree_order(paths, 4, NULL, NULL, order);
    assert_int_equal(order[0], 3);
    assert_int_equal(order[1], 1);
    assert_int_equal(order[2], 0);
    assert_int_equal(order[3], 2);
}

/* ---- random trees ---------------------------------------------------------------------------- */

static char *random_path(uint64_t *seed, int depth, char *text)
{
    text[0] = '\0';
    for (int i = 0; i < depth; i++)
        text_append(text, 32, "%s%c", i > 0 ? "." : "",
                    i == 0 ? 't' : 'a' + (char)random_below(seed, 3));
    return text;
}

static int count_parts(const char *path, size_t len)
{
    int count = len > 0;

    for (size_t i = 0; i < len; i++)
        count += path[i] == '.';
    return count;
}

/* The number of links between two nodes, up and down the tree; 0 below the same leaf switch. */
static int distance(const char *a, const char *b)
{
    size_t shared = 0;

    for (size_t i = 0;; i++) {
        if ((a[i] == '.' || a[i] == '\0') && (b[i] == '.' || b[i] == '\0'))
            shared = i;
        if (a[i] != b[i] || a[i] == '\0')
            break;
    }
    return count_parts(a, strlen(a)) + count_parts(b, strlen(b)) - 2 * count_parts(a, shared);
}

static int ring(const char *const *paths, const int *order, int count, const char *first,
                const char *last)
{
    int links = distance(first, paths[order[0]]);

    for (int i = 1; i < count; i++)
        links += distance(paths[order[i - 1]], paths[order[i]]);
    return links + distance(paths[order[count - 1]], last);
}

/* The fewest links of any order. */
static int best_ring(const char *const *paths, int *order, int at, int count, const char *first,
                     const char *last)
{
    int best = 1 << 30;

    if (at == count)
        return ring(paths, order, count, first, last);
    for (int i = at; i < count; i++) {
        int swap = order[at], links;

        order[at] = order[i];
        order[i] = swap;
        links = best_ring(paths, order, at + 1, count, first, last);
        if (links < best)
            best = links;
        order[i] = order[at];
        order[at] = swap;
    }
    return best;
}

/* No order of newcomers has a shorter way around the ring from the last that stays back to rank
 * 0. */
static void test_no_order_is_better(void **state)
{
    uint64_t seed = 99;

    (void)state;
    for (int round = 0; round < 400; round++) {
        char text[NODES_MAX][32], first[32], last[32];
        const char *paths[NODES_MAX];
        int depth = 2 + (int)random_below(&seed, 3), count = 1 + (int)random_below(&seed, 7);
        int order[NODES_MAX], all[NODES_MAX];

        random_path(&seed, depth, first);
        random_path(&seed, depth, last);
        for (int i = 0; i < count; i++) {
            paths[i] = random_path(&seed, depth, text[i]);
            all[i] = i;
        }
        tree_order(paths, count, first, last, order);
        assert_int_equal(ring(paths, order, count, first, last),
                         best_ring(paths, all, 0, count, first, last));
    }
}

/* Every node once, those of a leaf together and as they were. */
static void test_together(void **state)
{
    uint64_t seed = 5;

    (void)state;
    for (int round = 0; round < 1000; round++) {
        char text[NODES_MAX][32], first[32], last[32];
        const char *paths[NODES_MAX];
        int depth = 1 + (int)random_below(&seed, 4), count = (int)random_below(&seed, NODES_MAX);
        int order[NODES_MAX];
        bool seen[NODES_MAX] = {false};

        random_path(&seed, depth, first);
        random_path(&seed, depth, last);
        for (int i = 0; i < count; i++)
            paths[i] = random_path(&seed, depth, text[i]);
        tree_order(paths, count, first, last, order);
        for (int i = 0; i < count; i++) {
            assert_false(seen[order[i]]);
            seen[order[i]] = true;
        }
        for (int i = 0; i < count; i++)
            for (int k = i + 2; k < count; k++)
                if (strcmp(paths[order[i]], paths[order[k]]) == 0)
                    assert_string_equal(paths[order[k - 1]], paths[order[k]]);
        for (int i = 1; i < count; i++)
            assert_true(strcmp(paths[order[i - 1]], paths[order[i]]) != 0 ||
                        order[i - 1] < order[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_path),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_no_order_is_better),
        cmocka_unit_test(test_together),
        cmocka_unit_test(test_no_path_is_an_empty_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

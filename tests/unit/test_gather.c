/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/gather: parts in any order and in pieces, what is refused, nodes that are lost, and random
 * collectives against what was given. */
#include "lib/gather.h"

#include "tests/unit/support.h"

static const int all[] = {0, 1, 2}, pair[] = {0, 2};

static enum gather_result give(struct gather *g, const char *key, const int *nodes, int count,
                               int node, const char *text)
{
    return gather_add(g, key, nodes, count, node, text, strlen(text), true, NULL);
}

static void assert_refused(struct gather *g, const char *key, const int *nodes, int count, int node,
                           const char *text, const char *why)
{
    struct error err = {""};

    assert_int_equal(gather_add(g, key, nodes, count, node, text, strlen(text), true, &err),
                     GATHER_REFUSED);
    assert_one_line(err.text);
    if (strstr(err.text, why) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", err.text, why);
}

static void assert_part(struct gather *g, const char *key, int node, const char *expected)
{
    size_t len;
    const char *data = gather_part(g, key, node, &len);

    assert_int_equal(len, strlen(expected));
    if (len > 0)
        assert_memory_equal(data, expected, len);
}

static void test_all_give_their_part(void **state)
{
    struct gather *g = gather_create(3);
    int count;

    (void)state;
    assert_int_equal(give(g, "k", all, 3, 2, "two"), GATHER_WAITING);
    assert_int_equal(give(g, "k", all, 3, 0, ""), GATHER_WAITING);
    assert_int_equal(give(g, "k", all, 3, 1, "one"), GATHER_COMPLETE);
    assert_memory_equal(gather_nodes(g, "k", &count), all, sizeof(all));
    assert_int_equal(count, 3);
    assert_part(g, "k", 0, "");
    assert_part(g, "k", 1, "one");
    assert_part(g, "k", 2, "two");
    gather_remove(g, "k");
    assert_null(gather_nodes(g, "k", &count));
    assert_int_equal(count, 0);
    /* The same key again is another collective. */
    assert_int_equal(give(g, "k", pair, 2, 0, "a"), GATHER_WAITING);
    gather_destroy(g);
}

static void test_pieces_are_joined(void **state)
{
    struct gather *g = gather_create(3);

    (void)state;
    assert_int_equal(gather_add(g, "k", pair, 2, 0, "ab", 2, false, NULL), GATHER_WAITING);
    assert_int_equal(give(g, "k", pair, 2, 2, "x"), GATHER_WAITING);
    assert_int_equal(gather_add(g, "k", pair, 2, 0, "cd", 2, false, NULL), GATHER_WAITING);
    assert_int_equal(give(g, "k", pair, 2, 0, ""), GATHER_COMPLETE);
    assert_part(g, "k", 0, "abcd");
    gather_destroy(g);
}

static void test_collectives_do_not_mix(void **state)
{
    struct gather *g = gather_create(3);

    (void)state;
    assert_int_equal(give(g, "a", all, 3, 0, "a0"), GATHER_WAITING);
    assert_int_equal(give(g, "b", pair, 2, 0, "b0"), GATHER_WAITING);
    assert_int_equal(give(g, "b", pair, 2, 2, "b2"), GATHER_COMPLETE);
    assert_part(g, "a", 0, "a0");
    assert_part(g, "a", 2, "");
    gather_remove(g, "b");
    assert_part(g, "a", 0, "a0");
    gather_destroy(g);
}

static void test_refusals(void **state)
{
    struct gather *g = gather_create(3);
    static const int unsorted[] = {1, 0}, twice[] = {1, 1}, outside[] = {0, 3}, below[] = {-1, 0};

    (void)state;
    assert_refused(g, "k", unsorted, 2, 0, "", "does not have");
    assert_refused(g, "k", twice, 2, 1, "", "does not have");
    assert_refused(g, "k", outside, 2, 0, "", "does not have");
    assert_refused(g, "k", below, 2, 0, "", "does not have");
    assert_refused(g, "k", all, 0, 0, "", "does not have");
    assert_refused(g, "k", pair, 2, 1, "", "takes no part");
    assert_int_equal(gather_add(g, "k", pair, 2, 0, "", 0, false, NULL), GATHER_REFUSED);
    assert_null(gather_with(g, 0)); /* nothing is left of what was refused */
    assert_int_equal(give(g, "k", pair, 2, 0, "a"), GATHER_WAITING);
    assert_refused(g, "k", pair, 2, 0, "b", "already");
    assert_refused(g, "k", all, 3, 2, "b", "do not agree");
    assert_part(g, "k", 0, "a");
    gather_destroy(g);
}

static void test_a_flood_is_bounded(void **state)
{
    struct gather *g = gather_create(3);
    size_t much = GATHER_BYTES_MAX / 2 + 1;
    char key[16], *data = calloc(1, much);

    (void)state;
    for (int i = 0; i < GATHER_OPEN_MAX; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        assert_int_equal(give(g, key, all, 3, 0, "x"), GATHER_WAITING);
    }
    assert_refused(g, "one more", all, 3, 0, "x", "no more");
    /* Others are not concerned, and what has been removed counts no more. */
    assert_int_equal(give(g, "one more", all, 3, 1, "x"), GATHER_WAITING);
    gather_remove(g, "k0");
    assert_int_equal(give(g, "one more", all, 3, 0, "x"), GATHER_WAITING);
    assert_int_equal(gather_add(g, "a", all, 3, 2, data, much, false, NULL), GATHER_WAITING);
    assert_int_equal(gather_add(g, "b", all, 3, 2, data, much, false, NULL), GATHER_REFUSED);
    assert_int_equal(gather_add(g, "a", all, 3, 2, data, much, false, NULL), GATHER_REFUSED);
    gather_remove(g, "a");
    assert_int_equal(gather_add(g, "b", all, 3, 2, data, much, false, NULL), GATHER_WAITING);
    free(data);
    gather_destroy(g);
}

static void test_a_node_is_lost(void **state)
{
    struct gather *g = gather_create(3);

    (void)state;
    give(g, "a", all, 3, 0, "");
    give(g, "b", pair, 2, 0, "");
    give(g, "c", pair, 2, 2, "");
    give(g, "c", pair, 2, 0, "");
    assert_string_equal(gather_with(g, 1), "a");
    gather_remove(g, "a");
    assert_null(gather_with(g, 1));
    assert_string_equal(gather_with(g, 2), "b"); /* c is complete */
    gather_remove(g, "b");
    assert_null(gather_with(g, 2));
    gather_destroy(g);
}

/* Each node gives the parts of several collectives in an order of its own, in random pieces:
 * each is complete with the last, and holds exactly what was given. */
#define NODES 5
#define KEYS  6

static void random_round(uint64_t *seed)
{
    struct gather *g = gather_create(NODES);
    char given[KEYS][NODES][64] = {{{0}}};
    int nodes[KEYS][NODES], count[KEYS] = {0}, missing[KEYS];
    bool done[KEYS][NODES] = {{false}};
    int left = 0;

    for (int k = 0; k < KEYS; k++) {
        for (int n = 0; n < NODES; n++)
            if (random_below(seed, 2) || (n == NODES - 1 && count[k] == 0))
                nodes[k][count[k]++] = n;
        missing[k] = count[k];
        left += count[k];
    }
    while (left > 0) {
        int k = (int)random_below(seed, KEYS);
        int n = nodes[k][random_below(seed, (uint32_t)count[k])];
        bool last = random_below(seed, 2) || strlen(given[k][n]) > 48;
        char key[8], piece[9] = "";
        size_t len = random_below(seed, 8) + !last;

        if (done[k][n])
            continue;
        for (size_t i = 0; i < len; i++)
            piece[i] = (char)('a' + random_below(seed, 26));
        strcat(given[k][n], piece);
        snprintf(key, sizeof(key), "k%d", k);
        missing[k] -= last;
        left -= last;
        done[k][n] = last;
        assert_int_equal(gather_add(g, key, nodes[k], count[k], n, piece, len, last, NULL),
                         missing[k] == 0 ? GATHER_COMPLETE : GATHER_WAITING);
        if (missing[k] > 0)
            continue;
        for (int i = 0; i < count[k]; i++)
            assert_part(g, key, nodes[k][i], given[k][nodes[k][i]]);
        gather_remove(g, key);
    }
    for (int n = 0; n < NODES; n++)
        assert_null(gather_with(g, n));
    gather_destroy(g);
}

static void test_random(void **state)
{
    uint64_t seed = 4;

    (void)state;
    for (int i = 0; i < 500; i++)
        random_round(&seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_give_their_part),
        cmocka_unit_test(test_pieces_are_joined),
        cmocka_unit_test(test_collectives_do_not_mix),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_a_flood_is_bounded),
        cmocka_unit_test(test_a_node_is_lost),
        cmocka_unit_test(test_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

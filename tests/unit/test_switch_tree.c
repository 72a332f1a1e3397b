/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/switch_tree: switches from the addresses of nodes. */
#include "tests/unit/support.h"

#include "lib/placement.h"
#include "lib/switch_tree.h"

#define THREE "switch.switch.node"

static void nodes_of_one_switch_share_it(void **state)
{
    struct switch_tree tree = {0};

    (void)state;
    assert_int_equal(switch_tree_add(&tree, "s0.s1.n1", THREE), 1);
    assert_int_equal(switch_tree_add(&tree, "s0.s2.n3", THREE), 2);
    assert_int_equal(switch_tree_add(&tree, "s0.s1.n2", THREE), 1);
    assert_int_equal(tree.count, 3);
    assert_string_equal(tree.names[0], "s0");
    assert_string_equal(tree.names[2], "s2");
    assert_int_equal(tree.parents[0], PLACEMENT_NONE);
    assert_int_equal(tree.parents[1], 0);
    assert_int_equal(tree.parents[2], 0);
    switch_tree_clear(&tree);
    assert_int_equal(tree.count, 0);
    switch_tree_clear(&tree);
}

static void a_node_without_a_switch_has_none(void **state)
{
    struct switch_tree tree = {0};

    (void)state;
    assert_int_equal(switch_tree_add(&tree, "n1", "node"), PLACEMENT_NONE);
    assert_int_equal(switch_tree_add(&tree, "..n1", THREE), PLACEMENT_NONE);
    assert_int_equal(switch_tree_add(&tree, "", ""), PLACEMENT_NONE);
    assert_int_equal(switch_tree_add(&tree, "n1", THREE), PLACEMENT_NONE);
    assert_int_equal(tree.count, 0);
    /* Its name may have dots. */
    assert_int_equal(switch_tree_add(&tree, "n1.rack.site", "node"), PLACEMENT_NONE);
    assert_int_equal(switch_tree_add(&tree, "s1.n1.rack.site", "switch.node"), 0);
    assert_int_equal(tree.count, 1);
    switch_tree_clear(&tree);
}

static void a_level_may_be_left_out(void **state)
{
    struct switch_tree tree = {0};

    (void)state;
    assert_int_equal(switch_tree_add(&tree, ".s1.n1", THREE), 0);
    assert_int_equal(tree.parents[0], PLACEMENT_NONE);
    assert_int_equal(switch_tree_add(&tree, "s0..n2", THREE), 1);
    assert_int_equal(tree.count, 2);
    switch_tree_clear(&tree);
}

static void of_several_switches_the_first_counts(void **state)
{
    static const char *const addresses[] = {"s[1-2].n1", "s[1,3].n2", "s1,t[1-9].n3", "s1.n4"};
    struct switch_tree tree = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++)
        assert_int_equal(switch_tree_add(&tree, addresses[i], "switch.node"), 0);
    assert_string_equal(tree.names[0], "s1");
    assert_int_equal(switch_tree_add(&tree, "r[01-02]s[3-4]x.n5", "switch.node"), 1);
    assert_string_equal(tree.names[1], "r01s3x");
    switch_tree_clear(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_of_one_switch_share_it),
        cmocka_unit_test(a_node_without_a_switch_has_none),
        cmocka_unit_test(a_level_may_be_left_out),
        cmocka_unit_test(of_several_switches_the_first_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/spending: node hours and their cost, and what nodes cost after they were given back. */
#include "tests/unit/support.h"

#include "lib/spending.h"

static void test_node_hours(void **state)
{
    struct spending spending = {0};

    (void)state;
    assert_int_equal(spending_set(&spending, 1000, "base", 1, 2, 0), 0);
    assert_int_equal(spending_set(&spending, 1000, "spot", 4, 0.5, 0), 0);
    assert_near(spending_per_hour(&spending), 4, 1e-9);
    spending_run(&spending, 1000 + 1800);
    assert_near(spending_cost(&spending), 2, 1e-9);
    assert_near(spending_hours(&spending, "spot"), 2, 1e-9);
    assert_near(spending_hours(&spending, "nobody"), 0, 0);
    spending_run(&spending, 1000); /* a clock that goes back counts nothing */
    assert_near(spending_cost(&spending), 2, 1e-9);
}

static void test_new_price_counts_from_now(void **state)
{
    struct spending spending = {0};

    (void)state;
    spending_set(&spending, 0, "spot", 1, 1, 0);
    spending_set(&spending, 3600, "spot", 1, 3, 0);
    spending_run(&spending, 7200);
    assert_near(spending_cost(&spending), 4, 1e-9);
}

static void test_nodes_cost_until_they_are_down(void **state)
{
    struct spending spending = {0};

    (void)state;
    spending_set(&spending, 0, "spot", 4, 1, 900);
    spending_set(&spending, 3600, "spot", 2, 1, 900);
    assert_near(spending_cost(&spending), 4.5, 1e-9);
    assert_near(spending_hours(&spending, "spot"), 4.5, 1e-9);
    spending_set(&spending, 3600, "spot", 3, 1, 900); /* more nodes have no tail */
    assert_near(spending_cost(&spending), 4.5, 1e-9);
}

static void test_too_many_pools(void **state)
{
    struct spending spending = {0};
    char name[SPENDING_NAME_MAX + 2];

    (void)state;
    for (int i = 0; i < SPENDING_MAX; i++) {
        snprintf(name, sizeof(name), "pool%d", i);
        assert_int_equal(spending_set(&spending, 0, name, 1, 1, 0), 0);
    }
    assert_int_equal(spending_set(&spending, 3600, "another", 1, 1, 0), -1);
    assert_near(spending_cost(&spending), 0, 0);
    assert_int_equal(spending_set(&spending, 3600, "pool3", 0, 1, 0), 0);
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    spending.count = 0;
    assert_int_equal(spending_set(&spending, 3600, name, 1, 1, 0), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_node_hours),
        cmocka_unit_test(test_new_price_counts_from_now),
        cmocka_unit_test(test_nodes_cost_until_they_are_down),
        cmocka_unit_test(test_too_many_pools),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

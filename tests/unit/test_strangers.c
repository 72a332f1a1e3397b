/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A leader does not become a way to make slurmctld work. */
#include "tests/unit/support.h"

#include "lib/strangers.h"

static void test_seldom(void **state)
{
    struct strangers strangers = {0};

    (void)state;
    assert_true(strangers_ask(&strangers, 1001, 100));
    assert_false(strangers_ask(&strangers, 1001, 100 + STRANGERS_AGAIN - 1));
    assert_false(strangers_ask(&strangers, 1002, 100 + STRANGERS_PAUSE - 1));
    assert_true(strangers_ask(&strangers, 1002, 100 + STRANGERS_PAUSE));
    assert_true(strangers_ask(&strangers, 1001, 100 + STRANGERS_AGAIN));
}

static void test_many(void **state)
{
    struct strangers strangers = {0};
    int asked = 0;

    (void)state;
    for (double now = 1; now <= 600; now += 0.25)
        asked += strangers_ask(&strangers, (uint32_t)(now * 4), now);
    assert_in_range(asked, 100, 600 / STRANGERS_PAUSE + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seldom),
        cmocka_unit_test(test_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/speed: measured rates become monotone, and what lies between and beyond is estimated. */
#include "tests/unit/support.h"

#include <math.h>

#include "lib/speed.h"

static void test_nothing_measured(void **state)
{
    struct speed speed = {0};

    (void)state;
    assert_false(speed_known(&speed));
    assert_near(speed_at(&speed, 4), 0, 0);
    speed_add(&speed, 0, 1, 1);
    speed_add(&speed, 2, 0, 1);
    speed_add(&speed, 2, 1, 0);
    speed_add(&speed, 2, NAN, 1);
    speed_add(&speed, 2, INFINITY, 1);
    assert_false(speed_known(&speed));
}

static void test_one_size_is_linear(void **state)
{
    struct speed speed = {0};

    (void)state;
    speed_add(&speed, 4, 80, 10);
    assert_near(speed_at(&speed, 4), 8, 1e-9);
    assert_near(speed_at(&speed, 1), 2, 1e-9);
    assert_near(speed_at(&speed, 8), 16, 1e-9);
}

static void test_between_and_beyond(void **state)
{
    struct speed speed = {0};

    (void)state;
    speed_add(&speed, 8, 120, 10);
    speed_add(&speed, 4, 80, 10);
    assert_near(speed_at(&speed, 6), 10, 1e-9);
    assert_near(speed_at(&speed, 2), 4, 1e-9);
    assert_near(speed_at(&speed, 12), 16, 1e-9);
    /* Better than in proportion was a bad measurement: nobody counts on it. */
    speed_add(&speed, 9, 400, 10);
    assert_near(speed_at(&speed, 18), 80, 1e-9);
}

/* A larger job that was slower for a moment does not make fewer nodes the faster ones. */
static void test_monotone(void **state)
{
    struct speed speed = {0};

    (void)state;
    speed_add(&speed, 4, 80, 10);
    speed_add(&speed, 6, 180, 30);
    speed_add(&speed, 8, 140, 30);
    assert_near(speed_at(&speed, 4), (80 + 180 + 140) / 70.0, 1e-9);
    assert_near(speed_at(&speed, 8), (80 + 180 + 140) / 70.0, 1e-9);
}

static void test_old_measurements_fade(void **state)
{
    struct speed speed = {0};

    (void)state;
    speed_add(&speed, 4, 10 * SPEED_MEMORY, SPEED_MEMORY);
    speed_add(&speed, 4, 20 * SPEED_MEMORY / 2, SPEED_MEMORY / 2);
    assert_near(speed_at(&speed, 4), 15, 1e-9);
    speed_add(&speed, 4, 20 * SPEED_MEMORY, SPEED_MEMORY);
    assert_near(speed_at(&speed, 4), 20, 1e-9);
}

static void test_random(void **state)
{
    uint64_t seed = 7;

    (void)state;
    for (int round = 0; round < 200; round++) {
        struct speed speed = {0};

        for (int i = 0; i < 100; i++)
            speed_add(&speed, 1 + (int)random_below(&seed, 200), 1 + random_below(&seed, 1000),
                      1 + random_below(&seed, 5000));
        assert_true(speed.count <= SPEED_POINTS_MAX);
        for (int nodes = 1; nodes < 250; nodes++)
            assert_true(speed_at(&speed, nodes) <= speed_at(&speed, nodes + 1) + 1e-9);
        for (int i = 1; i < speed.count; i++)
            assert_true(speed.points[i - 1].nodes < speed.points[i].nodes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_measured),      cmocka_unit_test(test_one_size_is_linear),
        cmocka_unit_test(test_between_and_beyond),    cmocka_unit_test(test_monotone),
        cmocka_unit_test(test_old_measurements_fade), cmocka_unit_test(test_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

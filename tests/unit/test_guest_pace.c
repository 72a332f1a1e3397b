/* SPDX-License-Identifier: GPL-2.0-or-later */
/* No guest takes the leader's loop for itself. */
#include "tests/unit/support.h"

#include "lib/guest_pace.h"

/* How many messages of a user are taken from `from` until `until`, if it always has one more. */
static int taken(struct guest_pace *pace, uint32_t uid, double from, double until)
{
    double wait;
    int count = 0;

    for (double now = from; now<until; now += wait> 0 ? wait + 1e-6 : 0) {
        wait = guest_pace_wait(pace, uid, now);
        if (wait > 0)
            continue;
        guest_pace_take(pace, uid, now);
        count++;
    }
    return count;
}

static void test_burst_and_pace(void **state)
{
    struct guest_pace pace = {0};
    int in_a_minute = (int)(60 / GUEST_PACE_SECONDS);

    (void)state;
    assert_in_range(taken(&pace, 1001, 1000, 1060), in_a_minute + GUEST_PACE_BURST - 1,
                    in_a_minute + GUEST_PACE_BURST + 1);
    assert_true(guest_pace_wait(&pace, 1001, 1060) > 0);
    /* Another user does not wait for it. A long rest gives no more than a short one. */
    assert_true(guest_pace_wait(&pace, 1002, 1060) == 0);
    assert_in_range(taken(&pace, 1001, 9000, 9000.01), GUEST_PACE_BURST, GUEST_PACE_BURST + 1);
}

/* Who asks once in a while never waits. */
static void test_few(void **state)
{
    struct guest_pace pace = {0};

    (void)state;
    for (double now = 1; now < 200; now += 2 * GUEST_PACE_SECONDS) {
        assert_true(guest_pace_wait(&pace, 1001, now) == 0);
        guest_pace_take(&pace, 1001, now);
    }
}

/* Many users together have no more than so many places. One who is new gets the first that is
 * rested, and nobody loses the memory of what it has said. */
static void test_many(void **state)
{
    struct guest_pace pace = {0};

    (void)state;
    for (uint32_t uid = 0; uid < GUEST_PACE_USERS; uid++) {
        assert_in_range(taken(&pace, uid, 100, 100.001), GUEST_PACE_BURST, GUEST_PACE_BURST + 1);
        pace.due = 0; /* of places only */
    }
    assert_true(guest_pace_wait(&pace, 5000, 100.001) > 1);
    assert_true(guest_pace_wait(&pace, 7, 100.001) > 0);
    assert_true(guest_pace_wait(&pace, 5000, 100 + GUEST_PACE_BURST * GUEST_PACE_SECONDS + 1) == 0);
}

/* A thousand users have the time of four. */
static void test_all(void **state)
{
    struct guest_pace pace = {0};
    int count = 0;

    (void)state;
    for (int i = 0; i < 60000; i++) {
        double now = 1000 + i / 1000.0;
        uint32_t uid = (uint32_t)i % 1000;

        if (guest_pace_wait(&pace, uid, now) > 0)
            continue;
        guest_pace_take(&pace, uid, now);
        count++;
    }
    assert_in_range(count, 60 / GUEST_PACE_SECONDS * GUEST_PACE_SHARES,
                    (60 / GUEST_PACE_SECONDS + GUEST_PACE_BURST) * GUEST_PACE_SHARES + 1);
    /* A rest pays for it. */
    assert_true(guest_pace_wait(&pace, 5000, 1061) == 0);
}

static void test_connections(void **state)
{
    int all = 0, users = 0;

    (void)state;
    for (int own; guest_may_connect(0, all); users++)
        for (own = 0; guest_may_connect(own, all); own++)
            all++;
    assert_int_equal(all, GUEST_LINKS_ALL);
    assert_int_equal(users, GUEST_LINKS_ALL / GUEST_LINKS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_burst_and_pace), cmocka_unit_test(test_few),
        cmocka_unit_test(test_many),           cmocka_unit_test(test_all),
        cmocka_unit_test(test_connections),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

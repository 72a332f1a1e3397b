/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/drain_notices: which job is told when that one of its nodes has changed. */
#include "lib/drain_notices.h"
#include "tests/unit/support.h"

#define NONE 0

static void test_each_job_is_told_once_in_a_while(void **state)
{
    static const struct {
        double now;
        uint32_t adds[3]; /* jobs of which a node has changed */
        uint32_t told[3]; /* at that moment */
    } table[] = {
        {100, {NONE}, {NONE}},
        {100, {7, 7, 7}, {7}}, /* three nodes of one job */
        {101, {8}, {8}},       /* another one does not wait for it */
        {102, {7}, {NONE}},    /* not so soon … */
        {104, {7, 8}, {NONE}},
        {105, {NONE}, {7}}, /* … but later, once */
        {106, {NONE}, {8}},
        {200, {NONE}, {NONE}},       /* nothing is repeated */
        {201, {9, 8, 7}, {9, 8, 7}}, /* in the order in which they came */
        {203, {7}, {NONE}},
        {204, {9}, {NONE}},
        {206.5, {NONE}, {7, 9}},
    };
    struct drain_notices notices = {0};

    (void)state;
    for (size_t row = 0; row < sizeof(table) / sizeof(table[0]); row++) {
        for (int i = 0; i < 3 && table[row].adds[i] != NONE; i++)
            drain_notices_add(&notices, table[row].adds[i], table[row].now);
        for (int i = 0; i < 3; i++) {
            uint32_t job = drain_notices_next(&notices, table[row].now);

            if (job != table[row].told[i])
                fail_msg("row %zu: job %u is told, not %u", row, job, table[row].told[i]);
            if (job == NONE)
                break;
        }
    }
    drain_notices_clear(&notices);
}

static void test_many_jobs_are_spread_out(void **state)
{
    struct drain_notices notices = {0};
    int told[1001] = {0};
    double now = 50;

    (void)state;
    for (uint32_t job = 1; job <= 1000; job++)
        drain_notices_add(&notices, job, now);
    for (int second = 0; second < 25; second++, now += 1) {
        uint32_t job;
        int count = 0;

        for (; (job = drain_notices_next(&notices, now)) != NONE; count++)
            told[job]++;
        assert_int_equal(count, DRAIN_NOTICES_MOST);
    }
    for (uint32_t job = 1; job <= 1000; job++)
        assert_int_equal(told[job], 1);
    assert_int_equal(drain_notices_next(&notices, now), NONE);
    /* Those that were told long ago are not remembered. */
    assert_int_equal(drain_notices_next(&notices, now + DRAIN_NOTICES_PAUSE), NONE);
    assert_int_equal(notices.count, 0);
    /* The clock has been set back: nobody waits for it. */
    drain_notices_add(&notices, 7, 1);
    assert_int_equal(drain_notices_next(&notices, 1), 7);
    drain_notices_clear(&notices);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_job_is_told_once_in_a_while),
        cmocka_unit_test(test_many_jobs_are_spread_out),
    };

    return cmocka_run_group_tests_name("notices", tests, NULL, NULL);
}

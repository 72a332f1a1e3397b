/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where a leader may listen: the candidate ports of an incarnation. */
#include "common/link.h"
#include "tests/unit/support.h"

static void test_candidates_differ(void **state)
{
    (void)state;
    for (uint32_t job = 1; job < 2000; job++) {
        int seen[LINK_CANDIDATES];

        for (int k = 0; k < LINK_CANDIDATES; k++) {
            seen[k] = link_candidate_port(job, job % 3, k, 23000, 27999);
            assert_in_range(seen[k], 23000, 27999);
            for (int i = 0; i < k; i++)
                assert_int_not_equal(seen[i], seen[k]);
        }
    }
}

static void test_candidates_of_neighbours_differ(void **state)
{
    int same = 0;

    (void)state;
    for (uint32_t job = 1; job < 1000; job++) {
        same += link_candidate_port(job, 0, 0, 23000, 27999) ==
                link_candidate_port(job + 1, 0, 0, 23000, 27999);
        same += link_candidate_port(job, 0, 0, 23000, 27999) ==
                link_candidate_port(job, 1, 0, 23000, 27999);
    }
    assert_in_range(same, 0, 5); /* of 2000, in 5000 ports */
}

/* Both sides of a job may run different builds: the permutation is part of the protocol. */
static void test_candidates_are_fixed(void **state)
{
    (void)state;
    assert_int_equal(link_candidate_port(4711, 0, 0, 23000, 27999), 25523);
    assert_int_equal(link_candidate_port(4711, 0, 1, 23000, 27999), 26830);
    assert_int_equal(link_candidate_port(4711, 1, 0, 23000, 27999), 24667);
}

static void test_small_ranges(void **state)
{
    (void)state;
    for (int k = 0; k < LINK_CANDIDATES; k++) {
        assert_int_equal(link_candidate_port(1, 0, k, 25000, 25000), 25000);
        assert_in_range(link_candidate_port(77, 0, k, 25000, 25001), 25000, 25001);
        assert_in_range(link_candidate_port(UINT32_MAX, UINT32_MAX, k, 1, 65535), 1, 65535);
    }
    for (int k = 1; k < 5; k++)
        assert_int_not_equal(link_candidate_port(3, 0, 0, 25000, 25004),
                             link_candidate_port(3, 0, k, 25000, 25004));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_candidates_differ),
        cmocka_unit_test(test_candidates_of_neighbours_differ),
        cmocka_unit_test(test_candidates_are_fixed),
        cmocka_unit_test(test_small_ranges),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

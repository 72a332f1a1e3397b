/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/admitted: what was admitted a moment ago counts until its job is seen, or is too old. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/admitted.h"

#define NOW 1700000000000000

static struct admitted *nothing(void)
{
    struct admitted *admitted = calloc(1, sizeof(*admitted));

    assert_non_null(admitted);
    return admitted;
}

static uint64_t add(struct admitted *admitted, uint32_t uid, uint32_t base, uint32_t restarts,
                    int nodes, int64_t now)
{
    const struct admitted_entry extension = {
        .uid = uid, .base = base, .restarts = restarts, .pool = -1, .nodes = nodes};

    return admitted_add(admitted, &extension, now);
}

static void an_admission_counts_until_its_job_is_seen(void **state)
{
    struct admitted *admitted = nothing();
    uint64_t first = add(admitted, 1000, 12, 0, 2, NOW), second, other;

    (void)state;
    second = add(admitted, 1000, 12, 0, 3, NOW);
    other = add(admitted, 1000, 12, 1, 7, NOW + 1);
    add(admitted, 1000, 13, 0, 9, NOW + 1);
    assert_true(first < second && second < other);
    assert_int_equal(admitted_nodes(admitted, 12, 0, NOW + 1), 5);
    assert_int_equal(admitted_nodes(admitted, 12, 1, NOW + 1), 7);
    admitted_seen(admitted, first, NOW + 1);
    admitted_seen(admitted, first, NOW + 1);
    admitted_seen(admitted, 0, NOW + 1);
    assert_int_equal(admitted_nodes(admitted, 12, 0, NOW + 1), 3);
    admitted_seen(admitted, second, NOW + 1);
    assert_int_equal(admitted_nodes(admitted, 12, 0, NOW + 1), 0);
    free(admitted);
}

static void an_admission_that_becomes_no_job_counts_for_a_few_seconds(void **state)
{
    struct admitted *admitted = nothing();

    (void)state;
    add(admitted, 1000, 12, 0, 2, NOW);
    assert_int_equal(admitted_nodes(admitted, 12, 0, NOW + ADMITTED_LIMIT - 1), 2);
    assert_int_equal(admitted_nodes(admitted, 12, 0, NOW + ADMITTED_LIMIT), 0);
    assert_int_equal(admitted_nodes(admitted, 12, 0, NOW - 1), 0);
    free(admitted);
}

static void the_oldest_is_forgotten_first(void **state)
{
    struct admitted *admitted = nothing();

    (void)state;
    for (int i = 0; i < ADMITTED_MAX + 3; i++)
        add(admitted, 1000, 12, 0, 1, NOW);
    assert_int_equal(admitted_nodes(admitted, 12, 0, NOW), ADMITTED_MAX);
    for (int i = 0; i < ADMITTED_MAX; i++)
        add(admitted, 1000, 13, 0, INT32_MAX, NOW);
    assert_int_equal(admitted_nodes(admitted, 12, 0, NOW), 0);
    assert_int_equal(admitted_nodes(admitted, 13, 0, NOW), (int64_t)ADMITTED_MAX * INT32_MAX);
    free(admitted);
}

static void a_flood_drives_out_nobody_elses(void **state)
{
    struct admitted *admitted = nothing();

    (void)state;
    for (int i = 0; i < 3; i++)
        add(admitted, 1000, 12, 0, 1, NOW);
    for (int i = 0; i < 3 * ADMITTED_MAX; i++)
        add(admitted, 1001, 13, 0, 1, NOW + 1);
    assert_int_equal(admitted_nodes(admitted, 12, 0, NOW + 1), 3);
    assert_int_equal(admitted_nodes(admitted, 13, 0, NOW + 1), ADMITTED_MAX - 3);
    for (int i = 0; i < 4; i++)
        add(admitted, 1000, 12, 0, 1, NOW + 1);
    assert_int_equal(admitted_nodes(admitted, 12, 0, NOW + 1), 7);
    assert_int_equal(admitted_nodes(admitted, 13, 0, NOW + 1), ADMITTED_MAX - 7);
    /* What is old leaves its place to anybody. */
    for (int i = 0; i < ADMITTED_MAX; i++)
        add(admitted, 1002, 14, 0, 1, NOW + 1 + ADMITTED_LIMIT);
    assert_int_equal(admitted_nodes(admitted, 14, 0, NOW + 1 + ADMITTED_LIMIT), ADMITTED_MAX);
    free(admitted);
}

static void nodes_of_a_pool_count_apart(void **state)
{
    struct admitted *admitted = nothing();

    (void)state;
    for (int pool = -1; pool < 2; pool++)
        admitted_add(admitted,
                     &(struct admitted_entry){.base = 12, .pool = pool, .nodes = pool + 2}, NOW);
    assert_int_equal(admitted_nodes(admitted, 12, 0, NOW), 6);
    assert_int_equal(admitted_pool_nodes(admitted, 12, 0, 0, NOW), 2);
    assert_int_equal(admitted_pool_nodes(admitted, 12, 0, 1, NOW), 3);
    assert_int_equal(admitted_pool_nodes(admitted, 12, 0, 2, NOW), 0);
    assert_int_equal(admitted_pool_nodes(admitted, 12, 0, 1, NOW + ADMITTED_LIMIT), 0);
    free(admitted);
}

static void the_number_is_found_in_an_admin_comment(void **state)
{
    static const struct {
        const char *text;
        uint64_t number;
    } table[] = {
        {NULL, 0},
        {"", 0},
        {"elastic=1:2", 0},
        {"elastic-admission=17", 17},
        {"checked by lua elastic-admission=18", 18},
        {"elastic-admission=x", 0},
    };
    char buf[ADMITTED_MARK_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        assert_int_equal(admitted_number(table[i].text), table[i].number);
    assert_true(admitted_number(admitted_mark(UINT64_MAX, buf, sizeof(buf))) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_admission_counts_until_its_job_is_seen),
        cmocka_unit_test(an_admission_that_becomes_no_job_counts_for_a_few_seconds),
        cmocka_unit_test(the_oldest_is_forgotten_first),
        cmocka_unit_test(a_flood_drives_out_nobody_elses),
        cmocka_unit_test(nodes_of_a_pool_count_apart),
        cmocka_unit_test(the_number_is_found_in_an_admin_comment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

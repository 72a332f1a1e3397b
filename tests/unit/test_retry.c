/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What fails is tried again after a pause that doubles, up to a limit. */
#include "tests/unit/support.h"

#include "lib/retry.h"

static void test_doubles(void **state)
{
    struct retry retry = {.first = 4, .max = 30};

    assert_true(retry.after <= 0);
    assert_float_equal(retry_failed(&retry, 100), 4, 0);
    assert_float_equal(retry.after, 104, 0);
    assert_float_equal(retry_failed(&retry, 104), 8, 0);
    assert_float_equal(retry_failed(&retry, 105), 7, 0); /* begun together with the one before */
    assert_float_equal(retry_failed(&retry, 112), 16, 0);
    assert_float_equal(retry_failed(&retry, 128), 30, 0);
    assert_float_equal(retry_failed(&retry, 158), 30, 0);
    assert_float_equal(retry.after, 188, 0);
}

static void test_begins_anew(void **state)
{
    struct retry retry = {.first = 4, .max = 30};

    retry_failed(&retry, 100);
    assert_float_equal(retry_failed(&retry, 104), 8, 0);
    retry_reset(&retry);
    assert_true(retry.after <= 0);
    assert_float_equal(retry_failed(&retry, 200), 4, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_begins_anew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

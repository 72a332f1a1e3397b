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

/* Another process goes on, on a clock that may have been wrong. */
static void test_goes_on(void **state)
{
    struct retry before = {.first = 4, .max = 30}, after = {.first = 4, .max = 30};
    struct retry wrong = {.pause = 1e9, .after = 1e9};

    (void)state;
    retry_failed(&before, 100);
    retry_failed(&before, 104);
    retry_go_on(&after, &before, 106);
    assert_float_equal(after.after, 112, 0);
    assert_float_equal(retry_failed(&after, 112), 16, 0);
    retry_go_on(&after, &wrong, 200);
    assert_float_equal(after.after, 230, 0);
    assert_float_equal(retry_failed(&after, 230), 30, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_begins_anew),
        cmocka_unit_test(test_goes_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/amount: amounts of money from text and back. */
#include "lib/amount.h"
#include "tests/unit/support.h"

static void test_amounts(void **state)
{
    static const struct {
        const char *text, *again;
        double amount;
    } cases[] = {
        {"0", "0", 0},
        {"12", "12", 12},
        {"0.35", "0.35", 0.35},
        {"3.060000", "3.06", 3.06},
        {"0.000001", "0.000001", 0.000001},
        {"12.05", "12.05", 12.05},
        {"1000000000", "1000000000", 1e9},
        {"999999999.999999", "999999999.999999", 999999999.999999},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        double amount = -1;
        char buf[AMOUNT_TEXT_MAX];

        assert_int_equal(amount_parse(cases[i].text, strlen(cases[i].text), &amount), 0);
        assert_near(amount, cases[i].amount, 1e-9);
        assert_string_equal(amount_format(amount, buf, sizeof(buf)), cases[i].again);
    }
}

static void test_bad_amounts(void **state)
{
    static const char *const cases[] = {
        "",          ".",   ".5",  "5.",  "-1", "+1", "1,5",  "1.2.3",
        "0.1234567", "1e3", "nan", "inf", " 1", "1 ", "0x10", "1000000000.000001",
        "1000000001"};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        double amount = 7;

        if (amount_parse(cases[i], strlen(cases[i]), &amount) == 0)
            fail_msg("'%s' was accepted", cases[i]);
        assert_true(amount == 7);
    }
}

/* Sums are rounded, and not cut. */
static void test_rounding(void **state)
{
    char buf[AMOUNT_TEXT_MAX];

    (void)state;
    assert_string_equal(amount_format(0.1 + 0.2, buf, sizeof(buf)), "0.3");
    assert_string_equal(amount_format(2.9999999, buf, sizeof(buf)), "3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_amounts),
        cmocka_unit_test(test_bad_amounts),
        cmocka_unit_test(test_rounding),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("amount", tests, NULL, NULL);
}

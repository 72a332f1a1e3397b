/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/recovery: budgets as text, how many failures they allow, and when a node is left out and
 * forgiven; with random failures against a count by hand. */
#include "lib/recovery.h"

#include <math.h>

#include "tests/unit/support.h"

#define AVOID 60.0 /* seconds */

static struct recovery *with_budget(const char *text)
{
    struct budget budget;
    struct error err;
    struct recovery *recovery;

    assert_int_equal(budget_parse(text, &budget, &err), 0);
    recovery = recovery_create(&budget, AVOID);
    assert_non_null(recovery);
    return recovery;
}

static void test_text(void **state)
{
    static const struct {
        const char *text;
        int restarts, seconds;
    } table[] = {{"0", 0, 0},         {"3", 3, 0},   {"1000000", 1000000, 0},
                 {"3/3600", 3, 3600}, {"0/1", 0, 1}, {"2/2147483647", 2, 2147483647}};
    static const char *const refused[] = {"",      "/",   "3/",     "/60",         "3/0",
                                          "-1",    "3 ",  "3/60/2", "1000001",     "3.5",
                                          "3/-60", "3/h", "three",  "3/2147483648"};
    char text[32];

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct budget budget;
        struct error err;

        assert_int_equal(budget_parse(table[i].text, &budget, &err), 0);
        assert_int_equal(budget.restarts, table[i].restarts);
        assert_int_equal(budget.seconds, table[i].seconds);
        assert_string_equal(budget_format(&budget, text, sizeof(text)), table[i].text);
    }
    for (size_t i = 0; i < COUNT(refused); i++) {
        struct budget budget = {7, 8};
        struct error err;

        assert_int_equal(budget_parse(refused[i], &budget, &err), -1);
        assert_one_line(err.text);
        assert_non_null(strstr(err.text, "N/SECONDS"));
        assert_true(budget.restarts == 7 && budget.seconds == 8);
    }
}

static void test_final(void **state)
{
    (void)state;
    for (int status = 0; status < 256; status++)
        assert_int_equal(recovery_is_final(status), status == 93 || status == 126 || status == 127);
}

static void test_in_all(void **state)
{
    struct recovery *recovery = with_budget("2");

    (void)state;
    assert_true(recovery_count(recovery, 0));
    assert_true(recovery_count(recovery, 1e9));
    assert_false(recovery_count(recovery, 2e9));
    assert_false(recovery_count(recovery, 3e9));
    recovery_destroy(recovery);

    recovery = with_budget("0");
    assert_false(recovery_count(recovery, 5));
    recovery_destroy(recovery);
    recovery_destroy(NULL);
}

static void test_within(void **state)
{
    struct recovery *recovery = with_budget("2/100");

    (void)state;
    assert_true(recovery_count(recovery, 10));
    assert_true(recovery_count(recovery, 50));
    assert_false(recovery_count(recovery, 109.9));
    assert_true(recovery_count(recovery, 110)); /* the first is too long ago */
    assert_false(recovery_count(recovery, 149));
    assert_true(recovery_count(recovery, 1000));
    recovery_destroy(recovery);
}

static void test_another_leader_inherits_what_counts(void **state)
{
    struct recovery *before = with_budget("3/100"), *after = with_budget("3/100");

    (void)state;
    assert_true(recovery_count(before, 0) && recovery_count(before, 50) &&
                recovery_count(before, 60));
    assert_int_equal(recovery_counted(before, 99), 3);
    assert_int_equal(recovery_counted(before, 100), 2);
    recovery_inherit(after, 2, 110);
    assert_true(recovery_count(after, 120));
    assert_false(recovery_count(after, 209));
    assert_int_equal(recovery_counted(after, 211), 1);
    recovery_destroy(before);
    recovery_destroy(after);

    after = with_budget("3");
    recovery_inherit(after, 3, 0);
    assert_int_equal(recovery_counted(after, 1e6), 3);
    assert_false(recovery_count(after, 1e6));
    recovery_destroy(after);
}

/* Never more than the budget within any window, and never refused with less. */
static void test_random(void **state)
{
    uint64_t seed = 6;

    (void)state;
    for (int run = 0; run < 200; run++) {
        struct budget budget = {.restarts = (int)random_below(&seed, 20),
                                .seconds = 1 + (int)random_below(&seed, 50)};
        struct recovery *recovery = recovery_create(&budget, AVOID);
        double allowed[300], now = 0;
        int count = 0;

        for (int i = 0; i < 300; i++) {
            int inside = 0;

            now += random_below(&seed, 1000) / 100.0;
            for (int k = 0; k < count; k++)
                inside += allowed[k] > now - budget.seconds;
            if (recovery_count(recovery, now)) {
                assert_true(inside < budget.restarts);
                allowed[count++] = now;
            } else {
                assert_int_equal(inside, budget.restarts);
            }
        }
        recovery_destroy(recovery);
    }
}

static void assert_avoided(const struct recovery *recovery, double now, const char *names)
{
    char *found = recovery_excluded(recovery, now);

    assert_non_null(found);
    assert_string_equal(found, names);
    free(found);
}

static void test_a_lost_node_is_left_out_longer_each_time(void **state)
{
    struct recovery *recovery = with_budget("3");
    double now = 1000, length = AVOID;

    (void)state;
    assert_true(recovery_avoids(recovery, "n1", now) == 0 && recovery_next(recovery, now) == 0);
    assert_avoided(recovery, now, "");
    for (int time = 0; time < 10; time++) {
        recovery_lost(recovery, "n1", now);
        recovery_lost(recovery, "n1", now + 1); /* that is the same loss */
        assert_true(fabs(recovery_avoids(recovery, "n1", now) - length) < 1e-6);
        assert_true(fabs(recovery_next(recovery, now) - length) < 1e-6);
        assert_true(recovery_avoids(recovery, "n2", now) == 0);
        assert_avoided(recovery, now + length - 0.1, "n1");
        assert_avoided(recovery, now + length, "");
        now += length + 1;
        length = length * 2 < RECOVERY_AVOID_MAX ? length * 2 : RECOVERY_AVOID_MAX;
    }
    recovery_destroy(recovery);
}

static void test_it_is_forgiven(void **state)
{
    struct recovery *recovery = with_budget("3");

    (void)state;
    recovery_lost(recovery, "n1", 0);
    recovery_lost(recovery, "n1", 100); /* 120 s */
    recovery_lost(recovery, "n2", 100);
    assert_avoided(recovery, 110, "n1,n2");
    assert_true(recovery_next(recovery, 110) == 50);
    assert_avoided(recovery, 170, "n1");
    recovery_lost(recovery, "n1", 100 + 2 * 120);
    assert_true(recovery_avoids(recovery, "n1", 340) == AVOID);
    recovery_destroy(recovery);
}

static void test_none_is_left_out_where_the_site_says_so(void **state)
{
    struct budget budget = {.restarts = 3};
    struct recovery *recovery = recovery_create(&budget, 0);

    (void)state;
    recovery_lost(recovery, "n1", 0);
    recovery_lost(recovery, "n1", 1);
    assert_avoided(recovery, 1, "");
    recovery_destroy(recovery);
}

static void test_failures_of_the_same_node_in_a_row(void **state)
{
    struct recovery *recovery = with_budget("3");

    (void)state;
    recovery_failed(recovery, "n1", 4, 0);
    recovery_failed(recovery, "n2", 4, 1);
    recovery_failed(recovery, "n1", 4, 2);
    assert_avoided(recovery, 3, "");
    recovery_failed(recovery, "n1", 4, 3);
    assert_avoided(recovery, 4, "n1");
    recovery_failed(recovery, "n3", 1, 5); /* alone it shows nothing */
    recovery_failed(recovery, "n3", 1, 6);
    assert_avoided(recovery, 7, "n1");
    recovery_failed(recovery, "n3", 2, 8);
    assert_avoided(recovery, 9, "n1");
    recovery_failed(recovery, "n3", 2, 10);
    assert_avoided(recovery, 11, "n1,n3");
    recovery_destroy(recovery);
}

/* For good, whatever else happens to the node, and also where no node is ever left out. */
static void test_a_node_that_is_shunned(void **state)
{
    const struct budget budget = {.restarts = 1};
    struct recovery *recovery = recovery_create(&budget, 0);
    char *names;

    (void)state;
    recovery_lost(recovery, "n1", 10);
    assert_true(recovery_avoids(recovery, "n1", 10) == 0);
    recovery_shun(recovery, "n1", 10);
    assert_true(isinf(recovery_avoids(recovery, "n1", 1e9)));
    assert_true(recovery_next(recovery, 10) == 0); /* nothing will change by itself */
    recovery_destroy(recovery);

    recovery = recovery_create(&budget, 60);
    recovery_lost(recovery, "n1", 10);
    recovery_lost(recovery, "n2", 20);
    recovery_shun(recovery, "n1", 20);
    recovery_lost(recovery, "n1", 30);
    recovery_failed(recovery, "n3", 4, 1000); /* forgives n2 only */
    recovery_failed(recovery, "n3", 4, 1001);
    names = recovery_excluded(recovery, 1001);
    assert_string_equal(names, "n1,n3");
    assert_near(recovery_next(recovery, 1001), 60, 1e-9);
    assert_true(isinf(recovery_avoids(recovery, "n1", 1001)));
    free(names);
    recovery_destroy(recovery);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_node_that_is_shunned),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_final),
        cmocka_unit_test(test_in_all),
        cmocka_unit_test(test_within),
        cmocka_unit_test(test_another_leader_inherits_what_counts),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_a_lost_node_is_left_out_longer_each_time),
        cmocka_unit_test(test_it_is_forgiven),
        cmocka_unit_test(test_none_is_left_out_where_the_site_says_so),
        cmocka_unit_test(test_failures_of_the_same_node_in_a_row),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("recovery", tests, NULL, NULL);
}

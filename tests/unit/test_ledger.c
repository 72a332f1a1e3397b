/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/ledger: what outlives a leader, and files that are no ledger. */
#include "tests/unit/support.h"

#include "lib/ledger.h"

#define UNIX_TIME 1.7e9

static const struct ledger_run run = {.job = 12, .restarts = 1};

/* A job at second 1000 of its leader's clock: one node of the base, two of spot. */
static struct ledger example(void)
{
    struct ledger ledger = {
        .memory = {
            .spot = 2, .before_loss = 3, .below = true, .below_since = 900, .exhausted = true}};

    spending_set(&ledger.spending, 100, LEDGER_BASE, 1, 3, 0);
    spending_set(&ledger.spending, 100, "spot", 2, 1, 60);
    spending_run(&ledger.spending, 1000);
    speed_add(&ledger.speed, 3, 30, 10);
    speed_add(&ledger.speed, 1, 12, 10);
    ledger_pool(&ledger, "spot")->boot = 90;
    ledger_pool(&ledger, "demand")->boot = 40;
    *ledger_pool(&ledger, "spot") = (struct ledger_pool){
        .name = "spot",
        .boot = 95,
        .refused = {.pause = 4, .after = 900},
        .failed = {.pause = 240, .after = 1100},
        .why = "no capacity",
    };
    return ledger;
}

static void test_takeover(void **state)
{
    struct ledger before = example(), after = {0};
    char *text = ledger_text(&before, &run, 1010, UNIX_TIME);
    struct error err = {""};

    (void)state;
    assert_non_null(text);
    /* Five seconds later, on the clock of another node. */
    assert_int_equal(ledger_parse(&after, text, strlen(text), &run, 7, UNIX_TIME + 5, true, &err),
                     0);
    spending_run(&before.spending, 1015);
    assert_near(spending_cost(&after.spending), spending_cost(&before.spending), 1e-6);
    assert_near(spending_hours(&after.spending, "spot"), 2 * 915 / 3600.0, 1e-6);
    assert_near(after.spending.at, 7, 1e-9);
    assert_near(speed_at(&after.speed, 3), 3, 1e-9);
    assert_near(speed_at(&after.speed, 1), 1.2, 1e-9);
    assert_near(ledger_pool(&after, "spot")->boot, 95, 1e-9);
    assert_near(ledger_pool(&after, "demand")->boot, 40, 1e-9);
    assert_near(ledger_pool(&after, "other")->boot, 0, 0);
    /* It was paused for 90 s more, of which 5 are over; the other pause was over before. */
    assert_near(ledger_pool(&after, "spot")->failed.after, 7 + 85, 1e-6);
    assert_near(ledger_pool(&after, "spot")->failed.pause, 240, 1e-9);
    assert_near(ledger_pool(&after, "spot")->refused.after, 0, 0);
    assert_near(ledger_pool(&after, "spot")->refused.pause, 4, 1e-9);
    assert_string_equal(ledger_pool(&after, "spot")->why, "no capacity");
    assert_near(ledger_pool(&after, "demand")->failed.pause, 0, 0);
    assert_int_equal(after.memory.before_loss, 3);
    assert_true(after.memory.below && after.memory.exhausted);
    assert_near(after.memory.below_since, 7 - 110, 1e-6);
    free(text);
}

static void test_requeue(void **state)
{
    struct ledger before = example(), after = {0};
    char *text = ledger_text(&before, &run, 1000, UNIX_TIME);
    struct error err = {""};

    (void)state;
    /* Its spot nodes were up for a minute more. */
    assert_int_equal(
        ledger_parse(&after, text, strlen(text), &run, 50, UNIX_TIME + 9000, false, &err), 0);
    assert_near(spending_cost(&after.spending), spending_cost(&before.spending) + 2 * 60 / 3600.0,
                1e-6);
    assert_near(spending_per_hour(&after.spending), 0, 0);
    spending_run(&after.spending, 5000);
    assert_near(spending_cost(&after.spending), spending_cost(&before.spending) + 2 * 60 / 3600.0,
                1e-6);
    assert_true(after.memory.exhausted);
    assert_false(after.memory.below);
    assert_int_equal(after.memory.before_loss, 0);
    free(text);
}

/* The clock of the machine was set back in between: nothing is paid back. */
static void test_time_that_goes_back(void **state)
{
    struct ledger before = example(), after = {0};
    char *text = ledger_text(&before, &run, 1000, UNIX_TIME);
    struct error err = {""};

    (void)state;
    assert_int_equal(
        ledger_parse(&after, text, strlen(text), &run, 50, UNIX_TIME - 9000, true, &err), 0);
    assert_near(spending_cost(&after.spending), spending_cost(&before.spending), 1e-6);
    free(text);
}

/* Another leader was lost before it could write: the time in the queue has cost nothing. */
static void test_takeover_after_a_requeue(void **state)
{
    const struct ledger_run next = {.job = run.job, .restarts = run.restarts + 1};
    struct ledger before = example(), after = {0};
    char *text = ledger_text(&before, &run, 1000, UNIX_TIME);
    struct error err = {""};

    (void)state;
    assert_int_equal(
        ledger_parse(&after, text, strlen(text), &next, 50, UNIX_TIME + 9000, true, &err), 0);
    assert_near(spending_cost(&after.spending), spending_cost(&before.spending) + 2 * 60 / 3600.0,
                1e-6);
    assert_near(spending_per_hour(&after.spending), 0, 0);
    assert_int_equal(after.memory.before_loss, 0);
    assert_near(ledger_pool(&after, "spot")->failed.pause, 240, 1e-9);
    assert_string_equal(ledger_pool(&after, "spot")->why, "no capacity");
    free(text);
}

static void test_ledger_of_another_job(void **state)
{
    const struct ledger_run other = {.job = run.job + 1, .restarts = run.restarts};
    struct ledger before = example(), after = {0};
    char *text = ledger_text(&before, &run, 1000, UNIX_TIME);
    struct error err = {""};

    (void)state;
    assert_int_equal(ledger_parse(&after, text, strlen(text), &other, 50, UNIX_TIME, true, &err),
                     -1);
    assert_string_equal(err.text, "the record of the pools of job 12");
    assert_int_equal(after.spending.count, 0);
    free(text);
}

/* The clock of the machine is years ahead: no leader was away for so long. */
static void test_time_that_leaps(void **state)
{
    struct ledger before = example(), after = {0};
    char *text = ledger_text(&before, &run, 1000, UNIX_TIME);
    struct error err = {""};

    (void)state;
    assert_int_equal(
        ledger_parse(&after, text, strlen(text), &run, 50, UNIX_TIME + 1e9, true, &err), 0);
    spending_run(&before.spending, 1000 + LEDGER_GAP_MAX);
    assert_near(spending_cost(&after.spending), spending_cost(&before.spending), 1e-6);
    free(text);
}

/* What is written can be read again, whatever has become of it. */
static void test_figures_without_end(void **state)
{
    struct ledger before = example(), after = {0};
    struct error err = {""};
    char *text;

    (void)state;
    before.spending.pools[0].cost = 1e30;
    text = ledger_text(&before, &run, 1000, UNIX_TIME);
    assert_int_equal(ledger_parse(&after, text, strlen(text), &run, 50, UNIX_TIME, true, &err), 0);
    free(text);
}

static void test_what_is_no_ledger(void **state)
{
    static const char *const texts[] = {
        "",
        "[]",
        "{}",
        "{\"version\":2,\"time\":1}",
        "{\"version\":1,\"job\":12,\"restarts\":1,\"time\":1,\"spending\":[],\"speed\":[],"
        "\"pools\":{}}",
        "{\"version\":1,\"job\":12,\"restarts\":1,\"time\":-1,\"spending\":[],\"speed\":[],"
        "\"pools\":{},"
        "\"memory\":{\"spot\":0,\"before_loss\":0}}",
        "{\"version\":1,\"job\":12,\"restarts\":1,\"time\":1,\"spending\":[{\"pool\":\"a\","
        "\"nodes\":-1,\"price\":0,"
        "\"suspend\":0,\"node_seconds\":0,\"tail_seconds\":0,\"cost\":0}],\"speed\":[],"
        "\"pools\":{},\"memory\":{\"spot\":0,\"before_loss\":0}}",
        "{\"version\":1,\"job\":12,\"restarts\":1,\"time\":1,\"spending\":[{\"pool\":\"a\","
        "\"nodes\":1,\"price\":1e300,"
        "\"suspend\":0,\"node_seconds\":0,\"tail_seconds\":0,\"cost\":0}],\"speed\":[],"
        "\"pools\":{},\"memory\":{\"spot\":0,\"before_loss\":0}}",
        "{\"version\":1,\"job\":12,\"restarts\":1,\"time\":1,\"spending\":[],\"speed\":[7],"
        "\"pools\":{},"
        "\"memory\":{\"spot\":0,\"before_loss\":0}}",
        "{\"version\":1,\"job\":12,\"restarts\":1,\"time\":1,\"spending\":[],\"speed\":[],"
        "\"pools\":{\"../"
        "x\":{\"boot\":1,\"why\":\"\"}},"
        "\"memory\":{\"spot\":0,\"before_loss\":0}}",
        "{\"version\":1,\"job\":12,\"restarts\":1,\"time\":1,\"spending\":[],\"speed\":[],"
        "\"pools\":{\"x\":{\"boot\":\"1\","
        "\"why\":\"\"}},"
        "\"memory\":{\"spot\":0,\"before_loss\":0}}",
        "{\"version\":1,\"job\":12,\"restarts\":1,\"time\":1,\"spending\":[],\"speed\":[],"
        "\"pools\":{},"
        "\"memory\":{\"spot\":0,\"before_loss\":0}} {}",
        "{\"version\":1,\"job\":12,\"restarts\":1,\"time\":1,\"spending\":[],\"speed\":[],"
        "\"pools\":{\"x\":{\"boot\":1}},"
        "\"memory\":{\"spot\":0,\"before_loss\":0}}",
        "{\"version\":1,\"job\":12,\"restarts\":1,\"time\":1,\"spending\":[],\"speed\":[],"
        "\"pools\":{\"x\":7},"
        "\"memory\":{\"spot\":0,\"before_loss\":0}}",
        "{\"version\":1,\"job\":12,\"restarts\":1,\"time\":1,\"spending\":[],\"speed\":[],"
        "\"pools\":{\"x\":{\"boot\":1,"
        "\"why\":\"\",\"failed\":{\"until\":-1,\"pause\":60}}},"
        "\"memory\":{\"spot\":0,\"before_loss\":0}}",
        "{\"version\":1,\"job\":12,\"restarts\":1,\"time\":1,\"spending\":[],\"speed\":[],"
        "\"pools\":{\"x\":{\"boot\":1,"
        "\"why\":\"\",\"failed\":[]}},\"memory\":{\"spot\":0,\"before_loss\":0}}",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct ledger ledger = example(), same = example();
        struct error err = {""};

        if (ledger_parse(&ledger, texts[i], strlen(texts[i]), &run, 0, UNIX_TIME, true, &err) == 0)
            fail_msg("taken: %s", texts[i]);
        assert_string_not_equal(err.text, "");
        assert_memory_equal(&ledger, &same, sizeof(ledger));
    }
}

static void test_another_version_is_named(void **state)
{
    static const char text[] = "{\"version\":2,\"time\":1}";
    struct ledger ledger = example();
    struct error err;

    (void)state;
    assert_int_equal(ledger_parse(&ledger, text, strlen(text), &run, 0, UNIX_TIME, true, &err), -1);
    assert_string_equal(err.text, "it is of version 2, this release reads version 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_takeover),
        cmocka_unit_test(test_requeue),
        cmocka_unit_test(test_time_that_goes_back),
        cmocka_unit_test(test_takeover_after_a_requeue),
        cmocka_unit_test(test_ledger_of_another_job),
        cmocka_unit_test(test_time_that_leaps),
        cmocka_unit_test(test_figures_without_end),
        cmocka_unit_test(test_what_is_no_ledger),
        cmocka_unit_test(test_another_version_is_named),
    };

    return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/fit: both paths, every edge, the record, and histories with crashes at every point. */
#include "tests/unit/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fit.h"
#include "lib/fit_call.h"
#include "lib/text.h"

static const struct fit_limits limits = {.start = 100, .fit = 1000, .target = 200};

static bool tell(struct fit *fit, enum fit_fact_kind kind, double now)
{
    return fit_tell(
        fit,
        &(struct fit_fact){.kind = kind, .action = fit->action, .reason = "because", .count = 3},
        now);
}

static void reread(struct fit *fit);

/* ---- the paths ------------------------------------------------------------------------------- */

static void expect_path(enum fit_mode mode, const char *statuses, const char *actions)
{
    struct fit fit = fit_begin(mode, &limits, 10);
    char seen[256] = "", done[256] = "";
    const char *last = "";

    for (int i = 0; i < 20 && !fit_is_over(&fit); i++) {
        if (strcmp(last, fit_status_name(fit.status)) != 0)
            text_append(seen, sizeof(seen), "%s > ", fit_status_name(fit.status));
        last = fit_status_name(fit.status);
        text_append(done, sizeof(done), "%s ", fit_action_name(fit.action));
        assert_true(tell(&fit, FIT_FACT_DONE, 11 + i));
    }
    text_append(seen, sizeof(seen), "%s", fit_status_name(fit.status));
    assert_string_equal(seen, statuses);
    assert_string_equal(done, actions);
    assert_string_equal(fit.reason, "");
}

static void test_both_paths(void **unused)
{
    (void)unused;
    expect_path(FIT_SINGLE, "INITIAL > WAIT_FOR_START > WAIT_FOR_FIT > SUCCESS",
                "prepare dedicate stage fit complete end-replica count point replace ");
    expect_path(FIT_MULTI,
                "INITIAL > WAIT_FOR_TRAINING_CONTAINER > WAIT_FOR_FIT > "
                "WAIT_FOR_TARGET_CONTAINER > SUCCESS",
                "prepare ensure stage grant fit complete count point replace revoke ");
}

/* ---- answers of a server --------------------------------------------------------------------- */

static void test_answers(void **state)
{
    static const struct {
        bool asked;
        int status;
        const char *text;
        double silent;
        enum fit_call judged;
        const char *why;
    } cases[] = {
        {false, 200, "", 0, FIT_CALL_DONE, ""},
        {false, 204, "", 0, FIT_CALL_DONE, ""},
        {true, 201, "x", 0, FIT_CALL_DONE, ""},
        {false, 202, "", 0, FIT_CALL_GOES_ON, ""},
        {true, 202, "", 0, FIT_CALL_GOES_ON, ""},
        {false, 0, "", 0, FIT_CALL_FAILED,
         "its server has not answered, and closed the connection"},
        {true, 0, "", 29, FIT_CALL_GOES_ON, ""},
        {true, 0, "", 30, FIT_CALL_FAILED, "its server has not answered for 30 s"},
        {true, 404, "", 0, FIT_CALL_FAILED, "its server answered 404"},
        {false, 302, " \n", 0, FIT_CALL_FAILED, "its server answered 302"},
        {false, 500, "\r\n no model\x1b\nmore", 0, FIT_CALL_FAILED,
         "its server answered 500: no model?"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct error why = {""};

        assert_int_equal(fit_call_judge(cases[i].asked, cases[i].status, cases[i].text,
                                        strlen(cases[i].text), cases[i].silent, &why),
                         cases[i].judged);
        assert_string_equal(why.text, cases[i].why);
    }
}

/* ---- every edge ------------------------------------------------------------------------------ */

/* What is done from the n-th action of a mode on, after a failure: the clean-up. */
static const struct edge {
    const char *status, *action;
    double limit;      /* seconds after the limit began; 0: there is none */
    const char *clean; /* after FAILED, CANCEL and TIME */
} single_edges[] =
    {
        {"INITIAL", "prepare", 60, "discard "},
        {"WAIT_FOR_START", "dedicate", 100, "discard end-replica "},
        {"WAIT_FOR_START", "stage", 100, "discard end-replica "},
        {"WAIT_FOR_FIT", "fit", 1000, "discard end-replica "},
        {"WAIT_FOR_FIT", "complete", 1000, "discard end-replica "},
        {"WAIT_FOR_FIT", "end-replica", 200, "discard end-replica "},
        {"WAIT_FOR_FIT", "count", 200, "discard "},
        {"WAIT_FOR_FIT", "point", 200, "point-back discard "},
        {"WAIT_FOR_FIT", "replace", 200, "point-back restore "},
},
  multi_edges[] = {
      {"INITIAL", "prepare", 60, "discard "},
      {"WAIT_FOR_TRAINING_CONTAINER", "ensure", 100, "discard "},
      {"WAIT_FOR_TRAINING_CONTAINER", "stage", 100, "discard "},
      {"WAIT_FOR_TRAINING_CONTAINER", "grant", 100, "revoke discard "},
      {"WAIT_FOR_FIT", "fit", 1000, "revoke discard "},
      {"WAIT_FOR_FIT", "complete", 1000, "revoke discard "},
      {"WAIT_FOR_TARGET_CONTAINER", "count", 200, "revoke discard "},
      {"WAIT_FOR_TARGET_CONTAINER", "point", 200, "revoke point-back discard "},
      {"WAIT_FOR_TARGET_CONTAINER", "replace", 200, "revoke point-back restore "},
};

/* At its n-th action; each took no time. */
static struct fit at(enum fit_mode mode, int n)
{
    struct fit fit = fit_begin(mode, &limits, 10);

    while (n-- > 0)
        assert_true(tell(&fit, FIT_FACT_DONE, 10));
    return fit;
}

static void expect_clean_up(struct fit *fit, enum fit_status ending, const char *actions)
{
    char done[128] = "";
    enum fit_status before = fit->status;

    while (!fit_is_over(fit)) {
        assert_int_equal(fit->status, before);
        assert_true(fit->cleaning);
        text_append(done, sizeof(done), "%s ", fit_action_name(fit->action));
        /* Nothing else ends it, or takes it elsewhere. */
        assert_false(tell(fit, FIT_FACT_CANCEL, 1e6));
        assert_false(tell(fit, FIT_FACT_TIME, 1e6));
        if (fit->action != FIT_DO_REVOKE || !fit->pointed) {
            assert_true(tell(fit, FIT_FACT_FAILED, 1e6));
            assert_string_equal(fit->trouble, "because");
            assert_int_equal(fit->tries, 1);
        }
        assert_true(tell(fit, FIT_FACT_DONE, 1e6));
    }
    assert_string_equal(done, actions);
    assert_int_equal(fit->status, ending);
    assert_string_equal(fit->trouble, "");
}

static void expect_edges(enum fit_mode mode, const struct edge *edges, int count)
{
    for (int n = 0; n < count; n++) {
        struct fit fit = at(mode, n);

        assert_string_equal(fit_status_name(fit.status), edges[n].status);
        assert_string_equal(fit_action_name(fit.action), edges[n].action);
        assert_true(tell(&fit, FIT_FACT_FAILED, 11));
        assert_string_equal(fit.reason, "because");
        expect_clean_up(&fit, FIT_FAILED, edges[n].clean);

        fit = at(mode, n);
        assert_true(tell(&fit, FIT_FACT_CANCEL, 11));
        assert_string_equal(fit.reason, "because");
        expect_clean_up(&fit, FIT_CANCELLED, edges[n].clean);

        fit = at(mode, n);
        assert_false(tell(&fit, FIT_FACT_TIME, 10 + edges[n].limit - 1));
        assert_true(tell(&fit, FIT_FACT_TIME, 10 + edges[n].limit));
        assert_non_null(strstr(fit.reason, edges[n].status));
        assert_non_null(strstr(fit.reason, "not done in time"));
        expect_clean_up(&fit, FIT_FAILED, edges[n].clean);
    }
}

static void test_every_edge(void **unused)
{
    (void)unused;
    expect_edges(FIT_SINGLE, single_edges, sizeof(single_edges) / sizeof(*single_edges));
    expect_edges(FIT_MULTI, multi_edges, sizeof(multi_edges) / sizeof(*multi_edges));
}

static void test_over_is_over(void **unused)
{
    struct fit fit = at(FIT_SINGLE, 9);
    (void)unused;

    assert_int_equal(fit.status, FIT_SUCCESS);
    for (int kind = 0; kind < FIT_FACT_KINDS; kind++)
        assert_false(tell(&fit, (enum fit_fact_kind)kind, 1e9));
}

static void test_facts_about_something_else(void **unused)
{
    struct fit fit = at(FIT_MULTI, 3);
    (void)unused;

    for (int action = 0; action < FIT_ACTIONS; action++) {
        struct fit_fact fact = {.kind = FIT_FACT_DONE, .action = (enum fit_action)action};

        if (action == FIT_DO_GRANT)
            continue;
        assert_false(fit_tell(&fit, &fact, 11));
        fact.kind = FIT_FACT_FAILED;
        assert_false(fit_tell(&fit, &fact, 11));
    }
    assert_int_equal(fit.action, FIT_DO_GRANT);
}

static void test_a_success_waits_for_the_revocation(void **unused)
{
    struct fit fit = at(FIT_MULTI, 9);
    (void)unused;

    assert_int_equal(fit.action, FIT_DO_REVOKE);
    assert_false(fit_is_over(&fit));
    /* It is too late for another end: all replicas have the new state. */
    assert_false(tell(&fit, FIT_FACT_CANCEL, 12));
    for (int tries = 1; tries <= 5; tries++) {
        assert_true(tell(&fit, FIT_FACT_FAILED, 12));
        assert_int_equal(fit.tries, tries);
        assert_int_equal(fit.status, FIT_WAIT_FOR_TARGET_CONTAINER);
    }
    assert_true(tell(&fit, FIT_FACT_DONE, 13));
    assert_int_equal(fit.status, FIT_SUCCESS);
}

/* Whoever holds up the end of access does not hold up the replicas. Access is tried again. */
static void test_replicas_do_not_wait_for_the_revocation(void **unused)
{
    struct fit fit = at(FIT_MULTI, 8);
    (void)unused;

    assert_string_equal(fit_action_name(fit.action), "replace");
    assert_true(tell(&fit, FIT_FACT_FAILED, 11));
    assert_int_equal(fit.action, FIT_DO_REVOKE);
    assert_true(tell(&fit, FIT_FACT_FAILED, 12));
    assert_int_equal(fit.action, FIT_DO_POINT_BACK);
    assert_true(tell(&fit, FIT_FACT_DONE, 13));
    assert_int_equal(fit.action, FIT_DO_REVOKE);
    assert_true(tell(&fit, FIT_FACT_FAILED, 14));
    assert_int_equal(fit.action, FIT_DO_RESTORE);
    reread(&fit);
    assert_true(tell(&fit, FIT_FACT_DONE, 15));
    assert_int_equal(fit.action, FIT_DO_REVOKE);
    assert_true(tell(&fit, FIT_FACT_FAILED, 16));
    assert_int_equal(fit.action, FIT_DO_REVOKE);
    assert_string_equal(fit.trouble, "because");
    assert_true(tell(&fit, FIT_FACT_DONE, 17));
    assert_int_equal(fit.status, FIT_FAILED);
}

static void test_counts(void **unused)
{
    struct fit fit = at(FIT_SINGLE, 6);
    struct fit_fact fact = {.kind = FIT_FACT_DONE, .action = FIT_DO_COUNT, .count = 0};
    (void)unused;

    assert_true(fit_tell(&fit, &fact, 11));
    assert_int_equal(fit.count, 0);
    assert_int_equal(fit_target(&fit), 1);
    fit = at(FIT_SINGLE, 7);
    assert_int_equal(fit.count, 3);
    assert_int_equal(fit_target(&fit), 3);
}

/* ---- the record ------------------------------------------------------------------------------ */

static void reread(struct fit *fit)
{
    char *text = fit_record_text(fit), *again;
    struct error err = {""};

    if (fit_record_parse(text, strlen(text), fit, &err) != 0)
        fail_msg("%s: %s", err.text, text);
    again = fit_record_text(fit);
    assert_string_equal(again, text);
    free(text);
    free(again);
}

static char *replaced(const char *text, const char *from, const char *to)
{
    const char *where = strstr(text, from);
    char *result = NULL;

    assert_non_null(where);
    assert_true(asprintf(&result, "%.*s%s%s", (int)(where - text), text, to, where + strlen(from)) >
                0);
    return result;
}

static void test_records_that_no_fit_has_written(void **unused)
{
    static const char *const changes[][2] = {
        {"\"multi\"", "\"both\""},
        {"\"multi\"", "\"single\""},
        {"\"WAIT_FOR_TRAINING_CONTAINER\"", "\"WAITING\""},
        {"\"WAIT_FOR_TRAINING_CONTAINER\"", "\"WAIT_FOR_FIT\""},
        {"\"WAIT_FOR_TRAINING_CONTAINER\"", "\"SUCCESS\""},
        {"\"action\":\"grant\"", "\"action\":\"dance\""},
        {"\"action\":\"grant\"", "\"action\":\"nothing\""},
        {"\"granted\":true", "\"granted\":false"},
        {"\"cleaning\":false", "\"cleaning\":true"},
        {"\"pointed\":false", "\"pointed\":true"},
        {"\"dedicated\":false", "\"dedicated\":true"},
        {"\"count\":0", "\"count\":-1"},
        {"\"count\":0", "\"count\":\"many\""},
        {"\"since\":10", "\"since\":-10"},
        {"\"reason\":\"\",", ""},
        {"{", "["},
        {"}", ""},
    };
    struct fit fit = at(FIT_MULTI, 3), read;
    char *text = fit_record_text(&fit);
    (void)unused;

    for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
        char *wrong = replaced(text, changes[i][0], changes[i][1]);
        struct error err = {""};

        if (fit_record_parse(wrong, strlen(wrong), &read, &err) == 0)
            fail_msg("accepted: %s", wrong);
        assert_true(err.text[0] != '\0');
        free(wrong);
    }
    free(text);
}

/* ---- histories ------------------------------------------------------------------------------- */

/* What is there, whatever the record says. */
struct world {
    bool grant, partial, complete, dedicated, points_at_new;
    int before, old_replicas, new_replicas;
};

/* Carry an action out: all of it, or the first half, after which the runner dies. */
static int carry_out(struct world *world, const struct fit *fit, bool half)
{
    switch (fit->action) {
    case FIT_DO_PREPARE:
        world->partial = true;
        break;
    case FIT_DO_DEDICATE:
        world->dedicated = true;
        break;
    case FIT_DO_GRANT:
        world->grant = true;
        break;
    case FIT_DO_COMPLETE:
        world->complete = true;
        break;
    case FIT_DO_COUNT:
        return world->old_replicas;
    case FIT_DO_POINT:
        if (half)
            break;
        world->partial = false;
        world->points_at_new = true;
        break;
    case FIT_DO_REPLACE:
        if (world->new_replicas == 0)
            world->new_replicas = 1;
        if (half) {
            world->old_replicas -= world->old_replicas > 0;
            break;
        }
        world->old_replicas = 0;
        world->new_replicas = fit_target(fit);
        break;
    case FIT_DO_REVOKE:
        world->grant = false;
        break;
    case FIT_DO_POINT_BACK:
        world->points_at_new = false;
        break;
    case FIT_DO_RESTORE:
        world->old_replicas = half ? fit->count / 2 : fit->count;
        world->new_replicas = half ? world->new_replicas : 0;
        break;
    case FIT_DO_DISCARD:
        world->partial = false;
        break;
    case FIT_DO_END_REPLICA:
        world->dedicated = false;
        break;
    default:
        break;
    }
    return 0;
}

/* Whatever is there, the record knows of: who reads it can end it. */
static void check_record(const struct world *world, const struct fit *fit)
{
    assert_true(!world->grant || fit->granted);
    assert_true(!world->partial || fit->partial);
    assert_true(!world->dedicated || fit->dedicated);
    assert_true(!fit->counted || fit->count == world->before);
    assert_true(fit->status == FIT_SUCCESS || fit->ending == FIT_SUCCESS || !world->points_at_new ||
                fit->pointed);
    assert_true(world->old_replicas == world->before || fit->replaced ||
                fit->status == FIT_SUCCESS || fit->ending == FIT_SUCCESS);
}

static void check_end(const struct world *world, const struct fit *fit)
{
    assert_false(world->grant || world->partial || world->dedicated);
    assert_false(fit->granted || fit->partial || fit->dedicated || fit->pointed || fit->replaced);
    if (fit->status == FIT_SUCCESS) {
        assert_true(world->complete && world->points_at_new);
        assert_int_equal(world->old_replicas, 0);
        assert_int_equal(world->new_replicas, world->before > 0 ? world->before : 1);
        assert_string_equal(fit->reason, "");
    } else {
        assert_false(world->points_at_new);
        assert_int_equal(world->old_replicas, world->before);
        assert_int_equal(world->new_replicas, 0);
        assert_true(fit->reason[0] != '\0');
    }
}

static enum fit_status play(unsigned int seed)
{
    unsigned int random = seed;
    struct world world = {.before = rand_r(&random) % 4};
    struct fit fit = fit_begin(seed % 2 == 0 ? FIT_SINGLE : FIT_MULTI, &limits, 10);
    double now = 10;
    int steps = 0;

    world.old_replicas = world.before;
    for (; !fit_is_over(&fit); steps++) {
        struct fit_fact fact = {.kind = FIT_FACT_DONE, .action = fit.action, .reason = "why"};
        bool killed = rand_r(&random) % 4 == 0;

        assert_true(steps < 400);
        check_record(&world, &fit);
        reread(&fit); /* it is written before each action; whoever goes on has only that */
        now += rand_r(&random) % 20;
        if (rand_r(&random) % 40 == 0)
            tell(&fit, FIT_FACT_CANCEL, now);
        else if (rand_r(&random) % 40 == 0)
            tell(&fit, FIT_FACT_TIME, now + 2000);
        if (fact.action != fit.action)
            continue;
        fact.count = carry_out(&world, &fit, killed);
        check_record(&world, &fit);
        if (killed)
            continue;
        if (rand_r(&random) % 12 == 0)
            fact.kind = FIT_FACT_FAILED;
        assert_true(fit_tell(&fit, &fact, now));
        if (rand_r(&random) % 4 == 0) { /* the same message again */
            enum fit_action next = fit.action;

            if (next != fact.action)
                assert_false(fit_tell(&fit, &fact, now));
            assert_int_equal(fit.action, next);
        }
    }
    reread(&fit);
    check_end(&world, &fit);
    return fit.status;
}

static void test_random_histories(void **unused)
{
    int ended[FIT_STATUSES] = {0};
    (void)unused;

    for (unsigned int seed = 1; seed <= 6000; seed++)
        ended[play(seed)]++;
    /* They are of all kinds. */
    assert_true(ended[FIT_SUCCESS] > 300 && ended[FIT_FAILED] > 300 && ended[FIT_CANCELLED] > 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_paths),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_every_edge),
        cmocka_unit_test(test_over_is_over),
        cmocka_unit_test(test_facts_about_something_else),
        cmocka_unit_test(test_a_success_waits_for_the_revocation),
        cmocka_unit_test(test_replicas_do_not_wait_for_the_revocation),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_records_that_no_fit_has_written),
        cmocka_unit_test(test_random_histories),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

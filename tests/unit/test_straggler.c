/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/straggler and lib/node_health: worlds with and without a slow rank, and how often a rank is
 * named that is none. */
#include "lib/straggler.h"

#include <math.h>

#include "lib/node_health.h"
#include "tests/unit/support.h"

#define RANKS_MAX 64
#define STEP      2.0 /* seconds between two looks, with one step in each */

/* A training: the own time of a rank for a step is time * noise. */
struct training {
    const char *name;
    int ranks;
    double noise;  /* standard deviation of the logarithm */
    double spikes; /* share of steps that take three times as long */
    int slow;      /* a rank, -1: none */
    double factor; /* of the slow one */
    double all;    /* factor of all ranks from half of the time on; 1: none */
    int looks;
    bool found;
};

static double uniform(uint64_t *random)
{
    return (random_next(random) + 0.5) / 4294967296.0;
}

/* Box and Muller. */
static double normal(uint64_t *random)
{
    return sqrt(-2 * log(uniform(random))) * cos(2 * 3.14159265358979 * uniform(random));
}

static double own_time(const struct training *t, int rank, int look, uint64_t *random)
{
    double time = 0.4 * exp(t->noise * normal(random));

    if (uniform(random) < t->spikes)
        time *= 3;
    if (rank == t->slow)
        time *= t->factor;
    return look > t->looks / 2 ? time * t->all : time;
}

/* The looks in which there were other findings. *rank: the last one that was found, -1: none. */
static int play(const struct training *t, uint64_t seed, int *rank)
{
    struct straggler *s = straggler_create();
    uint64_t random = seed * 7919 + 1;
    double sums[RANKS_MAX] = {0};
    int changes = 0;

    *rank = -1;
    assert_int_equal(straggler_world(s, t->ranks, 100), 0);
    for (int look = 1; look <= t->looks; look++) {
        for (int i = 0; i < t->ranks; i++) {
            sums[i] += own_time(t, i, look, &random);
            straggler_heard(s, i, (uint64_t)look, sums[i]);
        }
        if (!straggler_look(s, 100 + look * STEP))
            continue;
        changes++;
        if (straggler_found(s, 0) != NULL)
            *rank = straggler_found(s, 0)->rank;
    }
    straggler_destroy(s);
    return changes;
}

static void test_trainings(void **state)
{
    static const struct training table[] = {
        {"all alike", 8, 0.05, 0, -1, 1, 1, 500, false},
        {"one is slow", 8, 0.05, 0, 3, 1.6, 1, 100, true},
        {"one is slow, and there is noise", 16, 0.12, 0.02, 3, 1.8, 1, 200, true},
        {"one of three", 3, 0.02, 0, 2, 1.6, 1, 100, true},
        {"one of two: which one?", 2, 0.02, 0, 1, 3, 1, 500, false},
        {"a little slow", 8, 0.05, 0, 3, 1.15, 1, 500, false},
        {"all are slow from now on", 8, 0.05, 0, -1, 1, 3, 500, false},
        {"all are slow, one more than the others", 8, 0.05, 0, 3, 1.7, 3, 300, true},
        {"too short a time", 8, 0.05, 0, 3, 3, 1, 40, false},
    };
    int rank;

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++)
        for (uint64_t seed = 1; seed <= 20; seed++) {
            int changes = play(&table[i], seed, &rank);

            if (changes != table[i].found || rank != (table[i].found ? table[i].slow : -1))
                fail_msg("%s: seed %d: %d changes, rank %d", table[i].name, (int)seed, changes,
                         rank);
        }
}

/* Hours of trainings of any kind, none of which has a slow rank: nobody is named. */
static void test_false_alarms(void **state)
{
    int alarms = 0, rank;
    double hours = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= RANDOM_ROUNDS(200); seed++) {
        uint64_t random = seed;
        struct training t = {.ranks = 3 + (int)random_below(&random, 30),
                             .noise = 0.3 * uniform(&random),
                             .spikes = 0.1 * uniform(&random),
                             .slow = -1,
                             .all = 1 + 2 * uniform(&random),
                             .looks = 1000};

        alarms += play(&t, seed, &rank);
        hours += t.looks * STEP / 3600;
    }
    print_message("%d false alarms in %.0f hours of trainings\n", alarms, hours);
    assert_int_equal(alarms, 0);
}

/* A rank that is slow is found within the window, and forgotten when it has been well for long. */
static void test_it_ends(void **state)
{
    struct straggler *s = straggler_create();
    double sum[4] = {0}, found = 0, gone = 0;

    (void)state;
    assert_int_equal(straggler_world(s, 4, 0), 0);
    for (int look = 1; look <= 200; look++) {
        for (int i = 0; i < 4; i++) {
            sum[i] += i == 1 && look < 100 ? 1.0 : 0.5;
            straggler_heard(s, i, (uint64_t)look * 10, sum[i] * 10);
        }
        if (!straggler_look(s, look * STEP))
            continue;
        if (straggler_found(s, 0) != NULL) {
            found = look * STEP;
            assert_int_equal(straggler_found(s, 0)->rank, 1);
            assert_near(straggler_found(s, 0)->factor, 2, 0.01);
            assert_near(straggler_found(s, 0)->since, found, 1e-9);
            assert_null(straggler_found(s, 1));
        } else {
            gone = look * STEP;
        }
    }
    /* 20 s do not count, then 32 looks. */
    assert_near(found, STRAGGLER_WARM + (STRAGGLER_WINDOW - 1) * STEP, 2 * STEP);
    assert_near(gone, 200 + (STRAGGLER_WINDOW - STRAGGLER_LEAVE) * STEP, 3 * STEP);
    straggler_destroy(s);
}

static void test_worlds(void **state)
{
    struct straggler *s = straggler_create();

    (void)state;
    assert_false(straggler_look(s, 1)); /* no world */
    straggler_heard(s, 0, 1, 1);
    assert_int_equal(straggler_world(s, 4, 0), 0);
    for (int look = 1; look <= 60; look++) {
        for (int i = 0; i < 4; i++)
            straggler_heard(s, i, (uint64_t)look, look * (i == 1 ? 1.0 : 0.5));
        straggler_look(s, look * STEP);
    }
    assert_non_null(straggler_found(s, 0));
    straggler_heard(s, 4, 1, 1); /* there is none */
    straggler_heard(s, -1, 1, 1);
    /* Another world: nobody is slow before it has been seen for as long. */
    assert_int_equal(straggler_world(s, 8, 120), 0);
    assert_null(straggler_found(s, 0));
    for (int look = 1; look <= 40; look++) {
        for (int i = 0; i < 8; i++)
            straggler_heard(s, i, (uint64_t)look, look * (i == 1 ? 1.0 : 0.5));
        assert_false(straggler_look(s, 120 + look * STEP));
    }
    /* One rank reports nothing: there is nothing to compare. */
    assert_int_equal(straggler_world(s, 4, 300), 0);
    for (int look = 1; look <= 100; look++) {
        for (int i = 0; i < 3; i++)
            straggler_heard(s, i, (uint64_t)look, look * (i == 1 ? 1.0 : 0.5));
        assert_false(straggler_look(s, 300 + look * STEP));
    }
    straggler_destroy(s);
}

/* Counters that begin anew, that stand, that are nonsense. */
static void test_counters(void **state)
{
    struct straggler *s = straggler_create();

    (void)state;
    assert_int_equal(straggler_world(s, 3, 0), 0);
    for (int look = 1; look <= 100; look++) {
        uint64_t steps = (uint64_t)(look % 50) + 1;

        for (int i = 0; i < 3; i++)
            straggler_heard(s, i, steps, (double)steps);
        straggler_heard(s, 0, steps, NAN);
        straggler_heard(s, 1, steps, -1);
        assert_false(straggler_look(s, look * STEP));
        assert_false(straggler_look(s, look * STEP)); /* no step since */
    }
    straggler_destroy(s);
}

/* ---- the cause ------------------------------------------------------------------------------- */

static void test_causes(void **state)
{
    static const struct {
        struct node_health before, now;
        const char *word, *text;
    } table[] = {
        {NODE_HEALTH_NONE, NODE_HEALTH_NONE, "unknown", "its counters show no cause"},
        {{5, 0, 0, 0, 0}, {5, 0, 1, 1, 1}, "unknown", "its counters show no cause"},
        {{5, 0, 0, 0, 0}, {6, 9, 90, 90, 90}, "throttled", "its processors were throttled 1 time"},
        {{5, 0, 0, 0, 0},
         {125, 0, 0, 0, 0},
         "throttled",
         "its processors were throttled 120 times"},
        {{-1, -1, -1, -1, -1}, {125, 3, 0, 0, 0}, "unknown", "its counters show no cause"},
        {{5, 2, 0, 0, 0},
         {5, 4, 90, 12.4, 90},
         "memory",
         "its memory is short: tasks waited for 12 % of the last minute"},
        {{5, 2, 0, 0, 0}, {5, 4, 90, 1, 90}, "network", "its network devices had 2 errors"},
        {{5, 2, 0, 0, 0},
         {5, 2, 90, 1, 30},
         "io",
         "its storage is slow: tasks waited for 30 % of the last minute"},
        {{5, 2, 0, 0, 0},
         {5, 2, 90, 1, 3},
         "cpu",
         "its processors are busy: tasks waited for 90 % of the last minute"},
        {{5, 2, 0, 0, 0}, {1, 1, 0, 0, 0}, "unknown", "its counters show no cause"}, /* a boot */
    };
    char text[100];

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        assert_string_equal(node_health_cause(&table[i].before, &table[i].now, text, sizeof(text)),
                            table[i].word);
        assert_string_equal(text, table[i].text);
    }
}

static void test_files(void **state)
{
    int64_t sum = -1;

    (void)state;
    node_health_add(&sum, "x\n");
    node_health_add(&sum, "");
    assert_int_equal(sum, -1);
    node_health_add(&sum, "17\n");
    node_health_add(&sum, "3");
    node_health_add(&sum, "-4\n");
    node_health_add(&sum, "99999999999999999999\n");
    assert_int_equal(sum, 20);
    assert_near(node_health_pressure("some avg10=1.00 avg60=12.34 avg300=0.00 total=5\nfull ..."),
                12.34, 1e-9);
    assert_near(node_health_pressure("some avg10=1.00 avg60=101 avg300=0"), -1, 0);
    assert_near(node_health_pressure("some avg10=1.00 avg60=nan"), -1, 0);
    assert_near(node_health_pressure("full avg10=1.00 avg60=2"), -1, 0);
    assert_near(node_health_pressure(""), -1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trainings), cmocka_unit_test(test_false_alarms),
        cmocka_unit_test(test_it_ends),   cmocka_unit_test(test_worlds),
        cmocka_unit_test(test_counters),  cmocka_unit_test(test_causes),
        cmocka_unit_test(test_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/goodput: tables of what happens to a training, and what its time was used for. */
#include "lib/goodput.h"

#include "tests/unit/support.h"

enum what { END, ENTER, REPORT };

struct moment {
    double now;
    enum what what;
    enum goodput_use use;
    int world;
    int64_t done;
};

struct life {
    const char *name;
    struct moment moments[12];
    double seconds[GOODPUT_USES]; /* waiting, changing, productive, repeated */
    int64_t lost;
};

static const struct life lives[] = {
    {"grows",
     {{100, ENTER, GOODPUT_WAITING, 0, 0},
      {110, ENTER, GOODPUT_CHANGING, 0, 0},
      {115, ENTER, GOODPUT_PRODUCTIVE, 0, 0},
      {215, ENTER, GOODPUT_CHANGING, 0, 0},
      {217, ENTER, GOODPUT_PRODUCTIVE, 0, 0},
      {317, ENTER, GOODPUT_CHANGING, 0, 0}},
     {10, 7, 200, 0},
     0},
    {"fails, and makes 30 of 80 again",
     {{100, ENTER, GOODPUT_PRODUCTIVE, 0, 0},
      {180, REPORT, 0, 1, 80},
      {180, ENTER, GOODPUT_CHANGING, 0, 0},
      {190, ENTER, GOODPUT_PRODUCTIVE, 0, 0},
      {191, REPORT, 0, 2, 50},
      {211, REPORT, 0, 2, 70},
      {221, REPORT, 0, 2, 80},
      {231, ENTER, GOODPUT_CHANGING, 0, 0}},
     {0, 10, 80 + 1 + 10, 30},
     30},
    {"fails again before it is where it was",
     {{100, REPORT, 0, 1, 100},
      {100, ENTER, GOODPUT_PRODUCTIVE, 0, 0},
      {101, REPORT, 0, 2, 50},
      {121, REPORT, 0, 2, 70},
      {121, REPORT, 0, 3, 50},
      {171, REPORT, 0, 3, 100},
      {181, ENTER, GOODPUT_CHANGING, 0, 0}},
     {0, 0, 1 + 10, 70},
     50 + 20},
    {"a new count in the same world is nothing lost",
     {{100, ENTER, GOODPUT_PRODUCTIVE, 0, 0},
      {110, REPORT, 0, 1, 100},
      {120, REPORT, 0, 1, 3},
      {130, REPORT, 0, 1, 13},
      {140, REPORT, 0, 2, 13},
      {150, ENTER, GOODPUT_CHANGING, 0, 0}},
     {0, 0, 50, 0},
     0},
    {"a change without a loss",
     {{100, ENTER, GOODPUT_PRODUCTIVE, 0, 0},
      {110, REPORT, 0, 1, 10},
      {120, REPORT, 0, 2, 11},
      {130, ENTER, GOODPUT_PRODUCTIVE, 0, 0}},
     {0, 0, 30, 0},
     0},
    {"a clock that stands, and goes back",
     {{100, ENTER, GOODPUT_PRODUCTIVE, 0, 0},
      {100, ENTER, GOODPUT_CHANGING, 0, 0},
      {90, ENTER, GOODPUT_PRODUCTIVE, 0, 0},
      {101, ENTER, GOODPUT_CHANGING, 0, 0}},
     {0, 0, 1, 0},
     0},
};

static void test_lives(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(lives); i++) {
        struct goodput goodput = {0};

        for (const struct moment *m = lives[i].moments; m->what != END; m++)
            if (m->what == ENTER)
                goodput_enter(&goodput, m->now, m->use);
            else
                goodput_report(&goodput, m->now, m->world, m->done);
        for (int use = 0; use < GOODPUT_USES; use++)
            if (!is_near(goodput.seconds[use], lives[i].seconds[use], 1e-9))
                fail_msg("%s: %s %g s", lives[i].name, goodput_names[use], goodput.seconds[use]);
        if (goodput.lost != lives[i].lost)
            fail_msg("%s: %lld lost", lives[i].name, (long long)goodput.lost);
    }
}

static void test_pauses(void **state)
{
    static const double pauses[] = {-1, 0, 0.1, 0.11, 3, 300, 301};
    static const int64_t expected[GOODPUT_BUCKETS] = {2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 5};
    struct goodput goodput = {0};

    (void)state;
    for (size_t i = 0; i < COUNT(pauses); i++)
        goodput_paused(&goodput, pauses[i]);
    for (int i = 0; i < GOODPUT_BUCKETS; i++)
        assert_int_equal(goodput.pauses[i], expected[i]);
    assert_int_equal(goodput.pause_count, 6);
    assert_near(goodput.pause_sum, 604.21, 1e-9);
}

/* Whatever happens, all time is accounted for, once. */
static void test_random(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= RANDOM_ROUNDS(2000); seed++) {
        uint64_t random = seed * 7919;
        struct goodput goodput = {0};
        double now = 100, sum = 0;
        int world = 1;

        goodput_enter(&goodput, now, GOODPUT_WAITING);
        for (int i = 0; i < 50; i++) {
            now += random_below(&random, 1000) / 100.0;
            world += random_below(&random, 5) == 0;
            if (random_below(&random, 2) == 0)
                goodput_enter(&goodput, now, random_below(&random, GOODPUT_REPEATED));
            else
                goodput_report(&goodput, now, world, random_below(&random, 1000));
            assert_true(goodput.lost >= 0 && goodput.most >= goodput.last);
        }
        for (int use = 0; use < GOODPUT_USES; use++)
            sum += goodput.seconds[use];
        assert_near(sum, now - 100, 1e-6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lives),
        cmocka_unit_test(test_pauses),
        cmocka_unit_test(test_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

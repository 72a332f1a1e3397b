/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How many replicas a shard should have: steps, and what always holds. */
#include "lib/service_scale.h"
#include "tests/unit/support.h"

static const struct service_scale_options options = {
    .least = 1, .most = 6, .sessions = 8, .calm = 60};

/* One after the other. */
static void test_steps(void **state)
{
    static const struct {
        double now;
        int64_t sessions;
        int replicas;
    } steps[] = {
        {1, 0, 1},           {2, 8, 1},    {3, 9, 2},
        {4, 17, 3},                                     /* more at once */
        {5, 1000, 6},                                   /* no more than most */
        {10, 20, 6},         {69, 20, 6},  {70, 20, 3}, /* fewer after a while … */
        {80, 1, 3},          {100, 10, 3}, {139, 0, 3},
        {140, 0, 2}, /* … the most of which counts */
        {150, 0, 2},         {160, 16, 2}, {170, 0, 2},
        {229, 0, 2},                                     /* all were needed in between */
        {230, 0, 1},         {300, 0, 1},  {301, -5, 1}, /* no fewer than least */
        {302, INT64_MAX, 6},
    };
    struct service_scale scale = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        int replicas = service_scale_step(&scale, &options, steps[i].sessions, steps[i].now);

        if (replicas != steps[i].replicas)
            fail_msg("at %.0f with %lld sessions: %d", steps[i].now, (long long)steps[i].sessions,
                     replicas);
    }
}

static void test_none(void **state)
{
    const struct service_scale_options none = {.least = 2, .most = 2};
    struct service_scale scale = {0};

    (void)state;
    assert_int_equal(service_scale_step(&scale, &none, 1000, 1), 2);
    assert_true(service_scale_deadline(&scale, &none) == 0);
    /* A record of other options. */
    scale = (struct service_scale){.replicas = 50};
    assert_int_equal(service_scale_step(&scale, &options, 48, 1), 6);
}

/* The load of now always fits, and what the last minute did not need goes. */
static void test_random(void **state)
{
    uint64_t seed = 7;

    (void)state;
    for (int history = 0; history < RANDOM_ROUNDS(100); history++) {
        struct service_scale scale = {0};
        int64_t past[4096];
        int64_t sessions = 0;

        for (int now = 1; now < 4096; now++) {
            int64_t most = 0;
            int replicas, before = scale.replicas;

            if (random_below(&seed, 10) == 0)
                sessions = random_below(&seed, 60);
            past[now] = sessions;
            replicas = service_scale_step(&scale, &options, sessions, now);
            assert_true(replicas >= 1 && replicas <= 6);
            assert_true(replicas == 6 || replicas * 8 >= sessions);
            for (int i = now; i > now - 60 && i > 0; i--)
                most = past[i] > most ? past[i] : most;
            if (replicas < before) /* not below what the last minute had */
                assert_true(replicas == 6 || replicas * 8 >= most);
            for (int i = now; i > now - 125 && i > 0; i--)
                most = past[i] > most ? past[i] : most;
            assert_true(replicas == 1 || (replicas - 1) * 8 < most);
            if (scale.since > 0)
                assert_true(service_scale_deadline(&scale, &options) > now);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

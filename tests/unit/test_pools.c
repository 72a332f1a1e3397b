/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/pools: each rule in a situation of its own, and jobs on clouds that come and go. */
#include "tests/unit/support.h"

#include <math.h>

#include "lib/pools.h"
#include "tests/unit/cloud.h"

#define HOUR 3600.0

enum { SPOT, OTHER, DEMAND, POOLS };

/* A situation under construction: sixteen nodes at most, two zones of spot nodes, on-demand nodes
 * at three times their price; a node makes one unit of work per second. */
struct scene {
    struct sizes sizes;
    struct speed speed;
    struct pools_pool pools[POOLS];
    struct pools_memory memory;
    struct pools_input in;
    struct pools_output out;
};

static void scene_init(struct scene *s, const char *sizes)
{
    struct error err;

    memset(s, 0, sizeof(*s));
    assert_int_equal(sizes_parse(sizes, &s->sizes, &err), 0);
    speed_add(&s->speed, 1, 100, 100);
    s->pools[SPOT] = (struct pools_pool){.name = "spot", .price = 1, .wake = true, .boot = 300};
    s->pools[OTHER] = (struct pools_pool){.name = "other", .price = 1, .wake = true, .boot = 300};
    s->pools[DEMAND] = (struct pools_pool){
        .name = "demand", .price = 3, .fallback = true, .wake = true, .boot = 300};
    s->in = (struct pools_input){
        .now = 1000,
        .sizes = &s->sizes,
        .target = s->sizes.max,
        .base_nodes = s->sizes.min,
        .base_safe = true,
        .base_price = 3,
        .mode = POOLS_DEADLINE,
        .speed = &s->speed,
        .pause = 2,
        .changed = -1,
        .pools = s->pools,
        .pool_count = POOLS,
    };
}

/* So much work is left, in hours of one node, and so many hours. */
static void scene_deadline(struct scene *s, double node_hours, double hours)
{
    s->in.total = s->in.done + node_hours * HOUR;
    s->in.deadline = s->in.now + hours * HOUR;
}

static void decide(struct scene *s)
{
    pools_decide(&s->in, &s->memory, &s->out);
    s->memory = s->out.memory;
}

static void expect_asks(struct scene *s, int spot, int other, int demand)
{
    decide(s);
    assert_int_equal(s->out.targets[SPOT].ask, spot);
    assert_int_equal(s->out.targets[OTHER].ask, other);
    assert_int_equal(s->out.targets[DEMAND].ask, demand);
}

static void expect_given_back(struct scene *s, int spot, int other, int demand)
{
    decide(s);
    assert_int_equal(s->out.targets[SPOT].give_back, spot);
    assert_int_equal(s->out.targets[OTHER].give_back, other);
    assert_int_equal(s->out.targets[DEMAND].give_back, demand);
}

/* ---- 1. spot first ----------------------------------------------------------------------- */

static void test_cheapest_spot_first(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s, "2:16");
    expect_asks(&s, 14, 0, 0); /* at equal price as the user has named them */
    assert_int_equal(s.out.why, POOLS_SPOT);
    assert_int_equal(s.out.targets[SPOT].why, POOLS_ASKED);
    assert_int_equal(s.out.targets[OTHER].why, POOLS_ENOUGH);

    s.pools[OTHER].price = 0.9;
    expect_asks(&s, 0, 14, 0);
    s.pools[SPOT].speed = 1.2; /* 1 / 1.2 < 0.9: cheaper for what it does */
    expect_asks(&s, 14, 0, 0);
}

static void test_limits_of_a_pool(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s, "2:16");
    s.pools[SPOT].max_nodes = 5;
    expect_asks(&s, 5, 9, 0);
    s.pools[SPOT].ready = 5;
    expect_asks(&s, 0, 9, 0);
    assert_int_equal(s.out.targets[SPOT].why, POOLS_FULL);

    s.pools[OTHER].max_resume = 2;
    expect_asks(&s, 0, 2, 0);
    s.pools[OTHER].booting = 2;
    expect_asks(&s, 0, 0, 0);
    assert_int_equal(s.out.targets[OTHER].why, POOLS_BOOTS);
    s.pools[OTHER].wake = false; /* nodes that are up do not boot */
    expect_asks(&s, 0, 7, 0);

    s.in.target = 10; /* selastic resize */
    expect_asks(&s, 0, 1, 0);
}

static void test_max_price(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s, "2:16");
    s.in.max_price = 1;
    s.pools[SPOT].price = 1.1;
    s.pools[SPOT].ready = 3;
    expect_asks(&s, 0, 14, 0);
    assert_int_equal(s.out.targets[SPOT].why, POOLS_PRICE);
    assert_int_equal(s.out.targets[SPOT].give_back, 3);
    /* On-demand nodes, too: the deadline has to do without. */
    scene_deadline(&s, 100, 1);
    expect_asks(&s, 0, 14, 0);
}

static void test_nothing_new_shortly_before_the_end(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s, "2:16");
    s.pools[SPOT].ready = 2;
    s.in.total = s.in.done + 4 * 2 * 300.0; /* 4 nodes need two boots */
    expect_asks(&s, 12, 0, 0);
    s.in.total -= 10;
    expect_asks(&s, 0, 0, 0);
    assert_int_equal(s.out.targets[SPOT].why, POOLS_ENDING);
    assert_near(s.out.end, s.in.now + 597.5, 1e-6);
}

/* ---- 2., 3. the deadline ------------------------------------------------------------------ */

static void test_deadline_without_facts_does_nothing(void **state)
{
    struct scene s;
    struct speed none = {0};

    (void)state;
    scene_init(&s, "2:16");
    scene_deadline(&s, 1000, 1);
    s.in.total = 0;
    expect_asks(&s, 14, 0, 0);
    assert_int_equal(s.out.why, POOLS_NO_WORK);
    scene_deadline(&s, 1000, 1);
    s.in.speed = &none;
    expect_asks(&s, 14, 0, 0);
    assert_int_equal(s.out.why, POOLS_NO_SPEED);
    s.in.speed = &s.speed;
    s.in.mode = POOLS_NEVER;
    expect_asks(&s, 14, 0, 0);
    assert_int_equal(s.out.why, POOLS_SPOT);
    s.in.mode = POOLS_DEADLINE;
    s.in.base_safe = false;
    s.in.pool_count = DEMAND;
    decide(&s);
    assert_int_equal(s.out.why, POOLS_NO_FALLBACK);
}

static void test_on_demand_from_the_pressure_on(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s, "2:16");
    s.in.base_nodes = 0;
    s.in.pause = 0;
    s.pools[SPOT].ready = 4;
    s.pools[SPOT].pause_until = s.pools[OTHER].pause_until = 1e9;
    scene_deadline(&s, 0.79 * 16 * (30 - POOLS_MARGIN / HOUR), 30);
    expect_asks(&s, 0, 0, 0);
    assert_near(s.out.pressure, 0.79, 1e-9);
    assert_int_equal(s.out.why, POOLS_LATER); /* by four nodes alone it would be late */
    /* It looks again when the pressure will be there. */
    assert_true(s.out.wake > 0 && s.out.wake <= POOLS_LOOK_MOST);
    scene_deadline(&s, 0.81 * 16 * (30 - POOLS_MARGIN / HOUR), 30);
    expect_asks(&s, 0, 0, 13 - 4); /* 0.81 × 16 = 12.96 */
    assert_int_equal(s.out.why, POOLS_PACE);
}

static void test_on_demand_stays_until_spot_joins(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s, "2:16");
    s.in.base_nodes = 0;
    s.in.pause = 0;
    s.pools[DEMAND].ready = 12;
    scene_deadline(&s, 10.5 * (30 - POOLS_MARGIN / HOUR), 30); /* 11 nodes; pressure 0.66 */
    expect_given_back(&s, 0, 0, 0);                            /* one too many stays */
    s.pools[SPOT].booting = 4;
    expect_given_back(&s, 0, 0, 0); /* booting nodes take nobody's place */
    s.pools[SPOT].booting = 0;
    s.pools[SPOT].ready = 1;
    expect_given_back(&s, 0, 0, 2);
    s.pools[DEMAND].ready = 10;
    s.pools[SPOT].ready = 0; /* the pressure is low: no new ones */
    expect_asks(&s, 16, 0, 0);
    s.pools[DEMAND].ready = 14; /* two too many or more go without spot nodes */
    expect_given_back(&s, 0, 0, 3);
}

static void test_one_too_many_goes_for_a_spot_node_that_has_joined(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s, "2:16");
    s.in.base_nodes = 0;
    s.in.pause = 0;
    s.pools[DEMAND].ready = 11;
    scene_deadline(&s, 10.5 * (30 - POOLS_MARGIN / HOUR), 30);
    expect_given_back(&s, 0, 0, 0);
    s.pools[SPOT].ready = 1;
    expect_given_back(&s, 0, 0, 1);
    expect_given_back(&s, 0, 0, 0); /* it was there the last time */
}

static void test_on_demand_stays_for_the_end(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s, "2:16");
    s.in.base_nodes = 0;
    s.pools[DEMAND].ready = 14;
    scene_deadline(&s, 14 * 590 / HOUR, 10); /* no spot node would boot in time to take over */
    expect_given_back(&s, 0, 0, 0);
}

static void test_looks_again_before_it_is_too_late(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s, "1:16");
    s.in.base_nodes = 0;
    s.in.pause = 0;
    s.pools[SPOT].pause_until = s.pools[OTHER].pause_until = 1e9;
    s.in.deadline = s.in.now + 3000;
    s.in.total = 16 * (3000 - 600 - POOLS_MARGIN - 100);
    expect_asks(&s, 0, 0, 0);
    assert_near(s.out.wake, 100, 1e-6);
    s.in.now += 101;
    expect_asks(&s, 0, 0, 16);
}

static void test_safety_reckons_with_pauses(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s, "1:16");
    s.in.base_nodes = 0;
    s.in.pause = 60;
    s.pools[SPOT].ready = 16;
    s.in.deadline = s.in.now + 4 * HOUR;
    /* Each spot node may be lost, and each on-demand node join, in a change of its own. */
    s.in.total = 16 * (4 * HOUR - 600 - POOLS_MARGIN - 60 * (2 + 16 + 16));
    expect_asks(&s, 0, 0, 0);
    s.in.total += 600;
    decide(&s);
    assert_int_equal(s.out.why, POOLS_SAFETY);
    assert_true(s.out.targets[DEMAND].ask > 0);
}

static void test_safety(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s, "1:16");
    s.in.base_nodes = 0;
    s.in.pause = 0;
    s.pools[SPOT].ready = 16;
    /* All spot nodes lost now: 16 on-demand nodes after 300 s are just in time. */
    s.in.deadline = s.in.now + 4 * HOUR;
    s.in.total = 16 * (4 * HOUR - 600 - POOLS_MARGIN);
    expect_asks(&s, 0, 0, 0);
    s.in.total += 600; /* one node must be safe */
    expect_asks(&s, 0, 0, 1);
    assert_int_equal(s.out.why, POOLS_SAFETY);
    /* Spot nodes work on until on-demand nodes have joined, then they make way for them. */
    s.pools[DEMAND].booting = 1;
    expect_given_back(&s, 0, 0, 0);
    s.pools[DEMAND].booting = 0;
    s.pools[DEMAND].ready = 1;
    expect_given_back(&s, 1, 0, 0);
    s.in.total += 16 * 700.0;
    decide(&s);
    assert_int_equal(s.out.why, POOLS_LATE);
    assert_int_equal(s.out.targets[DEMAND].nodes, 16);
}

static void test_max_resume_makes_the_delay_longer(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s, "1:16");
    s.in.base_nodes = 0;
    s.in.pause = 0;
    s.pools[SPOT].ready = 16;
    s.pools[DEMAND].max_resume = 4; /* four rounds of boots */
    s.in.deadline = s.in.now + 4 * HOUR;
    s.in.total = 16 * (4 * HOUR - 600 - POOLS_MARGIN);
    expect_asks(&s, 0, 0, 4);
}

static void test_deadline_has_passed(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s, "2:16");
    s.in.now = 1e6;
    scene_deadline(&s, 10, -1);
    decide(&s);
    assert_int_equal(s.out.why, POOLS_LATE);
    assert_int_equal(s.out.targets[DEMAND].ask, 14);
    s.in.done = s.in.total; /* nothing is left to do */
    s.pools[DEMAND].ready = 14;
    decide(&s);
    assert_int_equal(s.out.targets[DEMAND].nodes, 0);
}

/* ---- 4. fallback after some seconds ------------------------------------------------------- */

static void test_lost_nodes_are_replaced_after_a_while(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s, "2:16");
    s.in.mode = POOLS_AFTER;
    s.in.after = 120;
    s.pools[SPOT].ready = 6;
    decide(&s);
    s.pools[SPOT].ready = 2;
    s.pools[SPOT].pause_until = s.pools[OTHER].pause_until = 1e9;
    expect_asks(&s, 0, 0, 0);
    assert_near(s.out.wake, 120, 1e-9);
    s.in.now += 119;
    expect_asks(&s, 0, 0, 0);
    s.in.now += 1;
    s.pools[OTHER].booting = 1; /* comes back by itself */
    expect_asks(&s, 0, 0, 3);
    assert_int_equal(s.out.why, POOLS_SUPPLEMENT);
    s.pools[DEMAND].ready = 3;
    expect_given_back(&s, 0, 0, 0);
    s.pools[OTHER].booting = 4; /* all come back: those that stand in for them go when they work */
    expect_given_back(&s, 0, 0, 0);
    s.pools[OTHER].booting = 0;
    s.pools[OTHER].ready = 3;
    expect_given_back(&s, 0, 0, 2);
    s.pools[OTHER].ready = 4;
    expect_given_back(&s, 0, 0, 3);
}

static void test_a_job_that_has_lost_nothing_gets_no_supplement(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s, "2:16");
    s.in.mode = POOLS_AFTER;
    expect_asks(&s, 14, 0, 0);
    s.in.now += 10000;
    expect_asks(&s, 14, 0, 0);
    /* Nor one that was made smaller. */
    s.pools[SPOT].ready = 14;
    decide(&s);
    s.in.target = 4;
    s.pools[SPOT].ready = 2;
    s.in.now += 1;
    decide(&s);
    s.in.now += 10000;
    expect_asks(&s, 0, 0, 0);
}

/* ---- 5. return to spot -------------------------------------------------------------------- */

static void test_replacement_may_exceed_max_until_it_joins(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s, "2:16");
    s.in.pause = 0;
    s.pools[DEMAND].ready = 14;
    scene_deadline(&s, 15.9 * 29, 30);
    expect_asks(&s, 14, 0, 0);
    s.pools[SPOT].booting = 14;
    expect_given_back(&s, 0, 0, 0);
    s.pools[SPOT].booting = 9;
    s.pools[SPOT].ready = 5;
    expect_given_back(&s, 0, 0, 5);
}

static void test_dearest_goes_first(void **state)
{
    struct scene s;
    struct pools_pool more[POOLS + 1];

    (void)state;
    scene_init(&s, "2:16");
    memcpy(more, s.pools, sizeof(s.pools));
    more[POOLS] = s.pools[DEMAND];
    more[POOLS].price = 2;
    more[DEMAND].ready = more[POOLS].ready = 7;
    more[SPOT].ready = 9;
    s.in.pools = more;
    s.in.pool_count = POOLS + 1;
    s.in.pause = 0;
    scene_deadline(&s, 15.9 * 29, 30);
    decide(&s);
    assert_int_equal(s.out.targets[DEMAND].give_back, 7);
    assert_int_equal(s.out.targets[POOLS].give_back, 2);
    assert_int_equal(s.out.order[0], DEMAND);
    assert_int_equal(s.out.order[1], POOLS);
    assert_int_equal(s.out.order[2], OTHER);
    assert_int_equal(s.out.order[3], SPOT);
}

static void test_on_demand_that_no_size_can_use(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s, "4:16:4");
    s.in.mode = POOLS_AFTER;
    s.memory = (struct pools_memory){.before_loss = 7, .below = true, .spot = 3};
    s.pools[SPOT].ready = 3;
    s.pools[SPOT].pause_until = s.pools[OTHER].pause_until = 1e9;
    expect_asks(&s, 0, 0, 1); /* 4 + 3 + 1; four would not make 12 */
}

/* ---- 6. failover -------------------------------------------------------------------------- */

static void test_paused_pool(void **state)
{
    struct scene s;
    struct retry retry = pools_backoff();

    (void)state;
    scene_init(&s, "2:16");
    s.pools[SPOT].ready = 4;
    s.pools[SPOT].pending = 3;
    assert_near(retry_failed(&retry, s.in.now), 60, 0);
    s.pools[SPOT].pause_until = retry.after;
    expect_asks(&s, 0, 10, 0); /* the next pool, at once */
    assert_int_equal(s.out.targets[SPOT].why, POOLS_PAUSED);
    assert_int_equal(s.out.targets[SPOT].cancel, 3);
    assert_int_equal(s.out.targets[SPOT].give_back, 0);

    /* It takes no more requests, but those that wait may come. */
    s.pools[SPOT].refuses = true;
    s.pools[SPOT].pending_since = s.in.now;
    expect_asks(&s, 0, 7, 0);
    assert_int_equal(s.out.targets[SPOT].cancel, 0);
    s.pools[SPOT].refuses = false;

    s.pools[OTHER].pause_until = s.in.now + 300;
    s.pools[SPOT].pending = 0;
    expect_asks(&s, 0, 0, 0);
    assert_near(s.out.wake, 60, 1e-9);
    s.in.now += 60;
    expect_asks(&s, 10, 0, 0);
}

static void test_pauses_double_up_to_ten_minutes(void **state)
{
    static const double pauses[] = {60, 120, 240, 480, 600, 600};
    struct retry retry = pools_backoff();

    (void)state;
    for (size_t i = 0; i < COUNT(pauses); i++)
        assert_near(retry_failed(&retry, retry.after), pauses[i], 0);
}

static void test_nodes_that_do_not_come_are_asked_elsewhere(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s, "2:16");
    s.pools[SPOT].pending = 14;
    s.pools[SPOT].pending_since = s.in.now - POOLS_PATIENCE + 1;
    expect_asks(&s, 0, 0, 0);
    assert_near(s.out.wake, 1, 1e-9);
    s.in.now += 1;
    expect_asks(&s, 0, 14, 0);
    assert_true(s.out.targets[SPOT].gives_up);
    assert_int_equal(s.out.targets[SPOT].cancel, 14);
    assert_int_equal(s.out.targets[SPOT].why, POOLS_STALE);
    /* Without another pool they keep their place in the queue. */
    s.pools[OTHER].pause_until = 1e9;
    expect_asks(&s, 0, 0, 0);
    assert_false(s.out.targets[SPOT].gives_up);
    assert_int_equal(s.out.targets[SPOT].cancel, 0);
}

static void test_growth_waits_for_the_last_change(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s, "2:16");
    s.in.pause = 60;
    s.in.changed = s.in.now - 100;
    expect_asks(&s, 0, 0, 0);
    assert_int_equal(s.out.targets[SPOT].why, POOLS_SETTLES);
    assert_near(s.out.wake, POOLS_SETTLE * 60 - 100, 1e-9);
    s.in.base_nodes = 1; /* nobody works: there is nothing to stop */
    expect_asks(&s, 15, 0, 0);
}

/* ---- 7. the budget ------------------------------------------------------------------------ */

static void test_budget(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s, "2:16");
    s.in.budget = 100;
    s.in.spent = 99;
    s.pools[SPOT].suspend = 300;
    /* Seven base nodes' worth: 1 - 600 s of two nodes at 3, over 1200 s of a node at 1. */
    s.in.base_price = 1.5;
    expect_asks(&s, 1, 0, 0);
    s.in.spent = 99.4;
    expect_asks(&s, 0, 0, 0);
    assert_int_equal(s.out.targets[SPOT].why, POOLS_BUDGET);

    s.pools[SPOT].ready = 2;
    s.pools[DEMAND].ready = 3;
    s.in.spent = 99.9;
    expect_given_back(&s, 2, 0, 3);
    assert_int_equal(s.out.why, POOLS_BUDGET);
    assert_true(s.out.memory.exhausted);
    /* It stays so, though giving them back has cost less than was set aside. */
    s.pools[SPOT].ready = s.pools[DEMAND].ready = 0;
    s.in.spent = 50;
    expect_asks(&s, 0, 0, 0);
    /* Only a budget can be used up: the record may be that of another job. */
    s.memory.exhausted = true;
    s.in.budget = 0;
    decide(&s);
    assert_true(s.out.targets[SPOT].ask > 0);
    s.in.budget = 100;
    s.memory.exhausted = false; /* somebody has raised it */
    decide(&s);
    assert_true(s.out.targets[SPOT].ask > 0);
}

static void test_budget_leaves_min(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s, "4:16");
    s.in.base_nodes = 1;
    s.in.budget = 10;
    s.in.spent = 11;
    s.pools[SPOT].ready = 2;
    s.pools[DEMAND].ready = 3;
    expect_given_back(&s, 0, 0, 2);
}

/* ---- 8. notices --------------------------------------------------------------------------- */

static void test_notice_is_replaced_at_once(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s, "2:16");
    s.pools[SPOT].ready = 14;
    expect_asks(&s, 0, 0, 0);
    s.pools[SPOT].noticed = 3;
    expect_asks(&s, 3, 0, 0);
    assert_int_equal(s.out.targets[SPOT].nodes, 14);
    s.pools[SPOT].pause_until = 1e9;
    expect_asks(&s, 0, 3, 0);
    assert_int_equal(s.out.targets[SPOT].give_back, 0); /* they leave by themselves */
}

static void test_advice_replaces_first(void **state)
{
    struct scene s;

    (void)state;
    scene_init(&s, "2:16");
    s.pools[SPOT].ready = 14;
    s.pools[SPOT].advised = 2;
    expect_asks(&s, 2, 0, 0);
    s.pools[SPOT].booting = 2;
    expect_given_back(&s, 0, 0, 0);
    s.pools[SPOT].booting = 0;
    s.pools[OTHER].ready = 2;
    expect_given_back(&s, 2, 0, 0);
}

/* ---- words and boots ---------------------------------------------------------------------- */

static void test_words(void **state)
{
    (void)state;
    for (int why = 0; why < POOLS_WHY_COUNT; why++)
        assert_one_line(pools_words((enum pools_why)why));
}

static void test_boots(void **state)
{
    double estimate = pools_boot(0, 200);

    (void)state;
    assert_near(estimate, 200, 0);
    assert_near(pools_boot(estimate, 400), 300, 1e-9); /* longer ones count more */
    assert_near(pools_boot(estimate, 100), 180, 1e-9);
    assert_near(pools_boot(estimate, NAN), 200, 0);
    for (int i = 0; i < 50; i++)
        estimate = pools_boot(estimate, 90);
    assert_near(estimate, 90, 1);
}

/* ---- whole jobs --------------------------------------------------------------------------- */

static int working(const struct pools_input *in, const struct pools_output *out)
{
    int nodes = in->base_nodes;

    for (int i = 0; i < in->pool_count; i++)
        nodes += in->pools[i].ready - in->pools[i].noticed - (out ? out->targets[i].give_back : 0);
    return nodes;
}

/* What holds for each pool. The same question has the same answer: once what was asked for is
 * pending nothing more follows, and what is given back is not asked for again. */
static void check_pools(const struct pools_input *in, const struct pools_output *out)
{
    struct pools_pool after[POOLS_MAX];
    struct pools_input same = *in;
    struct pools_output again;
    bool given[2] = {false, false};

    for (int i = 0; i < in->pool_count; i++) {
        const struct pools_pool *pool = &in->pools[i];
        const struct pools_target *target = &out->targets[i];
        int there = pool->ready - pool->noticed + pool->booting + pool->pending;

        assert_true(target->ask >= 0 && target->give_back >= 0 && target->cancel >= 0);
        assert_true(target->ask == 0 || (target->give_back == 0 && target->cancel == 0));
        assert_true(target->give_back <= pool->ready - pool->noticed);
        assert_true(target->cancel <= pool->pending);
        if (target->ask == 0)
            assert_int_not_equal(target->why, POOLS_SPOT);
        if (target->ask > 0) {
            assert_true(pool->pause_until <= in->now);
            assert_true(pool->max_nodes == 0 || there + target->ask <= pool->max_nodes);
            assert_true(pool->max_resume == 0 ||
                        pool->booting + pool->pending + target->ask <= pool->max_resume);
        }
        given[pool->fallback] |= target->give_back > 0;
        after[i] = *pool;
        after[i].ready -= target->give_back;
        after[i].pending += target->ask - target->cancel;
        if (target->ask > 0 && pool->pending == 0)
            after[i].pending_since = in->now;
        if (target->gives_up)
            after[i].pause_until = in->now + 60;
    }
    same.pools = after;
    pools_decide(&same, &out->memory, &again);
    for (int i = 0; i < in->pool_count; i++) {
        const struct pools_target *now = &out->targets[i], *then = &again.targets[i];
        bool undone = given[in->pools[i].fallback] && then->ask > 0;

        /* Money that cancelled requests would have cost goes to others. */
        if (in->budget > 0 && then->give_back + then->cancel == 0)
            continue;
        if (undone || (!given[0] && !given[1] && then->ask + then->give_back + then->cancel > 0))
            fail_msg(
                "%s: asked %d, gave %d back; asks %d, gives %d back, cancels %d though nothing "
                "else has happened (%s, %s)",
                in->pools[i].name, now->ask, now->give_back, then->ask, then->give_back,
                then->cancel, pools_words(out->why), pools_words(again.why));
    }
}

static void check(const struct pools_input *in, const struct pools_memory *memory,
                  const struct pools_output *out, void *cookie)
{
    int before = working(in, NULL), after = working(in, out), there = in->base_nodes, demand = 0;

    (void)memory;
    (void)cookie;
    check_pools(in, out);
    assert_true(after >= in->sizes->min || after == before);
    assert_true(after <= in->sizes->max);
    for (int i = 0; i < in->pool_count; i++) {
        there += out->targets[i].nodes;
        demand += in->pools[i].fallback ? out->targets[i].nodes : 0;
        if (in->budget > 0 && in->base_nodes >= in->sizes->min &&
            in->pools[i].ready + in->pools[i].booting > 0)
            assert_true(in->spent <= in->budget);
    }
    /* Beyond MAX are only spot nodes that are to take the place of on-demand nodes, and the other
     * way round. */
    assert_true(there - in->sizes->max <= demand);
    assert_true(demand <= in->sizes->max);
    assert_true(there - demand <= in->sizes->max);
    assert_true(out->wake >= 0);
}

/* A zone that is all there, all gone or in between, for random times. */
static void make_trace(struct cloud_trace *trace, uint64_t *seed, int nodes)
{
    int level = 0;

    trace->gap = 300;
    trace->count = 1500;
    trace->nodes = calloc((size_t)trace->count, sizeof(int));
    assert_non_null(trace->nodes);
    for (int i = 0, left = 0; i < trace->count; i++, left--) {
        if (left <= 0) {
            uint32_t kind = random_below(seed, 5);

            left = 1 + (int)random_below(seed, random_below(seed, 4) == 0 ? 200 : 12);
            level = kind < 2 ? 0 : kind < 4 ? nodes : (int)random_below(seed, (uint32_t)nodes);
        }
        trace->nodes[i] = level;
    }
}

/* A job whose deadline on-demand nodes can keep. */
static struct cloud_job make_job(uint64_t *seed, struct cloud_trace *traces, char *sizes,
                                 size_t room)
{
    static const double pauses[] = {2, 2, 10, 60};
    struct cloud_job job = {.check = check, .mode = POOLS_DEADLINE, .sizes = sizes};
    int most;

    job.seed = *seed;
    job.nodes = 2 + (int)random_below(seed, 15);
    most = job.nodes + (int)random_below(seed, (uint32_t)job.nodes + 1);
    job.base = (int)random_below(seed, 2);
    snprintf(sizes, room, "1:%d", most);
    job.zone_count = 1 + (int)random_below(seed, 3);
    for (int i = 0; i < job.zone_count; i++) {
        make_trace(&traces[i], seed, job.nodes);
        job.zones[i] = &traces[i];
    }
    job.first = (int)random_below(seed, 1500);
    job.boot = 30 + random_below(seed, 900);
    job.boot_spread = random_below(seed, 9) / 10.0;
    job.pause = pauses[random_below(seed, COUNT(pauses))];
    job.spot_price = 0.3;
    job.suspend = random_below(seed, 2) * 300;
    job.waits = random_below(seed, 2) == 0;
    job.zone_nodes = random_below(seed, 2) == 0 ? job.nodes : 0;
    job.hours = 2 + random_below(seed, 20);
    job.deadline = job.hours / (0.5 + random_below(seed, 40) / 100.0) +
                   (3 * job.boot + job.pause * (4 + 2 * most)) / HOUR;
    return job;
}

static void free_traces(struct cloud_trace *traces, int count)
{
    for (int i = 0; i < count; i++)
        free(traces[i].nodes);
}

static void test_never_late(void **state)
{
    uint64_t seed = 20261123;

    (void)state;
    for (int run = 0; run < RANDOM_ROUNDS(1000); run++) {
        struct cloud_trace traces[CLOUD_ZONES_MAX];
        struct cloud_result result;
        char sizes[32];
        uint64_t first = seed;
        struct cloud_job job = make_job(&seed, traces, sizes, sizeof(sizes));

        assert_int_equal(cloud_run(&job, &result), 0);
        free_traces(traces, job.zone_count);
        if (!result.done || result.hours > job.deadline)
            fail_msg(
                "run %d (seed %llu): %.3f h of %.3f: %s, %d zones, base %d, %.1f h, boot %.0f s "
                "± %.0f %%, pause %.0f s",
                run, (unsigned long long)first, result.hours, job.deadline, sizes, job.zone_count,
                job.base, job.hours, job.boot, 100 * job.boot_spread, job.pause);
    }
}

/* Everything else that may happen: budgets, no deadline, no on-demand nodes, few that may boot. */
static void test_whatever_happens(void **state)
{
    static const enum pools_mode modes[] = {POOLS_NEVER, POOLS_DEADLINE, POOLS_AFTER};
    uint64_t seed = 42;

    (void)state;
    for (int run = 0; run < RANDOM_ROUNDS(400); run++) {
        struct cloud_trace traces[CLOUD_ZONES_MAX];
        struct cloud_result result;
        char sizes[32];
        struct cloud_job job = make_job(&seed, traces, sizes, sizeof(sizes));

        job.mode = modes[random_below(&seed, COUNT(modes))];
        job.after = random_below(&seed, 1000);
        job.refusal = random_below(&seed, 5) / 5.0;
        job.max_resume = (int)random_below(&seed, 4);
        job.overhead = random_below(&seed, 3) / 10.0;
        if (random_below(&seed, 2) == 0)
            job.budget = job.nodes * job.hours * (1 + random_below(&seed, 10)) / 10.0;
        if (random_below(&seed, 4) == 0)
            job.deadline = 0;
        if (random_below(&seed, 3) == 0)
            job.no_demand_until = job.hours;
        assert_int_equal(cloud_run(&job, &result), 0);
        free_traces(traces, job.zone_count);
    }
}

/* Spot nodes are used: a job in a zone that is always there costs what spot nodes cost. */
static void test_a_calm_zone(void **state)
{
    int nodes[] = {16};
    struct cloud_trace trace = {.gap = 300, .count = 1, .nodes = nodes};
    struct cloud_job job = {.zones = {&trace},
                            .zone_count = 1,
                            .seed = 1,
                            .sizes = "1:32",
                            .nodes = 16,
                            .hours = 48,
                            .deadline = 60,
                            .boot = 360,
                            .pause = 2,
                            .spot_price = 0.3,
                            .mode = POOLS_DEADLINE,
                            .check = check};
    struct cloud_result result;

    (void)state;
    assert_int_equal(cloud_run(&job, &result), 0);
    assert_near(result.hours, 48.1, 0.02);
    assert_near(result.cost, 0.3 * 16 * 48.1, 0.5);
    assert_near(cloud_bound(&job, 32), 0.3 * 16 * 48, 1e-6);
    cloud_run_rigid(&job, CLOUD_UNIFORM, &result);
    assert_near(result.cost, 0.3 * 16 * 48.1, 0.5);
    nodes[0] = 0; /* nothing but on-demand nodes */
    assert_int_equal(cloud_run(&job, &result), 0);
    assert_true(result.hours < 60);
    assert_near(result.cost, 16 * 48, 0.01 * 16 * 48);
    cloud_run_rigid(&job, CLOUD_GREEDY, &result);
    assert_true(result.hours < 60);
    assert_near(result.cost, 16 * 48.1, 0.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cheapest_spot_first),
        cmocka_unit_test(test_limits_of_a_pool),
        cmocka_unit_test(test_max_price),
        cmocka_unit_test(test_nothing_new_shortly_before_the_end),
        cmocka_unit_test(test_deadline_without_facts_does_nothing),
        cmocka_unit_test(test_on_demand_from_the_pressure_on),
        cmocka_unit_test(test_on_demand_stays_until_spot_joins),
        cmocka_unit_test(test_one_too_many_goes_for_a_spot_node_that_has_joined),
        cmocka_unit_test(test_on_demand_stays_for_the_end),
        cmocka_unit_test(test_looks_again_before_it_is_too_late),
        cmocka_unit_test(test_safety_reckons_with_pauses),
        cmocka_unit_test(test_safety),
        cmocka_unit_test(test_max_resume_makes_the_delay_longer),
        cmocka_unit_test(test_deadline_has_passed),
        cmocka_unit_test(test_lost_nodes_are_replaced_after_a_while),
        cmocka_unit_test(test_a_job_that_has_lost_nothing_gets_no_supplement),
        cmocka_unit_test(test_replacement_may_exceed_max_until_it_joins),
        cmocka_unit_test(test_dearest_goes_first),
        cmocka_unit_test(test_on_demand_that_no_size_can_use),
        cmocka_unit_test(test_paused_pool),
        cmocka_unit_test(test_pauses_double_up_to_ten_minutes),
        cmocka_unit_test(test_nodes_that_do_not_come_are_asked_elsewhere),
        cmocka_unit_test(test_growth_waits_for_the_last_change),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_budget_leaves_min),
        cmocka_unit_test(test_notice_is_replaced_at_once),
        cmocka_unit_test(test_advice_replaces_first),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_boots),
        cmocka_unit_test(test_a_calm_zone),
        cmocka_unit_test(test_never_late),
        cmocka_unit_test(test_whatever_happens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

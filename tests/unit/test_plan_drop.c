/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/plan: extensions that are given back, and requests that are taken back. */
#include "tests/unit/plan_fixture.h"
#include "tests/unit/support.h"

static void test_in_the_pause_nothing_waits_in_the_queue(void **state)
{
    struct scene s;
    struct plan_output out;

    (void)state;
    for (int again = 0; again < 2; again++) {
        scene_init(&s, "2:4");
        scene_add_members(&s, 1, 2, true);
        scene_add_extension(&s, 10, 1, PLAN_PENDING, 5);
        s.in.setbacks = (struct setbacks){.last = s.in.now - 1, .again = again};
        out = scene_decide(&s);
        assert_int_equal(out.cancel_count, again);
        assert_true(out.submit > 0);
        assert_true(out.submit_delay == (again == 0 ? 59 : 119));
        plan_clear(&out);
    }
    /* What was asked for since stays. */
    s.extensions[0].begin = s.in.now + 119;
    out = scene_decide(&s);
    assert_int_equal(out.cancel_count, 0);
    plan_clear(&out);
}

static void test_large_request_that_stalls_is_made_smaller(void **state)
{
    struct scene s;
    struct plan_output out;

    (void)state;
    scene_init(&s, "2:100");
    scene_add_members(&s, 1, 2, true);
    scene_add_extension(&s, 10, 1, PLAN_PENDING, 100);
    scene_add_extension(&s, 11, 16, PLAN_PENDING, PLAN_STALE + 1);
    out = scene_decide(&s);
    assert_int_equal(out.cancel_count, 1);
    assert_int_equal(out.cancel[0], 11);
    assert_int_equal(out.submit, 1);
    plan_clear(&out);

    /* Not yet eligible is not stalled. */
    s.extensions[1].begin = s.in.now + 5;
    out = scene_decide(&s);
    assert_int_equal(out.cancel_count, 0);
    plan_clear(&out);
}

static void test_nothing_is_given_back_while_lost_nodes_are_replaced(void **state)
{
    struct scene s;
    struct plan_output out;

    (void)state;
    /* Eleven of twelve are left. Eight could train, and three more are joined for long. */
    scene_init(&s, "4:12:4");
    scene_add_members(&s, 1, 4, false);
    for (uint32_t job = 10; job < 17; job++) {
        scene_add_members(&s, job, 1, false);
        scene_add_extension(&s, job, 1, PLAN_JOINED, 500);
    }
    s.in.before_loss = 12;
    s.in.replace_until = s.in.now + 20;
    out = scene_decide(&s);
    assert_true(out.replaces);
    assert_int_equal(out.submit, 1);
    assert_int_equal(out.cancel_count, 0);
    plan_clear(&out);
    s.in.replace_until = s.in.now;
    out = scene_decide(&s);
    assert_int_equal(out.size, 8);
    assert_int_equal(out.cancel_count, 3);
    plan_clear(&out);

    /* The one that is left has to go soon, but MIN is not met without it. */
    scene_init(&s, "2:3");
    s.in.base_nodes = 1;
    scene_add_members(&s, 1, 1, false);
    scene_add_members(&s, 10, 1, false);
    scene_add_extension(&s, 10, 1, PLAN_JOINED, 500)->leaves = s.in.now + 100;
    s.in.before_loss = 3;
    s.in.replace_until = s.in.now + 20;
    out = scene_decide(&s);
    assert_true(out.replaces);
    assert_int_equal(out.cancel_count, 0);
    plan_clear(&out);
    s.in.replace_until = s.in.now;
    out = scene_decide(&s);
    assert_int_equal(out.size, 2);
    assert_int_equal(out.cancel_count, 0);
    plan_clear(&out);
}

/* Below MIN, what is left of the world waits with its state: it is no surplus, however long it
 * has been there. */
static void test_what_is_left_of_a_world_is_kept(void **state)
{
    struct scene s;
    struct plan_output out;

    (void)state;
    scene_init(&s, "2:4");
    s.in.generation_since = 0;
    scene_add_members(&s, 1, 1, false);
    s.members[0].usable = false; /* its worker has failed */
    scene_add_members(&s, 10, 1, true);
    scene_add_members(&s, 11, 1, false);
    s.members[2].usable = false; /* about to be lost */
    scene_add_extension(&s, 10, 1, PLAN_JOINED, 100 * PLAN_PARK_LIMIT);
    scene_add_extension(&s, 11, 1, PLAN_JOINED, 100 * PLAN_PARK_LIMIT);
    out = scene_decide(&s);
    assert_int_equal(out.size, 0);
    assert_int_equal(out.cancel_count, 1);
    assert_int_equal(out.cancel[0], 11);
    plan_clear(&out);
}

static void test_resize_down(void **state)
{
    static const struct {
        int target;
        uint32_t expected[4];
    } table[] = {
        {6, {0}},         {5, {12, 0}}, /* the newest that fits exactly */
        {4, {11, 0}},                   /* one of 2, not two of 1 */
        {3, {12, 11, 0}}, {2, {12, 11, 10, 0}},
    };

    (void)state;
    for (size_t row = 0; row < sizeof(table) / sizeof(table[0]); row++) {
        struct scene s;
        struct plan_output out;
        int i;

        scene_init(&s, "2:6");
        s.in.generation_since = 0;
        scene_add_members(&s, 1, 2, true);
        scene_add_members(&s, 10, 1, true);
        scene_add_members(&s, 11, 2, true);
        scene_add_members(&s, 12, 1, true);
        scene_add_extension(&s, 10, 1, PLAN_JOINED, 50);
        scene_add_extension(&s, 11, 2, PLAN_JOINED, 50);
        scene_add_extension(&s, 12, 1, PLAN_JOINED, 50);
        s.in.target = table[row].target;
        out = scene_decide(&s);
        for (i = 0; table[row].expected[i] != 0; i++) {
            bool found = false;

            for (int k = 0; k < out.cancel_count; k++)
                found = found || out.cancel[k] == table[row].expected[i];
            if (!found)
                fail_msg("target %d: job %u is kept", table[row].target, table[row].expected[i]);
        }
        assert_int_equal(out.cancel_count, i);
        assert_int_equal(out.change, i > 0);
        assert_int_equal(out.size, table[row].target);
        plan_clear(&out);
    }
}

/* What goes is compared with all sets of extensions: fewest nodes beyond the need, fewest
 * extensions, then the newest first. */
static void test_resize_down_gives_back_the_best_set(void **state)
{
    static const struct {
        int sizes[6], target, gone[6];
    } table[] = {
        {{2, 1}, 2, {1, 0}},       {{1, 2}, 2, {0, 1}},
        {{1, 2, 4}, 5, {1, 1, 0}}, {{4, 2, 2}, 4, {1, 0, 1}}, /* six for five */
        {{3, 3}, 5, {0, 1}},                                  /* three for two */
        {{1, 1, 1}, 2, {0, 1, 1}},
    };
    unsigned seed = 99;

    (void)state;
    for (int round = -(int)(sizeof(table) / sizeof(table[0])); round < 2000; round++) {
        const size_t row = (size_t)(round + (int)(sizeof(table) / sizeof(table[0])));
        int sizes[6] = {0}, count = 0, all = 0, need, best = 0;
        long least = 1000000;
        struct plan_output out;
        struct scene s;

        scene_init(&s, "1:60");
        s.in.generation_since = 0;
        scene_add_members(&s, 1, 1, true);
        for (int i = 0; i < 6; i++)
            sizes[i] = round < 0 ? table[row].sizes[i] : rand_r(&seed) % 6;
        for (int i = 0; i < 6; i++) {
            if (sizes[i] == 0)
                continue;
            sizes[count++] = sizes[i];
            all += sizes[i];
            scene_add_members(&s, 10 + (uint32_t)count, sizes[i], true);
            scene_add_extension(&s, 10 + (uint32_t)count, sizes[i], PLAN_JOINED, 50);
        }
        if (all == 0)
            continue;
        s.in.target = round < 0 ? table[row].target : 1 + rand_r(&seed) % (all + 1);
        need = 1 + all - s.in.target;
        for (int set = 1; set < 1 << count && need > 0; set++) { /* the newest is the highest bit */
            int nodes = 0;

            for (int i = 0; i < count; i++)
                nodes += set >> i & 1 ? sizes[i] : 0;
            if (nodes >= need && nodes * 100L + __builtin_popcount((unsigned)set) <= least) {
                least = nodes * 100L + __builtin_popcount((unsigned)set);
                best = set;
            }
        }
        out = scene_decide(&s);
        for (int i = 0; i < count; i++) {
            bool gone = false;

            for (int k = 0; k < out.cancel_count; k++)
                gone = gone || out.cancel[k] == 11 + (uint32_t)i;
            if (gone != (best >> i & 1) || (round < 0 && gone != table[row].gone[i]))
                fail_msg("round %d: extension %d of %d nodes %s", round, i, sizes[i],
                         gone ? "goes" : "stays");
        }
        plan_clear(&out);
    }
}

static void test_resize_down_that_does_not_fit(void **state)
{
    struct scene s;
    struct plan_output out;

    (void)state;
    scene_init(&s, "2:6");
    s.in.generation_since = 0;
    scene_add_members(&s, 1, 2, true);
    scene_add_members(&s, 10, 4, true);
    scene_add_extension(&s, 10, 4, PLAN_JOINED, 50);
    s.in.target = 5;
    out = scene_decide(&s);
    assert_int_equal(out.cancel_count, 1); /* all of it, and a smaller one is asked for */
    assert_int_equal(out.size, 2);
    assert_true(out.submit > 0 && out.submit <= 3);
    plan_clear(&out);
}

/* Newcomers come while others are to go: by and by they take their places, and at no time has
 * only one node what would be lost with it, if sizes allow that. */
static void test_newcomers_get_the_state_before_others_go(void **state)
{
    static const struct {
        const char *sizes;
        int target;
        const char *base, *extensions; /* words; of those with ! a node cannot be used */
        const char *worlds;            /* that follow: nodes/those that come with the state */
        int left;                      /* extensions in the end */
    } table[] = {
        /* Nodes of the base that had been lost are back. */
        {"2:6", 3, "nn", "H H H", "3/2 3/2 ", 1},
        {"2:6", 2, "nn", "H H", "3/2 3/2 2/2 ", 0},
        {"2:6", 2, "nn", "H H H", "3/2 3/2 2/2 ", 0},
        {"2:6", 4, "nn", "H H H", "4/2 ", 2},
        {"2:6", 6, "nn", "H H H H H", "6/4 ", 4},
        {"1:4", 1, "n", "H", "2/1 1/1 ", 0},
        {"2:6", 3, "Hn", "H H", "3/2 ", 1},
        {"2:6", 3, "Hn", "n H", "", 1}, /* that is growth, and snoozes */
        {"2:6", 4, "nn", "nn H H", "", 2},
        /* Those that are left could not train until they are ready. */
        {"3:6", 3, "HHn", "H", "4/3 3/3 ", 0},
        {"4:8", 4, "Hnuu", "H", "", 1},
        {"1:4", 2, "u", "H H", "", 2},
        /* Sizes that are not next to each other. */
        {"2,4", 2, "nn", "H H", "4/2 2/2 ", 0},
        {"2,8", 2, "nn", "H H", "2/1 2/1 ", 0},
        {"2,8", 2, "nn", "HH", "2/1 2/1 ", 0},
        {"1,4", 1, "n", "HHHH", "4/3 1/1 ", 0},
        {"2:4", 4, "Hn", "HHH", "4/3 2/2 ", 0},
        {"3:6", 4, "nnn", "H H", "4/2 4/3 ", 1},
        /* What is just being formed is not torn for it. */
        {"2:6", 2, "FF", "H H", "", 2},
        /* Drained nodes go when others have the state. */
        {"2:6", 6, "gH", "H", "2/2 ", 1},
        {"2:6", 2, "gg", "nn", "3/2 4/3 2/2 ", 1},
        {"2:6", 6, "gg", "n n", "4/2 2/2 ", 2},
        {"1:2", 2, "gg", "nn", "2/1 2/1 ", 1},
        {"1:4", 1, "n", "g", "2/1 1/1 ", 0},
        {"1:4", 4, "n", "g!", "2/1 1/1 ", 0},
        {"2:6", 2, "nn", "g g", "3/2 3/2 2/2 ", 0},
        /* Half an extension. */
        {"2:6", 6, "HH", "H!", "2/2 ", 0},
        {"2:6", 6, "nn", "HH!", "4/2 2/2 ", 0},
        {"2:6", 6, "HH", "n!", "", 0},
        {"2:6", 6, "H", "H!", "", 1},
    };

    (void)state;
    for (size_t row = 0; row < sizeof(table) / sizeof(table[0]); row++) {
        struct scene s;
        char worlds[80] = "", words[80], *rest = words, *word;

        scene_init(&s, table[row].sizes);
        s.in.generation_since = s.in.now - 1;
        s.in.snooze = 100;
        s.in.target = table[row].target;
        s.in.no_pool = true;
        snprintf(words, sizeof(words), "%s", table[row].extensions);
        for (uint32_t job = 10; (word = strsep(&rest, " ")) != NULL; job++) {
            struct plan_extension *ext = scene_add_extension(&s, job, (int)strcspn(word, "!"),
                                                             PLAN_JOINED, 5);

            ext->unwanted = strchr(word, '!') != NULL;
            scene_add_word(&s, job, word);
        }
        s.in.base_nodes = (int)strlen(table[row].base);
        s.in.base_lost = scene_add_word(&s, 1, table[row].base);
        for (int round = 0; round < 20; round++) {
            struct plan_output out = scene_decide(&s);
            size_t used = strlen(worlds);

            for (int i = 0; i < out.cancel_count; i++)
                scene_drop_extension(&s, out.cancel[i]);
            if (out.change && out.size > 0)
                snprintf(worlds + used, sizeof(worlds) - used, "%d/%d ", out.size,
                         scene_enter_world(&s, &out, true));
            plan_clear(&out);
        }
        if (strcmp(worlds, table[row].worlds) != 0)
            fail_msg("row %zu: %s", row, worlds);
        if (s.in.extension_count != table[row].left)
            fail_msg("row %zu: %d extensions are left", row, s.in.extension_count);
    }
}

/* Base 1 with two nodes and extension 10, whose time runs out; 2:3, so that it fills the job. */
static void scene_ending(struct scene *s, double left)
{
    scene_init(s, "2:3");
    s->in.generation_since = 0;
    scene_add_members(s, 1, 2, true);
    scene_add_members(s, 10, 1, true);
    scene_add_extension(s, 10, 1, PLAN_JOINED, 900 - left)->leaves = s->in.now + left;
}

/* Nodes that take long to power up are asked for early enough, but not in the first half of a
 * life. */
static void test_replacement_may_take_long(void **state)
{
    (void)state;
    assert_true(plan_replace_at(100, 0, 300) <= 0);
    assert_float_equal(plan_replace_at(0, 1000, 60), 1000 - PLAN_REPLACE, 0.01);
    assert_float_equal(plan_replace_at(0, 1000, 300), 700, 0.01);
    assert_float_equal(plan_replace_at(0, 500, 300), 250, 0.01);
    assert_float_equal(plan_replace_at(100, 300, 60), 250, 0.01);
}

static void test_replacement_is_asked_for_before_time_runs_out(void **state)
{
    struct scene s;
    struct plan_output out;

    (void)state;
    scene_ending(&s, PLAN_REPLACE + 5);
    out = scene_decide(&s);
    assert_int_equal(out.submit, 0);
    assert_true(out.wake > 4.9 && out.wake < 5.1);
    plan_clear(&out);

    scene_ending(&s, PLAN_REPLACE);
    out = scene_decide(&s);
    assert_int_equal(out.submit, 1);
    assert_int_equal(out.cancel_count, 0);
    assert_false(out.change); /* the old one works on */
    plan_clear(&out);

    scene_add_extension(&s, 11, 1, PLAN_PENDING, 1);
    out = scene_decide(&s);
    assert_int_equal(out.submit, 0);
    assert_int_equal(out.cancel_count, 0);
    plan_clear(&out);

    s.extensions[1].state = PLAN_JOINED;
    scene_add_members(&s, 11, 1, false);
    out = scene_decide(&s);
    assert_int_equal(out.cancel_count, 1);
    assert_int_equal(out.cancel[0], 10);
    assert_false(out.cancel_failed[0]);
    assert_true(out.change && out.urgent);
    assert_int_equal(out.size, 3);
    assert_int_equal(out.order[2], 4); /* the newcomer */
    plan_clear(&out);
}

static void test_short_extension_is_replaced_in_its_last_quarter(void **state)
{
    struct scene s;
    struct plan_output out;

    (void)state;
    scene_ending(&s, 30);
    s.extensions[0].since = s.in.now - 60;
    out = scene_decide(&s);
    assert_int_equal(out.submit, 0);
    assert_true(out.wake > 7.4 && out.wake < 7.6);
    plan_clear(&out);
    s.in.now += 8;
    out = scene_decide(&s);
    assert_int_equal(out.submit, 1);
    plan_clear(&out);
}

static void test_nothing_else_goes_for_one_that_ends(void **state)
{
    struct scene s;
    struct plan_output out;

    (void)state;
    /* At MAX with its replacement pending, and a resize that only the ending one satisfies. */
    scene_ending(&s, 60);
    scene_add_extension(&s, 11, 1, PLAN_PENDING, 1);
    s.in.target = 2;
    out = scene_decide(&s);
    assert_int_equal(out.cancel_count, 2);
    assert_int_equal(out.size, 2);
    assert_int_equal(out.submit, 0);
    plan_clear(&out);
}

static void test_any_node_is_better_than_none(void **state)
{
    static const struct {
        int members;
        double since; /* the job has stood still for so long; < 0: it does not */
        bool excludes;
        /* what follows */
        bool anywhere;
        int cancelled;
    } table[] = {
        {2, -1, true, false, 0}, {1, 5, true, false, 0},  {1, 10, true, true, 1},
        {1, 10, false, true, 0}, {2, 10, true, false, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct scene s;
        struct plan_output out;

        scene_init(&s, "2:3");
        scene_add_members(&s, 1, table[i].members, false);
        scene_add_extension(&s, 10, 1, PLAN_PENDING, 5)->excludes = table[i].excludes;
        s.in.base_lost = 2 - table[i].members;
        s.in.stands_since = table[i].since < 0 ? -1 : s.in.now - table[i].since;
        out = scene_decide(&s);
        if (out.anywhere != table[i].anywhere || out.cancel_count != table[i].cancelled)
            fail_msg("row %zu: anywhere %d, cancelled %d", i, out.anywhere, out.cancel_count);
        assert_true(table[i].since != 5 || (out.wake > 0 && out.wake <= 5));
        plan_clear(&out);
    }
}

/* The job needs one node, and asks for two more than once: one is easier to get. */
static void test_below_min_as_few_as_possible_are_asked_for(void **state)
{
    struct scene s;
    struct plan_output out;

    (void)state;
    scene_init(&s, "3:7:2");
    scene_add_members(&s, 1, 2, false);
    scene_add_extension(&s, 10, 2, PLAN_PENDING, 5);
    scene_add_extension(&s, 11, 2, PLAN_PENDING, 5);
    s.in.base_lost = 1;
    out = scene_decide(&s);
    assert_int_equal(out.cancel_count, 2);
    assert_int_equal(out.submit, 1);
    plan_clear(&out);

    scene_drop_extension(&s, 10);
    scene_add_extension(&s, 0, 1, PLAN_SUBMITTING, 0);
    out = scene_decide(&s);
    assert_int_equal(out.cancel_count, 0);
    plan_clear(&out);
}

/* Agents have a minute to join. It begins when the nodes of their extension are up. */
static void test_who_has_not_joined_in_time_has_failed(void **state)
{
    static const struct {
        enum plan_extension_state state;
        double boot_limit, age;
        /* what follows */
        bool failed;
        double wake; /* 0: nothing is to be looked at for this */
    } table[] = {
        {PLAN_STARTING, 0, 59, false, 1},   {PLAN_STARTING, 0, 60, true, 0},
        {PLAN_STARTING, 300, 60, true, 0},  {PLAN_BOOTING, 300, 100, false, 260},
        {PLAN_BOOTING, 300, 359, false, 1}, {PLAN_BOOTING, 300, 360, true, 0},
        {PLAN_BOOTING, 0, 9000, false, 0}, /* Slurm gives it any time */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct scene s;
        struct plan_output out;

        scene_init(&s, "2:3");
        scene_add_members(&s, 1, 2, true);
        s.in.generation_since = 0;
        scene_add_extension(&s, 10, 1, table[i].state, table[i].age)->boot_limit =
            table[i].boot_limit;
        out = scene_decide(&s);
        if (out.cancel_count != table[i].failed || out.cancel_failed[0] != table[i].failed)
            fail_msg("row %zu: cancelled %d", i, out.cancel_count);
        if (!table[i].failed && out.wake != table[i].wake)
            fail_msg("row %zu: looks again in %g s", i, out.wake);
        plan_clear(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_the_pause_nothing_waits_in_the_queue),
        cmocka_unit_test(test_large_request_that_stalls_is_made_smaller),
        cmocka_unit_test(test_nothing_is_given_back_while_lost_nodes_are_replaced),
        cmocka_unit_test(test_what_is_left_of_a_world_is_kept),
        cmocka_unit_test(test_resize_down),
        cmocka_unit_test(test_resize_down_gives_back_the_best_set),
        cmocka_unit_test(test_resize_down_that_does_not_fit),
        cmocka_unit_test(test_newcomers_get_the_state_before_others_go),
        cmocka_unit_test(test_replacement_is_asked_for_before_time_runs_out),
        cmocka_unit_test(test_replacement_may_take_long),
        cmocka_unit_test(test_short_extension_is_replaced_in_its_last_quarter),
        cmocka_unit_test(test_nothing_else_goes_for_one_that_ends),
        cmocka_unit_test(test_any_node_is_better_than_none),
        cmocka_unit_test(test_below_min_as_few_as_possible_are_asked_for),
        cmocka_unit_test(test_who_has_not_joined_in_time_has_failed),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("plan_drop", tests, NULL, NULL);
}

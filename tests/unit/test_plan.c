/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/plan: tables of situations, and random histories on a simulated cluster. */
#include "tests/unit/plan_fixture.h"
#include "tests/unit/support.h"

static void test_start(void **state)
{
    struct scene s;
    struct plan_output out;

    (void)state;
    scene_init(&s, "2:6");
    scene_add_members(&s, 1, 1, false);
    out = scene_decide(&s);
    assert_int_equal(out.size, 0);
    assert_false(out.change);
    assert_string_equal(out.why_size, "waiting: 1 of at least 2 nodes are there");
    plan_clear(&out);

    scene_add_members(&s, 1, 1, false);
    out = scene_decide(&s);
    assert_int_equal(out.size, 2);
    assert_true(out.change);
    assert_false(out.urgent);
    assert_int_equal(out.submit, 1); /* the first extension is a small one */
    assert_true(out.submit_delay == 0);
    plan_clear(&out);
}

static void test_sequence_of_requests(void **state)
{
    static const struct {
        const char *sizes;
        int expected[16];
    } table[] = {
        {"2:6", {1, 2, 1, 0}}, {"2:6:2", {2, 2, 0}},
        {"2,3,5", {1, 2, 0}},  {"1:2", {1, 0}},
        {"4:4", {0}},          {"2:100", {1, 2, 4, 8, 16, 32, 18, 9, 4, 2, 1, 1, 0}},
    };

    (void)state;
    for (size_t row = 0; row < sizeof(table) / sizeof(table[0]); row++) {
        struct scene s;

        scene_init(&s, table[row].sizes);
        s.in.max_pending = 100;
        scene_add_members(&s, 1, s.sizes.min, true);
        scene_request_all(&s, table[row].sizes, table[row].expected);
    }
}

static void test_max_pending(void **state)
{
    struct scene s;
    struct plan_output out;

    (void)state;
    scene_init(&s, "2:100");
    scene_add_members(&s, 1, 2, true);
    scene_add_extension(&s, 10, 1, PLAN_PENDING, 1);
    scene_add_extension(&s, 0, 2, PLAN_SUBMITTING, 0);
    out = scene_decide(&s);
    assert_int_equal(out.submit, 0);
    assert_int_equal(out.cancel_count, 0);
    plan_clear(&out);
}

static void test_growth_waits_for_those_about_to_join(void **state)
{
    struct scene s;
    struct plan_output out;

    (void)state;
    scene_init(&s, "2:6");
    s.in.generation_since = 900;
    scene_add_members(&s, 1, 2, true);
    scene_add_members(&s, 10, 1, false);
    s.members[2].joined = s.in.now - 1;
    scene_add_extension(&s, 10, 1, PLAN_JOINED, 1);
    scene_add_extension(&s, 11, 2, PLAN_BOOTING, 1); /* for minutes */
    scene_add_extension(&s, 12, 1, PLAN_PENDING, 30);
    out = scene_decide(&s);
    assert_int_equal(out.size, 3);
    assert_true(out.change);
    plan_clear(&out);

    s.extensions[1].state = PLAN_STARTING;
    out = scene_decide(&s);
    assert_int_equal(out.size, 3);
    assert_false(out.change);
    assert_true(out.wake > 0 && out.wake <= PLAN_SETTLE_MAX);
    plan_clear(&out);

    s.members[2].joined = s.in.now - PLAN_SETTLE_MAX; /* … but not for ever */
    out = scene_decide(&s);
    assert_true(out.change);
    assert_int_equal(out.size, 3);
    plan_clear(&out);

    s.members[2].joined = s.in.now - 1;
    s.extensions[1].state = PLAN_JOINED;
    scene_add_members(&s, 11, 2, false);
    out = scene_decide(&s);
    assert_true(out.change); /* the one that has been pending for long is not waited for */
    assert_int_equal(out.size, 5);
    plan_clear(&out);
}

static void test_leaving_is_urgent(void **state)
{
    struct scene s;
    struct plan_output out;

    (void)state;
    scene_init(&s, "2:6");
    s.in.generation_since = 900;
    s.in.setbacks.last = s.in.now;
    s.in.snooze = 500;
    scene_add_members(&s, 1, 2, true);
    scene_add_members(&s, 10, 1, true);
    scene_add_members(&s, 11, 2, true);
    scene_add_extension(&s, 10, 1, PLAN_JOINED, 50);
    scene_add_extension(&s, 11, 2, PLAN_LEAVING, 0);
    s.members[3].usable = s.members[4].usable = false;
    out = scene_decide(&s);
    assert_true(out.change && out.urgent);
    assert_int_equal(out.size, 3);
    assert_int_equal(out.order[0], 1);
    assert_int_equal(out.order[2], 3);
    assert_true(out.submit > 0);
    assert_true(out.submit_delay == 400); /* the longer of grow-delay and snooze */
    plan_clear(&out);
    /* In the place of a node that a cloud takes, another one is asked for at once. */
    s.in.taken = 1;
    out = scene_decide(&s);
    assert_int_equal(out.submit, 1);
    assert_true(out.submit_delay <= 0);
    plan_clear(&out);
}

static void test_a_lost_base_node_is_replaced(void **state)
{
    struct scene s;
    struct plan_output out;

    (void)state;
    /* At MAX: one more extension stands in for it, after the usual delay, since the world goes
     * on. */
    scene_init(&s, "2:3");
    scene_add_members(&s, 1, 1, true);
    scene_add_members(&s, 10, 1, true);
    scene_add_extension(&s, 10, 1, PLAN_JOINED, 50);
    s.in.base_lost = 1;
    s.in.setbacks.last = s.in.now;
    out = scene_decide(&s);
    assert_int_equal(out.size, 2);
    assert_int_equal(out.submit, 1);
    assert_true(out.submit_delay == s.in.grow_delay);
    plan_clear(&out);

    /* Below MIN: at once, and what was to come later is asked for anew. */
    scene_init(&s, "2:3");
    scene_add_members(&s, 1, 1, true);
    scene_add_extension(&s, 10, 1, PLAN_PENDING, 5)->begin = s.in.now + 50;
    s.in.base_lost = 1;
    s.in.setbacks.last = s.in.now;
    s.in.generation_since = s.in.now;
    s.in.snooze = 600;
    out = scene_decide(&s);
    assert_int_equal(out.size, 0);
    assert_int_equal(out.cancel_count, 1);
    assert_int_equal(out.cancel[0], 10);
    assert_int_equal(out.submit, 1);
    assert_true(out.submit_delay == 0);
    plan_clear(&out);
}

/* Each world of restart mode costs a checkpoint: what is lost is replaced first, for a while. */
static void test_lost_nodes_are_replaced_first(void **state)
{
    static const struct {
        const char *sizes;
        int before;
        double until;                    /* from now */
        int base_lost;                   /* of two */
        int joined;                      /* nodes of extensions that are left, one each */
        enum plan_extension_state other; /* of one more, PLAN_LEAVING: there is none */
        double begin;                    /* … from now */
        int target;
        bool no_pool, refused;
        /* what follows */
        int size, submit, cancelled;
    } table[] = {
        {"2:4", 4, 30, 0, 1, PLAN_LEAVING, 0, 4, false, false, 0, 1, 0},    /* one is asked for */
        {"2:4", 4, 30, 0, 1, PLAN_PENDING, 0, 4, false, false, 0, 0, 0},    /* … and awaited */
        {"2:4", 4, 30, 0, 1, PLAN_PENDING, 50, 4, false, false, 0, 1, 1},   /* … now */
        {"2:4", 4, 30, 0, 1, PLAN_STARTING, 0, 4, false, false, 0, 0, 0},   /* … and has begun */
        {"2:4", 4, 30, 0, 1, PLAN_JOINED, 0, 4, false, false, 4, 0, 0},     /* it is here */
        {"2:4", 4, 0, 0, 1, PLAN_PENDING, 0, 4, false, false, 3, 0, 0},     /* too long */
        {"2:5", 4, 30, 0, 2, PLAN_PENDING, 0, 5, false, false, 4, 0, 0},    /* growth can wait */
        {"2:4", 4, 30, 0, 1, PLAN_LEAVING, 0, 3, false, false, 3, 0, 0},    /* it was too many */
        {"2,4,6", 5, 30, 0, 2, PLAN_PENDING, 0, 6, false, false, 4, 1, 0},  /* four trained */
        {"2,3,6", 6, 30, 0, 1, PLAN_STARTING, 0, 6, false, false, 0, 2, 0}, /* one is not enough */
        {"2:4", 4, 30, 0, 1, PLAN_LEAVING, 0, 4, true, false, 3, 0, 0},     /* nowhere to ask */
        {"2:4", 4, 30, 0, 1, PLAN_LEAVING, 0, 4, false, true, 3, 1, 0},     /* sbatch fails */
        {"1:4", 2, 30, 1, 0, PLAN_LEAVING, 0, 4, true, false, 1, 0, 0},     /* nor for the base */
        {"1:4", 2, 30, 1, 1, PLAN_LEAVING, 0, 4, false, false, 2, 1, 0},    /* one was parked */
    };
    struct scene s;
    struct plan_output out;

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        scene_init(&s, table[i].sizes);
        s.in.base_nodes = 2;
        s.in.base_lost = table[i].base_lost;
        s.in.target = table[i].target;
        s.in.no_pool = table[i].no_pool;
        s.in.submit_error = table[i].refused ? "no such partition" : NULL;
        s.in.before_loss = table[i].before;
        s.in.replace_until = s.in.now + table[i].until;
        s.in.setbacks.last = s.in.now;
        scene_add_members(&s, 1, 2 - table[i].base_lost, false);
        for (int k = 0; k < table[i].joined; k++) {
            scene_add_members(&s, 10 + (uint32_t)k, 1, false);
            scene_add_extension(&s, 10 + (uint32_t)k, 1, PLAN_JOINED, 5);
        }
        if (table[i].other != PLAN_LEAVING)
            scene_add_extension(&s, 20, 1, table[i].other, 5)->begin = s.in.now + table[i].begin;
        if (table[i].other == PLAN_JOINED)
            scene_add_members(&s, 20, 1, false);
        out = scene_decide(&s);
        if (out.size != table[i].size || out.submit != table[i].submit ||
            out.cancel_count != table[i].cancelled)
            fail_msg("row %zu: size %d, submit %d, cancelled %d (%s)", i, out.size, out.submit,
                     out.cancel_count, out.why_size);
        assert_int_equal(out.replaces, out.size == 0);
        assert_true(!out.replaces || (out.wake > 0 && out.wake <= table[i].until));
        assert_true(out.size == 0 || out.change);
        if (out.submit > 0 && out.replaces)
            assert_true(out.submit_delay == 0);
        plan_clear(&out);
    }
}

static void test_order(void **state)
{
    struct scene s;
    struct plan_output out;

    (void)state;
    scene_init(&s, "2:6");
    s.in.generation_since = 0;
    /* Members in the order in which they joined; survivors have positions. */
    scene_add_members(&s, 12, 1, false); /* id 1 */
    scene_add_members(&s, 11, 2, false); /* ids 2, 3 */
    scene_add_members(&s, 1, 2, false);  /* ids 4, 5 */
    s.members[3].position = 0;
    s.members[4].position = 1;
    s.members[1].nodeid = 1;
    s.members[2].nodeid = 0;
    scene_add_extension(&s, 11, 2, PLAN_JOINED, 1);
    scene_add_extension(&s, 12, 1, PLAN_JOINED, 1);
    out = scene_decide(&s);
    assert_int_equal(out.size, 5);
    assert_int_equal(out.order[0], 4);
    assert_int_equal(out.order[1], 5);
    assert_int_equal(out.order[2], 3);
    assert_int_equal(out.order[3], 2);
    assert_int_equal(out.order[4], 1);
    plan_clear(&out);
}

/* The order of the world as "ID ID …". */
static const char *order_text(const struct plan_output *out)
{
    static char text[256];

    text[0] = '\0';
    for (int i = 0; i < out->size; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%d", i > 0 ? " " : "",
                 out->order[i]);
    return text;
}

static void test_order_along_the_switches(void **state)
{
    static const struct {
        const char *sizes;
        int base, extension;
        const char *world, *switches[8]; /* world: x for each member that is in it */
        const char *expected;
    } table[] = {
        /* A first world: rank 0 is who was first, then its leaf. */
        {"4", 4, 0, "    ", {"t.b", "t.a", "t.b", "t.a"}, "1 3 2 4"},
        {"4", 4, 0, "    ", {"t.b", "", "t.b", "t.a"}, "1 3 4 2"},
        {"4", 4, 0, "    ", {"", "t.b", "t.a", "t.b"}, "1 3 2 4"},
        /* Without a tree: as Slurm has them. */
        {"4", 4, 0, "    ", {NULL, NULL, NULL, NULL}, "1 2 3 4"},
        /* Newcomers come last, next to the last that stays, and back to rank 0. */
        {"2:6", 2, 4, "xx    ", {"t.a", "t.b", "t.a", "t.c", "t.b", "t.a"}, "1 2 5 4 3 6"},
        {"2:6", 2, 4, "xx    ", {"t.a", "t.a", "t.c", "t.b", "t.a", "t.b"}, "1 2 5 4 6 3"},
        /* Those that stay keep their places, wherever they are. */
        {"4", 4, 0, "xxxx", {"t.b", "t.a", "t.b", "t.a"}, "1 2 3 4"},
        /* Who is in the world does not depend on switches: the fourth of the extension is spare. */
        {"2:8:3", 2, 4, "xx    ", {"t.a", "t.a", "t.b", "t.c", "t.b", "t.a"}, "1 2 3 5 4"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct scene s;
        struct plan_output out;

        scene_init(&s, table[i].sizes);
        scene_add_members(&s, 1, table[i].base, false);
        if (table[i].extension > 0) {
            scene_add_members(&s, 7, table[i].extension, false);
            scene_add_extension(&s, 7, table[i].extension, PLAN_JOINED, 20);
        }
        for (int k = 0; k < s.in.member_count; k++) {
            s.members[k].switches = table[i].switches[k];
            s.members[k].position = table[i].world[k] == 'x' ? k : -1;
        }
        out = scene_decide(&s);
        assert_string_equal(order_text(&out), table[i].expected);
        plan_clear(&out);
    }
}

/* Survivors first and in order, then all newcomers that the same situation without switches
 * takes, each once. */
static void test_order_of_random_worlds(void **state)
{
    static const char *const switches[] = {NULL, "t.a", "t.b", "t.c", "u.a"};

    (void)state;
    srand(815);
    for (int round = 0; round < RANDOM_ROUNDS(2000); round++) {
        struct scene s;
        struct plan_output out, plain;
        int world = rand() % 9, newcomers = rand() % 9, mark[SCENE_NODES_MAX] = {0};

        scene_init(&s, "1:16");
        s.in.target = 1 + rand() % 16;
        scene_add_members(&s, 1, 1 + world, true);
        scene_add_members(&s, 7, newcomers, false);
        s.in.base_nodes = 1 + world;
        scene_add_extension(&s, 7, newcomers, PLAN_JOINED, 20);
        for (int i = 0; i < s.in.member_count; i++) {
            s.members[i].switches = NULL;
            s.members[i].usable = rand() % 8 > 0;
        }
        plain = scene_decide(&s);
        for (int i = 0; i < s.in.member_count; i++)
            s.members[i].switches = switches[rand() % 5];
        out = scene_decide(&s);
        assert_int_equal(out.size, plain.size);
        assert_int_equal(out.change, plain.change);
        for (int i = 0; i < out.size; i++) {
            mark[out.order[i]]++;
            mark[plain.order[i]]--;
            if (s.members[plain.order[i] - 1].position >= 0)
                assert_int_equal(out.order[i], plain.order[i]);
        }
        for (int i = 0; i < SCENE_NODES_MAX; i++)
            assert_int_equal(mark[i], 0);
        plan_clear(&out);
        plan_clear(&plain);
    }
}

static void test_sizes_that_are_not_allowed_are_never_formed(void **state)
{
    struct scene s;
    struct plan_output out;

    (void)state;
    scene_init(&s, "2:6:2");
    s.in.generation_since = 0;
    scene_add_members(&s, 1, 2, true);
    scene_add_members(&s, 10, 1, false);
    scene_add_extension(&s, 10, 1, PLAN_JOINED, 1);
    out = scene_decide(&s);
    assert_int_equal(out.size, 2);
    assert_false(out.change);
    plan_clear(&out);
    s.extensions[0].since = s.in.now - PLAN_PARK_LIMIT; /* the surplus goes back */
    out = scene_decide(&s);
    assert_int_equal(out.cancel_count, 1);
    assert_true(out.cancel_failed[0]);
    plan_clear(&out);
}

/* After a shrink that is followed by growth at once, Slurm still counts what leaves. */
static void test_what_leaves_counts_until_it_has_left(void **state)
{
    static const struct {
        int leaving, max;
        bool counted;
        int submit;
    } table[] = {
        {2, 3, true, 0}, {2, 3, false, 1}, {1, 3, true, 1}, {3, 9, true, 3}, {3, 9, false, 4},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct plan_output out;
        struct scene s;
        char sizes[8];

        snprintf(sizes, sizeof(sizes), "1:%d", table[i].max);
        scene_init(&s, sizes);
        s.in.last_increments = 4;
        scene_add_members(&s, 1, 1, true);
        scene_add_extension(&s, 10, table[i].leaving, PLAN_LEAVING, 1)->counted = table[i].counted;
        out = scene_decide(&s);
        if (out.submit != table[i].submit)
            fail_msg("row %zu: %d nodes are asked for", i, out.submit);
        plan_clear(&out);
    }
}

static void test_why_not_more(void **state)
{
    struct scene s;
    struct plan_output out;

    (void)state;
    scene_init(&s, "2:6");
    s.in.generation_since = 0;
    scene_add_members(&s, 1, 2, true);
    s.in.no_pool = true;
    out = scene_decide(&s);
    assert_non_null(strstr(out.why_not_more, "no pool"));
    plan_clear(&out);
    s.in.no_pool = false;
    s.in.failure = "extension job 9 ended before it could join (FAILED)";
    s.in.retry_at = s.in.now + 8;
    out = scene_decide(&s);
    assert_non_null(strstr(out.why_not_more, "will be submitted in 8 s; extension job 9 ended"));
    plan_clear(&out);
    s.in.failure = NULL;
    s.in.retry_at = 0;
    s.in.submit_error = "Invalid qos specification";
    out = scene_decide(&s);
    assert_non_null(strstr(out.why_not_more, "Invalid qos specification"));
    plan_clear(&out);
    s.in.held = "pool spot: all its other nodes are powered down and wake=no";
    out = scene_decide(&s);
    assert_string_equal(out.why_not_more, s.in.held); /* nothing about sbatch */
    plan_clear(&out);
    scene_add_extension(&s, 10, 1, PLAN_PENDING, 5)->reason = "Resources";
    out = scene_decide(&s);
    assert_non_null(strstr(out.why_not_more, "Resources"));
    assert_non_null(strstr(out.why_not_more, "job 10"));
    plan_clear(&out);
    s.extensions[0].state = PLAN_BOOTING;
    s.extensions[0].since = s.in.now - 45;
    out = scene_decide(&s);
    assert_non_null(strstr(out.why_not_more, "extension job 10 (1 node) is powering up, 45 s"));
    plan_clear(&out);
    s.in.target = 2;
    out = scene_decide(&s);
    assert_non_null(strstr(out.why_not_more, "held at 2"));
    plan_clear(&out);
    s.in.asks = true;
    out = scene_decide(&s);
    assert_non_null(strstr(out.why_not_more, "nobody has asked for more (--elastic-grow=ask"));
    plan_clear(&out);
}

/* Workers are on their way: what the job has now is not MAX. */
static void test_why_not_more_before_the_next_world(void **state)
{
    struct scene s;
    struct plan_output out;

    (void)state;
    scene_init(&s, "2:6");
    s.in.generation_since = s.in.now;
    scene_add_members(&s, 1, 2, true);
    scene_add_members(&s, 1, 4, false);
    out = scene_decide(&s);
    assert_int_equal(out.size, 6);
    assert_string_equal(out.why_not_more, "MAX is 6: the next world has it");
    plan_clear(&out);
    for (int i = 0; i < s.in.member_count; i++)
        s.members[i].position = i;
    out = scene_decide(&s);
    assert_string_equal(out.why_not_more, "MAX is 6");
    plan_clear(&out);
}

/* A node of the base has not come yet: the leader submits nothing before the first world. */
static void test_why_not_more_before_the_first_world(void **state)
{
    struct scene s;
    struct plan_output out;

    (void)state;
    scene_init(&s, "2:6");
    scene_add_members(&s, 1, 1, false);
    out = scene_decide(&s);
    assert_int_equal(out.size, 0);
    assert_string_equal(out.why_not_more,
                        "no extension is submitted before the first world has begun");
    plan_clear(&out);
    scene_add_members(&s, 1, 1, false);
    s.in.generation_since = s.in.now;
    out = scene_decide(&s);
    assert_string_equal(out.why_not_more, "the next extension is about to be submitted");
    plan_clear(&out);
}

/* ---- a simulated cluster --------------------------------------------------------------------- */

static unsigned random_state;

static int pick(int n)
{
    random_state = random_state * 1103515245u + 12345u;
    return (int)((random_state >> 16) % (unsigned)n);
}

struct cluster {
    struct scene s;
    int free;
    uint32_t next_job;
    int current; /* nodes in the world */
};

static void end_extension(struct cluster *c, int i)
{
    if (c->s.extensions[i].state != PLAN_PENDING)
        c->free += c->s.extensions[i].nodes;
    scene_remove_extension(&c->s, i);
}

static void carry_out(struct cluster *c, const struct plan_output *out)
{
    struct scene *s = &c->s;

    for (int i = 0; i < out->cancel_count; i++)
        for (int k = s->in.extension_count - 1; k >= 0; k--)
            if (s->extensions[k].job == out->cancel[i]) {
                if (out->cancel_failed[i])
                    s->in.setbacks.last = s->in.now;
                s->extensions[k].state = s->extensions[k].state == PLAN_PENDING ? PLAN_PENDING
                                                                                : PLAN_LEAVING;
                s->in.last_increments = 0;
                end_extension(c, k);
            }
    if (out->submit > 0) {
        struct plan_extension *ext = scene_add_extension(s, c->next_job++, out->submit,
                                                         PLAN_PENDING, 0);

        ext->begin = out->submit_delay > 0 ? s->in.now + out->submit_delay : 0;
        s->in.last_increments = out->submit_increments;
    }
    if (!out->change)
        return;
    c->current = out->size;
    scene_enter_world(s, out, false);
}

/* Slurm: starts what fits, now and then takes something back. */
static void slurm(struct cluster *c, bool hostile)
{
    struct scene *s = &c->s;

    for (int i = 0; i < s->in.extension_count; i++) {
        struct plan_extension *ext = &s->extensions[i];

        if (ext->state == PLAN_PENDING && ext->begin <= s->in.now && ext->nodes <= c->free &&
            (!hostile || pick(3) == 0)) {
            c->free -= ext->nodes;
            ext->state = PLAN_STARTING;
            ext->since = s->in.now;
        } else if (ext->state == PLAN_STARTING && pick(3) == 0) {
            scene_add_members(s, ext->job, ext->nodes, false);
            for (int k = 0; k < ext->nodes; k++)
                s->members[s->in.member_count - 1 - k].joined = s->in.now;
            ext->state = PLAN_JOINED;
            ext->since = s->in.now;
        }
    }
    if (hostile && s->in.extension_count > 0 && pick(40) == 0) {
        int victim = pick(s->in.extension_count);

        end_extension(c, victim);
        s->in.setbacks.last = s->in.now;
        s->in.last_increments = 0;
    }
}

/* Nodes that the job has or asks for. */
static int asked_for(const struct scene *s)
{
    int nodes = s->in.base_nodes - s->in.base_lost;

    for (int i = 0; i < s->in.extension_count; i++)
        nodes += s->extensions[i].nodes;
    return nodes;
}

static void check(struct cluster *c, const struct plan_output *out)
{
    struct scene *s = &c->s;
    int pending = 0;

    for (int i = 0; i < s->in.extension_count; i++)
        pending += s->extensions[i].state == PLAN_PENDING;
    assert_true(out->cancel_count > 0 || out->retained_nodes > 0 ||
                asked_for(s) + out->submit <= s->in.target);
    assert_true(out->submit <= s->in.target);
    assert_true(pending <= s->in.max_pending);
    assert_true(out->size == 0 || sizes_allowed(&s->sizes, out->size));
    assert_true(out->size <= s->in.member_count);
    for (int i = 0; i < out->size; i++)
        for (int k = 0; k < i; k++)
            assert_int_not_equal(out->order[i], out->order[k]);
    assert_true(out->why_size[0] != '\0' && out->why_not_more[0] != '\0');
}

static void test_random_histories(void **state)
{
    static const char *const sizes[] = {"2:6", "2:6:2", "2,3,5", "1:16", "4:32:4", "2,4,8,16"};

    (void)state;
    for (unsigned seed = 1; seed <= RANDOM_ROUNDS(300); seed++) {
        struct cluster c = {.next_job = 100};
        const char *text = sizes[seed % (sizeof(sizes) / sizeof(sizes[0]))];

        random_state = seed;
        scene_init(&c.s, text);
        c.s.in.grow_delay = pick(5);
        c.s.in.snooze = pick(4);
        c.free = c.s.sizes.max - c.s.sizes.min + pick(4);
        scene_add_members(&c.s, 1, c.s.sizes.min, false);
        for (int tick = 0; tick < 1200; tick++) {
            bool hostile = tick < 600;
            struct plan_output out;

            c.s.in.now += 0.5;
            slurm(&c, hostile);
            out = scene_decide(&c.s);
            /* The world is what it was, less who left. */
            if (c.current > 0) {
                int left = 0;

                for (int i = 0; i < c.s.in.member_count; i++)
                    left += c.s.members[i].position >= 0;
                if (left < c.current)
                    out.change = true;
            }
            check(&c, &out);
            carry_out(&c, &out);
            plan_clear(&out);
        }
        /* Left in peace for five minutes with enough free nodes, every job has reached MAX. */
        if (c.current != c.s.sizes.max)
            fail_msg("seed %u (%s): %d nodes at the end", seed, text, c.current);
    }
}

static int count_holders(const struct scene *s)
{
    int holders = 0;

    for (int i = 0; i < s->in.member_count; i++)
        holders += s->members[i].has_state;
    return holders;
}

/* One of the base is lost, drained, or there again. */
static void disturb(struct scene *s)
{
    int i = pick(s->in.member_count + 1);
    struct plan_member *m = &s->members[i];

    if (i == s->in.member_count || !m->base)
        return;
    switch (pick(4)) {
    case 0:
        s->in.base_lost += !m->going;
        scene_remove_member(s, i);
        break;
    case 1:
        s->in.base_lost += !m->going;
        m->going = true;
        break;
    default:
        s->in.base_lost -= m->going;
        m->going = false;
        m->usable = true;
        break;
    }
}

static void bring_back(struct scene *s, int base)
{
    int there = 0;

    for (int i = 0; i < s->in.member_count; i++)
        there += s->members[i].base;
    if (there == base)
        return;
    scene_add_members(s, 1, 1, false);
    s->in.base_lost--;
}

/* Who has the state, as far as the plan may know it. */
static void note_states(struct scene *s)
{
    bool all = pick(2) == 0; /* the world has made a step */

    for (int i = 0; i < s->in.member_count; i++) {
        struct plan_member *m = &s->members[i];

        if (all)
            m->has_state = m->position >= 0;
        if (m->going)
            m->usable = m->position >= 0; /* out of the world it is not even a newcomer */
    }
}

/* Nodes of the base are lost, drained and come back, users change their minds, and whoever is in
 * a world has the state a little later: what two have is not left to one that must pass it on. */
static void test_random_histories_of_states(void **state)
{
    static const struct {
        const char *sizes;
        int base, keep;
    } table[] = {{"1:6", 1, 2}, {"2:6", 2, 2}, {"3:6", 3, 2}, {"2,4,6", 2, 1}, {"2,3,6", 3, 1}};
    int exchanges = 0;

    (void)state;
    for (unsigned seed = 1; seed <= RANDOM_ROUNDS(400); seed++) {
        struct cluster c = {.next_job = 100};
        struct scene *s = &c.s;
        int base = table[seed % 5].base, keep = table[seed % 5].keep;

        random_state = seed;
        scene_init(s, table[seed % 5].sizes);
        s->in.base_nodes = base;
        c.free = 6;
        scene_add_members(s, 1, base, false);
        for (int tick = 0; tick < 1500; tick++) {
            bool hostile = tick < 1000;
            struct plan_output out;
            int before, brought;

            s->in.now += 0.5;
            if (hostile && pick(25) == 0)
                s->in.target = sizes_floor(&s->sizes, base + pick(7 - base));
            if (hostile && pick(15) == 0)
                disturb(s);
            if (!hostile)
                for (int i = 0; i < s->in.member_count; i++) {
                    s->in.base_lost -= s->members[i].going;
                    s->members[i].going = false;
                    s->members[i].usable = true;
                }
            if (!hostile || pick(10) == 0)
                bring_back(s, base);
            slurm(&c, false);
            note_states(s);
            before = count_holders(s);
            out = scene_decide(s);
            check(&c, &out);
            out.change = out.change || out.cancel_count > 0;
            carry_out(&c, &out);
            brought = count_holders(s);
            if (out.change && out.size > brought) {
                exchanges++;
                if (brought < (before < keep ? before : keep))
                    fail_msg("seed %u, tick %d: %d of %d that have the state are in a world of %d",
                             seed, tick, brought, before, out.size);
            }
            plan_clear(&out);
        }
        if (c.current != s->in.target)
            fail_msg("seed %u: %d nodes at the end, not %d", seed, c.current, s->in.target);
        assert_int_equal(asked_for(s), s->in.target);
    }
    assert_true(exchanges > RANDOM_ROUNDS(4000));
}

/* Which pool is asked, and for how many nodes: the first one with room for an increment. */
static void test_pools_are_asked_in_order(void **state)
{
    static const struct {
        const char *sizes;
        int room[2];       /* of spot and demand */
        bool singly;       /* demand */
        int waiting[2];    /* requests of one node */
        int surplus, last; /* increments of the last request */
        /* what follows */
        int submit, pool;
    } table[] = {
        {"2:20", {18, 18}, false, {0, 0}, 0, 1, 2, 0},
        {"2:20", {1, 18}, false, {0, 0}, 0, 1, 1, 0},
        {"2:20", {0, 18}, false, {0, 0}, 0, 1, 2, 1}, /* the next one */
        {"2:20", {0, 18}, true, {0, 0}, 0, 4, 1, 1},
        {"2:20", {0, 0}, false, {0, 0}, 0, 1, 0, 0},
        {"2:20", {16, 18}, false, {2, 0}, 0, 4, 8, 1}, /* max_pending is that of a pool */
        {"2:20", {16, 18}, false, {2, 2}, 0, 4, 0, 0},
        {"2:18:4", {3, 4}, false, {0, 0}, 0, 1, 4, 1}, /* no allowed size with three */
        {"2:4", {9, 0}, false, {2, 0}, 0, 1, 0, 0},    /* enough are on their way */
        {"2:4", {9, 0}, false, {1, 1}, 1, 1, 1, 0},    /* in the place of a node that works */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        const struct plan_pool pools[] = {
            {.name = "spot", .room = table[i].room[0]},
            {.name = "demand", .room = table[i].room[1], .singly = table[i].singly}};
        struct scene s;
        struct plan_output out;

        scene_init(&s, table[i].sizes);
        scene_add_members(&s, 1, 2, true);
        s.in.pools = pools;
        s.in.pool_count = 2;
        s.in.surplus = table[i].surplus;
        s.in.last_increments = table[i].last;
        for (uint32_t k = 0; k < 2; k++)
            for (int n = 0; n < table[i].waiting[k]; n++)
                scene_add_extension(&s, 10 * (k + 1) + (uint32_t)n, 1, PLAN_PENDING, 1)->pool =
                    pools[k].name;
        out = scene_decide(&s);
        if (out.submit != table[i].submit || out.pool != table[i].pool)
            fail_msg("row %zu: asks pool %d for %d", i, out.pool, out.submit);
        plan_clear(&out);
    }
}

/* After a setback the job waits, but not for a pool that is asked in the place of another one. */
static void test_pool_that_is_asked_at_once(void **state)
{
    struct plan_pool pool = {.name = "demand", .room = 8};
    struct scene s;
    struct plan_output out;

    (void)state;
    scene_init(&s, "2:10");
    scene_add_members(&s, 1, 2, true);
    s.in.pools = &pool;
    s.in.setbacks.last = s.in.now;
    out = scene_decide(&s);
    assert_true(out.submit_delay == 60);
    plan_clear(&out);
    pool.at_once = true;
    out = scene_decide(&s);
    assert_int_equal(out.submit, 1);
    assert_true(out.submit_delay == 0);
    plan_clear(&out);
}

/* A job of MAX nodes takes a newcomer in the place of an on-demand node: first both are there, then
 * the other one goes, in one change of worlds. */
static void test_join_then_switch(void **state)
{
    struct scene s;
    struct plan_extension *demand;
    struct plan_output out;

    (void)state;
    scene_init(&s, "1:2");
    s.in.generation_since = 0;
    scene_add_members(&s, 1, 1, true);
    scene_add_members(&s, 10, 1, true);
    s.members[0].has_state = s.members[1].has_state = true;
    demand = scene_add_extension(&s, 10, 1, PLAN_JOINED, 100);
    scene_add_extension(&s, 11, 1, PLAN_STARTING, 3);

    /* Without a surplus it would be one too many. */
    out = scene_decide(&s);
    assert_true(out.cancel_count > 0);
    plan_clear(&out);
    s.in.surplus = 1;
    out = scene_decide(&s);
    assert_int_equal(out.cancel_count, 0);
    assert_int_equal(out.submit, 0);
    assert_false(out.change);
    plan_clear(&out);

    s.extensions[1].state = PLAN_JOINED;
    scene_add_members(&s, 11, 1, false);
    s.in.surplus = 0;
    demand->unwanted = true;
    out = scene_decide(&s);
    assert_true(out.change);
    assert_int_equal(out.size, 2);
    assert_int_equal(out.order[1], 3);
    assert_int_equal(out.submit, 0);
    plan_clear(&out);
}

static void test_request_is_withdrawn(void **state)
{
    struct scene s;
    struct plan_output out;

    (void)state;
    scene_init(&s, "2:4");
    scene_add_members(&s, 1, 2, true);
    scene_add_extension(&s, 10, 1, PLAN_PENDING, 3)->withdrawn = true;
    scene_add_extension(&s, 11, 1, PLAN_PENDING, 3);
    out = scene_decide(&s);
    assert_int_equal(out.cancel_count, 1);
    assert_int_equal(out.cancel[0], 10);
    assert_false(out.cancel_failed[0]);
    plan_clear(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_start),
        cmocka_unit_test(test_pools_are_asked_in_order),
        cmocka_unit_test(test_pool_that_is_asked_at_once),
        cmocka_unit_test(test_join_then_switch),
        cmocka_unit_test(test_request_is_withdrawn),
        cmocka_unit_test(test_sequence_of_requests),
        cmocka_unit_test(test_max_pending),
        cmocka_unit_test(test_growth_waits_for_those_about_to_join),
        cmocka_unit_test(test_leaving_is_urgent),
        cmocka_unit_test(test_a_lost_base_node_is_replaced),
        cmocka_unit_test(test_lost_nodes_are_replaced_first),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_order_along_the_switches),
        cmocka_unit_test(test_order_of_random_worlds),
        cmocka_unit_test(test_sizes_that_are_not_allowed_are_never_formed),
        cmocka_unit_test(test_what_leaves_counts_until_it_has_left),
        cmocka_unit_test(test_why_not_more),
        cmocka_unit_test(test_why_not_more_before_the_first_world),
        cmocka_unit_test(test_why_not_more_before_the_next_world),
        cmocka_unit_test(test_random_histories),
        cmocka_unit_test(test_random_histories_of_states),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/plan: tables of situations, and random histories on a simulated cluster. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/plan.h"

#define NODES_MAX      64
#define EXTENSIONS_MAX 32

static struct sizes parse(const char *text)
{
    struct sizes sizes;
    struct error err = {""};

    if (sizes_parse(text, &sizes, &err) != 0)
        fail_msg("%s", err.text);
    return sizes;
}

/* A situation under construction. */
struct scene {
    struct sizes sizes;
    struct plan_member members[NODES_MAX];
    struct plan_extension extensions[EXTENSIONS_MAX];
    struct plan_input in;
    int next_id;
};

static void scene_init(struct scene *s, const char *sizes)
{
    memset(s, 0, sizeof(*s));
    s->sizes = parse(sizes);
    s->in = (struct plan_input){
        .now = 1000,
        .sizes = &s->sizes,
        .base_nodes = s->sizes.min,
        .target = s->sizes.max,
        .max_pending = 2,
        .grow_delay = 60,
        .generation_since = -1,
        .setbacks.last = -1,
        .stands_since = -1,
        .members = s->members,
        .extensions = s->extensions,
    };
}

static void add_members(struct scene *s, uint32_t job, int count, bool in_world)
{
    for (int i = 0; i < count; i++) {
        struct plan_member *m = &s->members[s->in.member_count];

        *m = (struct plan_member){.id = ++s->next_id,
                                  .job = job,
                                  .base = job == 1,
                                  .usable = true,
                                  .position = in_world ? s->in.member_count : -1,
                                  .nodeid = i,
                                  .joined = s->in.now - 100};
        s->in.member_count++;
    }
}

static struct plan_extension *add_extension(struct scene *s, uint32_t job, int nodes,
                                            enum plan_extension_state state, double age)
{
    struct plan_extension *ext = &s->extensions[s->in.extension_count++];

    *ext = (struct plan_extension){
        .job = job, .nodes = nodes, .state = state, .since = s->in.now - age, .pool = "elastic"};
    return ext;
}

static struct plan_output decide(struct scene *s)
{
    struct plan_output out;

    assert_int_equal(plan_decide(&s->in, &out), 0);
    return out;
}

static void remove_member(struct scene *s, int i)
{
    memmove(&s->members[i], &s->members[i + 1],
            (size_t)(s->in.member_count - i - 1) * sizeof(s->members[0]));
    s->in.member_count--;
}

static void remove_extension(struct scene *s, int i)
{
    for (int k = s->in.member_count - 1; k >= 0; k--)
        if (s->members[k].job == s->extensions[i].job)
            remove_member(s, k);
    memmove(&s->extensions[i], &s->extensions[i + 1],
            (size_t)(s->in.extension_count - i - 1) * sizeof(s->extensions[0]));
    s->in.extension_count--;
}

static void drop_extension(struct scene *s, uint32_t job)
{
    for (int i = s->in.extension_count - 1; i >= 0; i--)
        if (s->extensions[i].job == job)
            remove_extension(s, i);
}

/* The next world begins. shares: in the end all in it have the state. Returns how many have
 * brought it. */
static int enter_world(struct scene *s, const struct plan_output *out, bool shares)
{
    int holders = 0;

    s->in.generation_since = s->in.now;
    for (int i = 0; i < s->in.member_count; i++) {
        struct plan_member *m = &s->members[i];

        m->position = -1;
        for (int k = 0; k < out->size; k++)
            if (out->order[k] == m->id)
                m->position = k;
        m->has_state = m->has_state && m->position >= 0;
        holders += m->has_state;
        m->has_state = m->position >= 0 && (m->has_state || shares);
    }
    return holders;
}

static void test_start(void **state)
{
    struct scene s;
    struct plan_output out;

    (void)state;
    scene_init(&s, "2:6");
    add_members(&s, 1, 1, false);
    out = decide(&s);
    assert_int_equal(out.size, 0);
    assert_false(out.change);
    assert_string_equal(out.why_size, "waiting: 1 of at least 2 nodes are there");
    plan_clear(&out);

    add_members(&s, 1, 1, false);
    out = decide(&s);
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
        add_members(&s, 1, s.sizes.min, true);
        for (int i = 0;; i++) {
            struct plan_output out = decide(&s);

            if (out.submit != table[row].expected[i])
                fail_msg("%s: request %d is of %d nodes, expected %d", table[row].sizes, i,
                         out.submit, table[row].expected[i]);
            plan_clear(&out);
            if (out.submit == 0)
                break;
            s.in.last_increments = out.submit_increments;
            add_extension(&s, (uint32_t)(10 + i), out.submit, PLAN_PENDING, 0);
        }
    }
}

static void test_max_pending(void **state)
{
    struct scene s;
    struct plan_output out;

    (void)state;
    scene_init(&s, "2:100");
    add_members(&s, 1, 2, true);
    add_extension(&s, 10, 1, PLAN_PENDING, 1);
    add_extension(&s, 0, 2, PLAN_SUBMITTING, 0);
    out = decide(&s);
    assert_int_equal(out.submit, 0);
    assert_int_equal(out.cancel_count, 0);
    plan_clear(&out);
}

static void test_large_request_that_stalls_is_made_smaller(void **state)
{
    struct scene s;
    struct plan_output out;

    (void)state;
    scene_init(&s, "2:100");
    add_members(&s, 1, 2, true);
    add_extension(&s, 10, 1, PLAN_PENDING, 100);
    add_extension(&s, 11, 16, PLAN_PENDING, PLAN_STALE + 1);
    out = decide(&s);
    assert_int_equal(out.cancel_count, 1);
    assert_int_equal(out.cancel[0], 11);
    assert_int_equal(out.submit, 1);
    plan_clear(&out);

    /* Not yet eligible is not stalled. */
    s.extensions[1].begin = s.in.now + 5;
    out = decide(&s);
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
    add_members(&s, 1, 2, true);
    add_members(&s, 10, 1, false);
    s.members[2].joined = s.in.now - 1;
    add_extension(&s, 10, 1, PLAN_JOINED, 1);
    add_extension(&s, 11, 2, PLAN_STARTING, 1);
    add_extension(&s, 12, 1, PLAN_PENDING, 30);
    out = decide(&s);
    assert_int_equal(out.size, 3);
    assert_false(out.change);
    assert_true(out.wake > 0 && out.wake <= PLAN_SETTLE_MAX);
    plan_clear(&out);

    s.members[2].joined = s.in.now - PLAN_SETTLE_MAX; /* … but not for ever */
    out = decide(&s);
    assert_true(out.change);
    assert_int_equal(out.size, 3);
    plan_clear(&out);

    s.members[2].joined = s.in.now - 1;
    s.extensions[1].state = PLAN_JOINED;
    add_members(&s, 11, 2, false);
    out = decide(&s);
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
    add_members(&s, 1, 2, true);
    add_members(&s, 10, 1, true);
    add_members(&s, 11, 2, true);
    add_extension(&s, 10, 1, PLAN_JOINED, 50);
    add_extension(&s, 11, 2, PLAN_LEAVING, 0);
    s.members[3].usable = s.members[4].usable = false;
    out = decide(&s);
    assert_true(out.change && out.urgent);
    assert_int_equal(out.size, 3);
    assert_int_equal(out.order[0], 1);
    assert_int_equal(out.order[2], 3);
    assert_true(out.submit > 0);
    assert_true(out.submit_delay == 400); /* the longer of grow-delay and snooze */
    plan_clear(&out);
}

static void test_what_is_taken_back_again_and_again_pauses_longer(void **state)
{
    static const struct {
        double after; /* the setback before */
        double asked; /* … the extension that this one is about was asked for; < -1: none was */
        double pause;
    } table[] = {
        {1000, 900, 10}, /* the first one */
        {1, -500, 10},   /* and another one, which is taken back with it */
        {30, 0, 20},     /* what was asked for at once did not last */
        {40, 20, 40},     {60, 40, 80},    {100, 80, 160},
        {200, 160, 300},  {340, 300, 300}, /* no longer than that */
        {50, -5000, 300},                  /* a node was lost: no more and no less */
        {361, 310, 10},                    /* it was quiet for long */
    };
    struct plan_setbacks setbacks = {.last = -1};
    double now = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        double before = now;

        now += table[i].after;
        plan_setback(&setbacks, now, 10, table[i].asked < -1 ? -1 : before + table[i].asked);
        if (plan_pause(&setbacks, 10) != table[i].pause)
            fail_msg("row %zu: %g s", i, plan_pause(&setbacks, 10));
    }
    /* Without a delay there is a pause all the same, but for the first one. */
    setbacks = (struct plan_setbacks){.last = 5};
    assert_true(plan_pause(&setbacks, 0) == 0);
    plan_setback(&setbacks, 6, 0, 5);
    assert_true(plan_pause(&setbacks, 0) == 2 * PLAN_PAUSE);
    assert_true(plan_pause(&setbacks, 1000) == 1000);
}

static void test_in_the_pause_nothing_waits_in_the_queue(void **state)
{
    struct scene s;
    struct plan_output out;

    (void)state;
    for (int again = 0; again < 2; again++) {
        scene_init(&s, "2:4");
        add_members(&s, 1, 2, true);
        add_extension(&s, 10, 1, PLAN_PENDING, 5);
        s.in.setbacks = (struct plan_setbacks){.last = s.in.now - 1, .again = again};
        out = decide(&s);
        assert_int_equal(out.cancel_count, again);
        assert_true(out.submit > 0);
        assert_true(out.submit_delay == (again == 0 ? 59 : 119));
        plan_clear(&out);
    }
    /* What was asked for since stays. */
    s.extensions[0].begin = s.in.now + 119;
    out = decide(&s);
    assert_int_equal(out.cancel_count, 0);
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
        add_members(&s, 1, table[i].members, false);
        add_extension(&s, 10, 1, PLAN_PENDING, 5)->excludes = table[i].excludes;
        s.in.base_lost = 2 - table[i].members;
        s.in.stands_since = table[i].since < 0 ? -1 : s.in.now - table[i].since;
        out = decide(&s);
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
    add_members(&s, 1, 2, false);
    add_extension(&s, 10, 2, PLAN_PENDING, 5);
    add_extension(&s, 11, 2, PLAN_PENDING, 5);
    s.in.base_lost = 1;
    out = decide(&s);
    assert_int_equal(out.cancel_count, 2);
    assert_int_equal(out.submit, 1);
    plan_clear(&out);

    drop_extension(&s, 10);
    add_extension(&s, 0, 1, PLAN_SUBMITTING, 0);
    out = decide(&s);
    assert_int_equal(out.cancel_count, 0);
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
    add_members(&s, 1, 1, true);
    add_members(&s, 10, 1, true);
    add_extension(&s, 10, 1, PLAN_JOINED, 50);
    s.in.base_lost = 1;
    s.in.setbacks.last = s.in.now;
    out = decide(&s);
    assert_int_equal(out.size, 2);
    assert_int_equal(out.submit, 1);
    assert_true(out.submit_delay == s.in.grow_delay);
    plan_clear(&out);

    /* Below MIN: at once, and what was to come later is asked for anew. */
    scene_init(&s, "2:3");
    add_members(&s, 1, 1, true);
    add_extension(&s, 10, 1, PLAN_PENDING, 5)->begin = s.in.now + 50;
    s.in.base_lost = 1;
    s.in.setbacks.last = s.in.now;
    s.in.generation_since = s.in.now;
    s.in.snooze = 600;
    out = decide(&s);
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
        add_members(&s, 1, 2 - table[i].base_lost, false);
        for (int k = 0; k < table[i].joined; k++) {
            add_members(&s, 10 + (uint32_t)k, 1, false);
            add_extension(&s, 10 + (uint32_t)k, 1, PLAN_JOINED, 5);
        }
        if (table[i].other != PLAN_LEAVING)
            add_extension(&s, 20, 1, table[i].other, 5)->begin = s.in.now + table[i].begin;
        if (table[i].other == PLAN_JOINED)
            add_members(&s, 20, 1, false);
        out = decide(&s);
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

static void test_nothing_is_given_back_while_lost_nodes_are_replaced(void **state)
{
    struct scene s;
    struct plan_output out;

    (void)state;
    /* Eleven of twelve are left. Eight could train, and three more are joined for long. */
    scene_init(&s, "4:12:4");
    add_members(&s, 1, 4, false);
    for (uint32_t job = 10; job < 17; job++) {
        add_members(&s, job, 1, false);
        add_extension(&s, job, 1, PLAN_JOINED, 500);
    }
    s.in.before_loss = 12;
    s.in.replace_until = s.in.now + 20;
    out = decide(&s);
    assert_true(out.replaces);
    assert_int_equal(out.submit, 1);
    assert_int_equal(out.cancel_count, 0);
    plan_clear(&out);
    s.in.replace_until = s.in.now;
    out = decide(&s);
    assert_int_equal(out.size, 8);
    assert_int_equal(out.cancel_count, 3);
    plan_clear(&out);

    /* The one that is left has to go soon, but MIN is not met without it. */
    scene_init(&s, "2:3");
    s.in.base_nodes = 1;
    add_members(&s, 1, 1, false);
    add_members(&s, 10, 1, false);
    add_extension(&s, 10, 1, PLAN_JOINED, 500)->leaves = s.in.now + 100;
    s.in.before_loss = 3;
    s.in.replace_until = s.in.now + 20;
    out = decide(&s);
    assert_true(out.replaces);
    assert_int_equal(out.cancel_count, 0);
    plan_clear(&out);
    s.in.replace_until = s.in.now;
    out = decide(&s);
    assert_int_equal(out.size, 2);
    assert_int_equal(out.cancel_count, 0);
    plan_clear(&out);
}

static void test_order(void **state)
{
    struct scene s;
    struct plan_output out;

    (void)state;
    scene_init(&s, "2:6");
    s.in.generation_since = 0;
    /* Members in the order in which they joined; survivors have positions. */
    add_members(&s, 12, 1, false); /* id 1 */
    add_members(&s, 11, 2, false); /* ids 2, 3 */
    add_members(&s, 1, 2, false);  /* ids 4, 5 */
    s.members[3].position = 0;
    s.members[4].position = 1;
    s.members[1].nodeid = 1;
    s.members[2].nodeid = 0;
    add_extension(&s, 11, 2, PLAN_JOINED, 1);
    add_extension(&s, 12, 1, PLAN_JOINED, 1);
    out = decide(&s);
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
        add_members(&s, 1, table[i].base, false);
        if (table[i].extension > 0) {
            add_members(&s, 7, table[i].extension, false);
            add_extension(&s, 7, table[i].extension, PLAN_JOINED, 20);
        }
        for (int k = 0; k < s.in.member_count; k++) {
            s.members[k].switches = table[i].switches[k];
            s.members[k].position = table[i].world[k] == 'x' ? k : -1;
        }
        out = decide(&s);
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
    for (int round = 0; round < 2000; round++) {
        struct scene s;
        struct plan_output out, plain;
        int world = rand() % 9, newcomers = rand() % 9, mark[NODES_MAX] = {0};

        scene_init(&s, "1:16");
        s.in.target = 1 + rand() % 16;
        add_members(&s, 1, 1 + world, true);
        add_members(&s, 7, newcomers, false);
        s.in.base_nodes = 1 + world;
        add_extension(&s, 7, newcomers, PLAN_JOINED, 20);
        for (int i = 0; i < s.in.member_count; i++) {
            s.members[i].switches = NULL;
            s.members[i].usable = rand() % 8 > 0;
        }
        plain = decide(&s);
        for (int i = 0; i < s.in.member_count; i++)
            s.members[i].switches = switches[rand() % 5];
        out = decide(&s);
        assert_int_equal(out.size, plain.size);
        assert_int_equal(out.change, plain.change);
        for (int i = 0; i < out.size; i++) {
            mark[out.order[i]]++;
            mark[plain.order[i]]--;
            if (s.members[plain.order[i] - 1].position >= 0)
                assert_int_equal(out.order[i], plain.order[i]);
        }
        for (int i = 0; i < NODES_MAX; i++)
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
    add_members(&s, 1, 2, true);
    add_members(&s, 10, 1, false);
    add_extension(&s, 10, 1, PLAN_JOINED, 1);
    out = decide(&s);
    assert_int_equal(out.size, 2);
    assert_false(out.change);
    plan_clear(&out);
    s.extensions[0].since = s.in.now - PLAN_PARK_LIMIT; /* the surplus goes back */
    out = decide(&s);
    assert_int_equal(out.cancel_count, 1);
    assert_true(out.cancel_failed[0]);
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
    add_members(&s, 1, 1, false);
    s.members[0].usable = false; /* its worker has failed */
    add_members(&s, 10, 1, true);
    add_members(&s, 11, 1, false);
    s.members[2].usable = false; /* about to be lost */
    add_extension(&s, 10, 1, PLAN_JOINED, 100 * PLAN_PARK_LIMIT);
    add_extension(&s, 11, 1, PLAN_JOINED, 100 * PLAN_PARK_LIMIT);
    out = decide(&s);
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
        add_members(&s, 1, 2, true);
        add_members(&s, 10, 1, true);
        add_members(&s, 11, 2, true);
        add_members(&s, 12, 1, true);
        add_extension(&s, 10, 1, PLAN_JOINED, 50);
        add_extension(&s, 11, 2, PLAN_JOINED, 50);
        add_extension(&s, 12, 1, PLAN_JOINED, 50);
        s.in.target = table[row].target;
        out = decide(&s);
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

/* Adds the members of one job as a word says. H: in the world, with the state; F: in it, which
 * is just being formed, without; n: newcomer; u: cannot be used now; g: as H, but going. Returns
 * how many of the base count as lost. */
static int add_word(struct scene *s, uint32_t job, const char *word)
{
    int lost = 0;

    for (; *word != '\0' && *word != '!'; word++) {
        struct plan_member *m = &s->members[s->in.member_count];

        add_members(s, job, 1, strchr("HFg", *word) != NULL);
        m->has_state = *word == 'H' || *word == 'g';
        m->usable = *word != 'u';
        m->going = *word == 'g';
        lost += m->going;
    }
    return lost;
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
            struct plan_extension *ext = add_extension(&s, job, (int)strcspn(word, "!"),
                                                       PLAN_JOINED, 5);

            ext->unwanted = strchr(word, '!') != NULL;
            add_word(&s, job, word);
        }
        s.in.base_nodes = (int)strlen(table[row].base);
        s.in.base_lost = add_word(&s, 1, table[row].base);
        for (int round = 0; round < 20; round++) {
            struct plan_output out = decide(&s);
            size_t used = strlen(worlds);

            for (int i = 0; i < out.cancel_count; i++)
                drop_extension(&s, out.cancel[i]);
            if (out.change && out.size > 0)
                snprintf(worlds + used, sizeof(worlds) - used, "%d/%d ", out.size,
                         enter_world(&s, &out, true));
            plan_clear(&out);
        }
        if (strcmp(worlds, table[row].worlds) != 0)
            fail_msg("row %zu: %s", row, worlds);
        if (s.in.extension_count != table[row].left)
            fail_msg("row %zu: %d extensions are left", row, s.in.extension_count);
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
        add_members(&s, 1, 1, true);
        for (int i = 0; i < 6; i++)
            sizes[i] = round < 0 ? table[row].sizes[i] : rand_r(&seed) % 6;
        for (int i = 0; i < 6; i++) {
            if (sizes[i] == 0)
                continue;
            sizes[count++] = sizes[i];
            all += sizes[i];
            add_members(&s, 10 + (uint32_t)count, sizes[i], true);
            add_extension(&s, 10 + (uint32_t)count, sizes[i], PLAN_JOINED, 50);
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
        out = decide(&s);
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
        add_members(&s, 1, 1, true);
        add_extension(&s, 10, table[i].leaving, PLAN_LEAVING, 1)->counted = table[i].counted;
        out = decide(&s);
        if (out.submit != table[i].submit)
            fail_msg("row %zu: %d nodes are asked for", i, out.submit);
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
    add_members(&s, 1, 2, true);
    add_members(&s, 10, 4, true);
    add_extension(&s, 10, 4, PLAN_JOINED, 50);
    s.in.target = 5;
    out = decide(&s);
    assert_int_equal(out.cancel_count, 1); /* all of it, and a smaller one is asked for */
    assert_int_equal(out.size, 2);
    assert_true(out.submit > 0 && out.submit <= 3);
    plan_clear(&out);
}

/* Base 1 with two nodes and extension 10, whose time runs out; 2:3, so that it fills the job. */
static void scene_ending(struct scene *s, double left)
{
    scene_init(s, "2:3");
    s->in.generation_since = 0;
    add_members(s, 1, 2, true);
    add_members(s, 10, 1, true);
    add_extension(s, 10, 1, PLAN_JOINED, 900 - left)->leaves = s->in.now + left;
}

static void test_replacement_is_asked_for_before_time_runs_out(void **state)
{
    struct scene s;
    struct plan_output out;

    (void)state;
    scene_ending(&s, PLAN_REPLACE + 5);
    out = decide(&s);
    assert_int_equal(out.submit, 0);
    assert_true(out.wake > 4.9 && out.wake < 5.1);
    plan_clear(&out);

    scene_ending(&s, PLAN_REPLACE);
    out = decide(&s);
    assert_int_equal(out.submit, 1);
    assert_int_equal(out.cancel_count, 0);
    assert_false(out.change); /* the old one works on */
    plan_clear(&out);

    add_extension(&s, 11, 1, PLAN_PENDING, 1);
    out = decide(&s);
    assert_int_equal(out.submit, 0);
    assert_int_equal(out.cancel_count, 0);
    plan_clear(&out);

    s.extensions[1].state = PLAN_JOINED;
    add_members(&s, 11, 1, false);
    out = decide(&s);
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
    out = decide(&s);
    assert_int_equal(out.submit, 0);
    assert_true(out.wake > 7.4 && out.wake < 7.6);
    plan_clear(&out);
    s.in.now += 8;
    out = decide(&s);
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
    add_extension(&s, 11, 1, PLAN_PENDING, 1);
    s.in.target = 2;
    out = decide(&s);
    assert_int_equal(out.cancel_count, 2);
    assert_int_equal(out.size, 2);
    assert_int_equal(out.submit, 0);
    plan_clear(&out);
}

static void test_why_not_more(void **state)
{
    struct scene s;
    struct plan_output out;

    (void)state;
    scene_init(&s, "2:6");
    s.in.generation_since = 0;
    add_members(&s, 1, 2, true);
    s.in.no_pool = true;
    out = decide(&s);
    assert_non_null(strstr(out.why_not_more, "no pool"));
    plan_clear(&out);
    s.in.no_pool = false;
    s.in.failure = "extension job 9 ended before it could join (FAILED)";
    s.in.retry_at = s.in.now + 8;
    out = decide(&s);
    assert_non_null(strstr(out.why_not_more, "will be submitted in 8 s; extension job 9 ended"));
    plan_clear(&out);
    s.in.failure = NULL;
    s.in.retry_at = 0;
    s.in.submit_error = "Invalid qos specification";
    out = decide(&s);
    assert_non_null(strstr(out.why_not_more, "Invalid qos specification"));
    plan_clear(&out);
    add_extension(&s, 10, 1, PLAN_PENDING, 5)->reason = "Resources";
    out = decide(&s);
    assert_non_null(strstr(out.why_not_more, "Resources"));
    assert_non_null(strstr(out.why_not_more, "job 10"));
    plan_clear(&out);
    s.in.target = 2;
    out = decide(&s);
    assert_non_null(strstr(out.why_not_more, "held at 2"));
    plan_clear(&out);
    s.in.asks = true;
    out = decide(&s);
    assert_non_null(strstr(out.why_not_more, "nobody has asked for more (--elastic-grow=ask"));
    plan_clear(&out);
}

/* A node of the base has not come yet: the leader submits nothing before the first world. */
static void test_why_not_more_before_the_first_world(void **state)
{
    struct scene s;
    struct plan_output out;

    (void)state;
    scene_init(&s, "2:6");
    add_members(&s, 1, 1, false);
    out = decide(&s);
    assert_int_equal(out.size, 0);
    assert_string_equal(out.why_not_more,
                        "no extension is submitted before the first world has begun");
    plan_clear(&out);
    add_members(&s, 1, 1, false);
    s.in.generation_since = s.in.now;
    out = decide(&s);
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
    remove_extension(&c->s, i);
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
        struct plan_extension *ext = add_extension(s, c->next_job++, out->submit, PLAN_PENDING, 0);

        ext->begin = out->submit_delay > 0 ? s->in.now + out->submit_delay : 0;
        s->in.last_increments = out->submit_increments;
    }
    if (!out->change)
        return;
    c->current = out->size;
    enter_world(s, out, false);
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
            add_members(s, ext->job, ext->nodes, false);
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
    for (unsigned seed = 1; seed <= 300; seed++) {
        struct cluster c = {.next_job = 100};
        const char *text = sizes[seed % (sizeof(sizes) / sizeof(sizes[0]))];

        random_state = seed;
        scene_init(&c.s, text);
        c.s.in.grow_delay = pick(5);
        c.s.in.snooze = pick(4);
        c.free = c.s.sizes.max - c.s.sizes.min + pick(4);
        add_members(&c.s, 1, c.s.sizes.min, false);
        for (int tick = 0; tick < 1200; tick++) {
            bool hostile = tick < 600;
            struct plan_output out;

            c.s.in.now += 0.5;
            slurm(&c, hostile);
            out = decide(&c.s);
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
        remove_member(s, i);
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
    add_members(s, 1, 1, false);
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
    for (unsigned seed = 1; seed <= 400; seed++) {
        struct cluster c = {.next_job = 100};
        struct scene *s = &c.s;
        int base = table[seed % 5].base, keep = table[seed % 5].keep;

        random_state = seed;
        scene_init(s, table[seed % 5].sizes);
        s->in.base_nodes = base;
        c.free = 6;
        add_members(s, 1, base, false);
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
            out = decide(s);
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
    assert_true(exchanges > 4000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_start),
        cmocka_unit_test(test_sequence_of_requests),
        cmocka_unit_test(test_max_pending),
        cmocka_unit_test(test_large_request_that_stalls_is_made_smaller),
        cmocka_unit_test(test_growth_waits_for_those_about_to_join),
        cmocka_unit_test(test_leaving_is_urgent),
        cmocka_unit_test(test_what_is_taken_back_again_and_again_pauses_longer),
        cmocka_unit_test(test_in_the_pause_nothing_waits_in_the_queue),
        cmocka_unit_test(test_any_node_is_better_than_none),
        cmocka_unit_test(test_below_min_as_few_as_possible_are_asked_for),
        cmocka_unit_test(test_a_lost_base_node_is_replaced),
        cmocka_unit_test(test_lost_nodes_are_replaced_first),
        cmocka_unit_test(test_nothing_is_given_back_while_lost_nodes_are_replaced),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_order_along_the_switches),
        cmocka_unit_test(test_order_of_random_worlds),
        cmocka_unit_test(test_sizes_that_are_not_allowed_are_never_formed),
        cmocka_unit_test(test_what_is_left_of_a_world_is_kept),
        cmocka_unit_test(test_resize_down),
        cmocka_unit_test(test_newcomers_get_the_state_before_others_go),
        cmocka_unit_test(test_resize_down_gives_back_the_best_set),
        cmocka_unit_test(test_what_leaves_counts_until_it_has_left),
        cmocka_unit_test(test_resize_down_that_does_not_fit),
        cmocka_unit_test(test_replacement_is_asked_for_before_time_runs_out),
        cmocka_unit_test(test_short_extension_is_replaced_in_its_last_quarter),
        cmocka_unit_test(test_nothing_else_goes_for_one_that_ends),
        cmocka_unit_test(test_why_not_more),
        cmocka_unit_test(test_why_not_more_before_the_first_world),
        cmocka_unit_test(test_random_histories),
        cmocka_unit_test(test_random_histories_of_states),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}

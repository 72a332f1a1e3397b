/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/plan with units of several nodes (--elastic-replica): tables of situations, and random
 * histories. */
#include "lib/text.h"
#include "tests/unit/plan_fixture.h"
#include "tests/unit/support.h"

/* Members are written as "HH.HH nn uH": a word for the base, then one for each extension, in the
 * letters of scene_add_word(). The expected world is made of letters, too: the first member is a,
 * the second b, … "-" stands for none. */
struct row {
    const char *what, *sizes;
    int replica;
    const char *members[4];
    const char *world;
    int submit;
};

static const struct row rows[] = {
    {"a first world", "2:8:2", 2, {"nn"}, "ab", 2},
    {"an odd node of the base is spare", "2:8:2", 2, {"nnn"}, "ab", 1},
    {"an extension of one unit joins", "2:8:2", 2, {"HH", "nn"}, "abcd", 2},
    {"a lost node takes its unit out", "2:4:2", 2, {"HHuH"}, "ab", 1},
    {"the first unit is lost", "2:4:2", 2, {"uHHH"}, "cd", 1},
    {"… which the survivors follow in order", "2:6:2", 2, {"uHHHHH"}, "cdef", 1},
    {"two spare nodes of the base make up a unit", "2:8:2", 2, {"HuHuHH"}, "efac", 2},
    {"one that is back completes a unit", "4:4:2", 2, {"HHnH"}, "abcd", 0},
    {"a replacement completes a unit", "4:4:2", 2, {"HHH", "n"}, "abcd", 0},
    {"a unit of one extension comes before a mixed one", "2:8:2", 2, {"HHuH", "nn"}, "abef", 1},
    {"three nodes a unit", "3:9:3", 3, {"HHH", "nnn", "nnn"}, "abcdefghi", 0},
    {"three nodes a unit, two of one extension are spare",
     "3:9:3",
     3,
     {"HHH", "nn", "nnn"},
     "abcfgh",
     1},
    {"spare nodes of two jobs make up a unit", "3:9:3", 3, {"HHHH", "nn", "nnn"}, "abcghidef", 0},
    {"too few for one unit", "2:4:2", 2, {"Hu"}, "-", 1},
    {"units of one node", "2:4", 1, {"HuH"}, "ac", 1},
};

static void fill(struct scene *s, const struct row *row)
{
    scene_init(s, row->sizes);
    s->in.replica = row->replica;
    s->in.generation_since = s->in.now - 500;
    for (int i = 0; i < 4 && row->members[i] != NULL; i++) {
        uint32_t job = i == 0 ? 1 : (uint32_t)(9 + i);

        if (i == 0)
            s->in.base_nodes = (int)strlen(row->members[i]);
        else
            scene_add_extension(s, job, (int)strlen(row->members[i]), PLAN_JOINED, 5);
        scene_add_word(s, job, row->members[i]);
    }
    for (int i = 0; i < s->in.member_count; i++) /* lost ones have a place, too */
        if (!s->members[i].usable) {
            s->members[i].position = i;
            s->in.base_lost += s->members[i].base;
        }
}

static void test_worlds_of_whole_units(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct scene s;
        struct plan_output out;
        char world[SCENE_NODES_MAX + 1] = "";

        fill(&s, &rows[i]);
        out = scene_decide(&s);
        for (int k = 0; k < out.size; k++)
            text_append(world, sizeof(world), "%c", 'a' + out.order[k] - 1);
        if (strcmp(world[0] != '\0' ? world : "-", rows[i].world) != 0)
            fail_msg("%s: the world is %s, not %s", rows[i].what, world, rows[i].world);
        if (out.submit != rows[i].submit)
            fail_msg("%s: %d nodes are asked for, not %d", rows[i].what, out.submit,
                     rows[i].submit);
        plan_clear(&out);
    }
}

static void test_requests_are_of_whole_units(void **state)
{
    static const struct {
        const char *sizes;
        int replica, expected[8];
    } table[] = {
        {"4:16:4", 4, {4, 4, 4, 0}}, {"2:14:2", 2, {2, 4, 4, 2, 0}}, {"3,6,12", 3, {3, 6, 0}}};

    (void)state;
    for (size_t row = 0; row < COUNT(table); row++) {
        struct scene s;

        scene_init(&s, table[row].sizes);
        s.in.replica = table[row].replica;
        s.in.max_pending = 100;
        scene_add_members(&s, 1, s.sizes.min, true);
        scene_request_all(&s, table[row].sizes, table[row].expected);
    }
}

/* The order follows the switches unit by unit: nodes of one unit stay neighbours. */
static void test_units_follow_the_switches(void **state)
{
    static const char *const switches[] = {"s1", "s1", "s2", "s1", "s3", "s3", "s2", "s1"};
    struct scene s;
    struct plan_output out;
    char world[16] = "";

    (void)state;
    scene_init(&s, "2:8:2");
    s.in.replica = 2;
    scene_add_word(&s, 1, "HH");
    for (int i = 0; i < 3; i++) {
        scene_add_extension(&s, (uint32_t)(10 + i), 2, PLAN_JOINED, 5);
        scene_add_word(&s, (uint32_t)(10 + i), "nn");
    }
    for (int i = 0; i < 8; i++)
        s.members[i].switches = switches[i];
    out = scene_decide(&s);
    for (int i = 0; i < out.size; i++)
        text_append(world, sizeof(world), "%c", 'a' + out.order[i] - 1);
    assert_int_equal(out.size, 8);
    for (int i = 0; i < 8; i += 2)
        assert_int_equal(out.order[i] + 1, out.order[i + 1]);
    assert_string_equal(out.why_size, "2 nodes; 6 more have joined and take part in the next "
                                      "generation");
    plan_clear(&out);
}

static void test_what_the_user_reads(void **state)
{
    static const struct row row = {"", "2:4:2", 2, {"HHuH"}, "", 0};
    struct scene s;
    struct plan_output out;

    (void)state;
    fill(&s, &row);
    out = scene_decide(&s);
    assert_true(out.change && out.urgent);
    assert_string_equal(out.why_size, "2 of 3 nodes: the largest allowed size (2:4:2, in units of "
                                      "2)");
    assert_int_equal(out.submit, 1);
    plan_clear(&out);

    scene_add_extension(&s, 10, 1, PLAN_PENDING, 5)->pool = "spot";
    out = scene_decide(&s);
    assert_string_equal(out.why_not_more, "extension job 10 (1 node to complete a unit, pool spot) "
                                          "is pending: just submitted");
    plan_clear(&out);

    scene_init(&s, "2:4:2");
    s.in.replica = 2;
    scene_add_word(&s, 1, "HH");
    scene_add_extension(&s, 10, 2, PLAN_PENDING, 5)->pool = "spot";
    out = scene_decide(&s);
    assert_string_equal(out.why_not_more, "extension job 10 (2 nodes, pool spot) is pending: just "
                                          "submitted");
    plan_clear(&out);
}

/* A unit that is to go back stays until another whole unit has its state. */
static void test_a_whole_unit_keeps_the_state(void **state)
{
    struct scene s;
    struct plan_output out;

    (void)state;
    scene_init(&s, "4:8:2");
    s.in.replica = 2;
    s.in.base_nodes = 4;
    s.in.base_lost = 3;
    scene_add_word(&s, 1, "nHnn"); /* one node of the base is left of the world */
    scene_add_extension(&s, 10, 2, PLAN_JOINED, 100)->unwanted = true;
    scene_add_word(&s, 10, "HH");
    out = scene_decide(&s);
    assert_int_equal(out.cancel_count, 0);
    assert_int_equal(out.retained_nodes, 2);
    plan_clear(&out);

    s.members[1].position = -1; /* … and now a whole unit of the base has it, too */
    s.members[1].has_state = false;
    s.in.base_lost = 0;
    scene_add_extension(&s, 11, 2, PLAN_JOINED, 100);
    scene_add_word(&s, 11, "HH");
    scene_add_extension(&s, 12, 2, PLAN_JOINED, 100);
    scene_add_word(&s, 12, "HH");
    out = scene_decide(&s);
    assert_int_equal(out.cancel_count, 1);
    assert_int_equal(out.cancel[0], 10);
    plan_clear(&out);
}

/* ---- random histories ------------------------------------------------------------------------ */

static uint64_t random_state;

static int pick(int n)
{
    return (int)random_below(&random_state, (uint32_t)n);
}

static bool is_cancelled(const struct plan_output *out, uint32_t job)
{
    for (int i = 0; i < out->cancel_count; i++)
        if (out->cancel[i] == job)
            return true;
    return false;
}

/* A unit of the world that has all of its members left is one of the next world, in its order, or
 * no part of it at all; and the world is made of whole units. */
static void check_units(const struct scene *s, const struct plan_output *out, unsigned seed)
{
    int unit = s->in.replica, places[SCENE_NODES_MAX];

    if (out->size % unit != 0)
        fail_msg("seed %u: a world of %d nodes, units of %d", seed, out->size, unit);
    for (int i = 0; i < s->in.member_count; i++) {
        places[i] = -1;
        for (int k = 0; k < out->size; k++)
            if (out->order[k] == s->members[i].id)
                places[i] = k;
    }
    for (int i = 0; i < s->in.member_count; i++) {
        const struct plan_member *m = &s->members[i];
        int first = m->position - m->position % unit, left = 0, chosen = 0, together = 0;

        for (int k = 0; k < s->in.member_count && m->position >= 0; k++) {
            const struct plan_member *other = &s->members[k];

            if (other->position < first || other->position >= first + unit)
                continue;
            left += other->usable && (other->base || !is_cancelled(out, other->job));
            chosen += places[k] >= 0;
            together += places[k] >= 0 && places[k] - other->position == places[i] - m->position &&
                        places[k] / unit == places[i] / unit;
        }
        if (left == unit && chosen > 0 && (chosen < unit || together < unit))
            fail_msg("seed %u: the unit of member %d is torn: %d of it are in the next world", seed,
                     m->id, chosen);
    }
}

/* Extensions come and go, nodes of the base are lost and come back. */
static void disturb(struct scene *s, int base)
{
    switch (pick(5)) {
    case 0:
        if (s->in.extension_count > 0)
            scene_remove_extension(s, pick(s->in.extension_count));
        break;
    case 1: {
        int i = pick(s->in.member_count);

        if (s->members[i].base && s->members[i].usable) {
            s->members[i].usable = false;
            s->in.base_lost++;
        }
        break;
    }
    case 2:
        for (int i = 0; i < base; i++)
            if (!s->members[i].usable) {
                s->members[i].usable = true;
                s->members[i].position = -1;
                s->members[i].has_state = false;
                s->in.base_lost--;
                break;
            }
        break;
    case 3:
        s->in.target = sizes_floor(&s->sizes, base + pick(s->sizes.max - base + 1));
        break;
    default:
        break;
    }
}

static void carry_out(struct scene *s, const struct plan_output *out, uint32_t *next_job)
{
    for (int i = 0; i < out->cancel_count; i++)
        scene_drop_extension(s, out->cancel[i]);
    if (out->submit > 0 && s->in.extension_count < SCENE_EXTENSIONS_MAX &&
        s->in.member_count + out->submit < SCENE_NODES_MAX && pick(2) == 0) {
        uint32_t job = (*next_job)++;

        scene_add_extension(s, job, out->submit, PLAN_JOINED, 0);
        scene_add_members(s, job, out->submit, false);
    }
    if (out->change || out->cancel_count > 0)
        scene_enter_world(s, out, out->size > 0);
}

static void test_random_histories(void **state)
{
    static const struct {
        const char *sizes;
        int replica;
    } table[] = {{"2:8:2", 2},  {"4:12:2", 2}, {"3:12:3", 3},
                 {"4:16:4", 4}, {"2,4,8", 2},  {"2:8", 1}};

    (void)state;
    for (unsigned seed = 1; seed <= RANDOM_ROUNDS(400); seed++) {
        struct scene s;
        uint32_t next_job = 100;
        int base;

        random_state = seed;
        scene_init(&s, table[seed % COUNT(table)].sizes);
        s.in.replica = table[seed % COUNT(table)].replica;
        base = s.sizes.min;
        scene_add_members(&s, 1, base, false);
        for (int tick = 0; tick < 600; tick++) {
            struct plan_output out;
            bool hostile = tick < 500;

            s.in.now += 1;
            if (hostile && pick(3) == 0)
                disturb(&s, base);
            for (int i = 0; i < base && !hostile; i++)
                s.members[i].usable = true;
            if (!hostile)
                s.in.base_lost = 0;
            out = scene_decide(&s);
            check_units(&s, &out, seed);
            carry_out(&s, &out, &next_job);
            if (tick == 599 && out.size != s.in.target)
                fail_msg("seed %u: %d nodes at the end, not %d", seed, out.size, s.in.target);
            plan_clear(&out);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worlds_of_whole_units),
        cmocka_unit_test(test_requests_are_of_whole_units),
        cmocka_unit_test(test_units_follow_the_switches),
        cmocka_unit_test(test_what_the_user_reads),
        cmocka_unit_test(test_a_whole_unit_keeps_the_state),
        cmocka_unit_test(test_random_histories),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("plan_units", tests, NULL, NULL);
}

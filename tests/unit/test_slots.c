/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/slots: where gangs fit, against all ways that there are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/slots.h"
#include "tests/unit/support.h"

#define NODES_MAX 5
#define TASKS_MAX 6

/* ---- table ----------------------------------------------------------------------------------- */

struct place_case {
    const char *what;
    struct slots_node nodes[NODES_MAX];
    int count;
    struct slots_gang gang;
    const char *want; /* the nodes of its tasks; NULL: it does not fit */
};

#define NODE(cpus, gpus, memory)                                                                   \
    {                                                                                              \
        {cpus, gpus, memory}, false, 0, 0                                                          \
    }
#define OF_GROUP(cpus, group)                                                                      \
    {                                                                                              \
        {cpus, 0, 0}, false, group, 0                                                              \
    }
#define AVOIDED(cpus, avoided)                                                                     \
    {                                                                                              \
        {cpus, 0, 0}, false, 0, avoided                                                            \
    }

static const struct place_case cases[] = {
    {"no node", {NODE(0, 0, 0)}, 0, {{1, 0, 0}, 1, 0, false}, NULL},
    {"the node with the least left",
     {NODE(8, 0, 0), NODE(4, 0, 0), NODE(6, 0, 0)},
     3,
     {{3, 0, 0}, 1, 0, false},
     "1"},
    {"of equal nodes the first", {NODE(4, 0, 0), NODE(4, 0, 0)}, 2, {{2, 0, 0}, 1, 0, false}, "0"},
    {"no GPU is wasted on what needs none",
     {NODE(2, 4, 0), NODE(64, 0, 0)},
     2,
     {{2, 0, 0}, 1, 0, false},
     "1"},
    {"memory counts", {NODE(8, 0, 10), NODE(8, 0, 20)}, 2, {{1, 0, 15}, 1, 0, false}, "1"},
    {"a gang stays together", {NODE(3, 0, 0), NODE(9, 0, 0)}, 2, {{2, 0, 0}, 4, 0, false}, "1111"},
    {"else on as few nodes as it can be",
     {NODE(4, 0, 0), NODE(2, 0, 0), NODE(4, 0, 0)},
     3,
     {{1, 0, 0}, 7, 0, false},
     "0000222"},
    {"the rest where the least is left",
     {NODE(8, 0, 0), NODE(8, 0, 0), NODE(2, 0, 0)},
     3,
     {{1, 0, 0}, 10, 0, false},
     "0000000022"},
    {"so many on each node", {NODE(8, 0, 0), NODE(8, 0, 0)}, 2, {{1, 0, 0}, 4, 2, false}, "0011"},
    {"the last node may have fewer",
     {NODE(8, 0, 0), NODE(8, 0, 0)},
     2,
     {{1, 0, 0}, 3, 2, false},
     "001"},
    {"per node, and only one node fits",
     {NODE(8, 0, 0), NODE(1, 0, 0)},
     2,
     {{1, 0, 0}, 4, 2, false},
     NULL},
    {"all or nothing", {NODE(2, 0, 0), NODE(2, 0, 0)}, 2, {{1, 0, 0}, 5, 0, false}, NULL},
    {"a gang is on nodes of one group",
     {OF_GROUP(3, 1), OF_GROUP(2, 2), OF_GROUP(2, 2)},
     3,
     {{1, 0, 0}, 4, 0, false},
     "1122"},
    {"no group has room for all",
     {OF_GROUP(2, 1), OF_GROUP(3, 2)},
     2,
     {{1, 0, 0}, 4, 0, false},
     NULL},
    {"the first group with room",
     {OF_GROUP(2, 1), OF_GROUP(2, 2), OF_GROUP(2, 1), OF_GROUP(2, 2)},
     4,
     {{1, 0, 0}, 4, 2, false},
     "0022"},
    {"a closed node", {{{8, 0, 0}, true, 0, 0}, NODE(2, 0, 0)}, 2, {{1, 0, 0}, 2, 0, false}, "11"},
    {"the least avoided first",
     {AVOIDED(2, 2), AVOIDED(9, 1), AVOIDED(8, 1)},
     3,
     {{1, 0, 0}, 1, 0, false},
     "2"},
    {"avoided, and nothing else has room",
     {AVOIDED(2, 0), AVOIDED(4, 3)},
     2,
     {{3, 0, 0}, 1, 0, false},
     "1"},
    {"tasks that take nothing", {NODE(0, 0, 0)}, 1, {{0, 0, 0}, 3, 0, false}, "000"},
};

static void gangs_are_placed_as_the_table_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct place_case *c = &cases[i];
        int where[16];
        char got[17] = "";
        bool placed = slots_place(c->nodes, c->count, &c->gang, where);

        for (int task = 0; placed && task < c->gang.tasks; task++)
            got[task] = (char)('0' + where[task]);
        if (placed != (c->want != NULL) || (placed && strcmp(got, c->want) != 0))
            fail_msg("%s: %s, not %s", c->what, placed ? got : "nowhere",
                     c->want != NULL ? c->want : "nowhere");
    }
}

/* ---- random ---------------------------------------------------------------------------------- */

/* The least number of nodes of the group for so many tasks, by trying all sets of nodes; 0: they do
 * not fit. */
static int fewest_nodes(const struct slots_node *nodes, int count, uint32_t group,
                        const struct slots_gang *gang)
{
    int fewest = 0;

    for (int set = 1; set < 1 << count; set++) {
        int room = 0, used = 0, left = gang->tasks;
        bool exact = true, open = true;

        for (int i = 0; i < count; i++) {
            int fit = slots_fit(&nodes[i].free, &gang->size);

            if (!(set >> i & 1))
                continue;
            open = open && !nodes[i].closed && nodes[i].group == group;
            used++;
            room += fit < gang->tasks ? fit : gang->tasks;
            exact = exact && fit >= (left < gang->per_node ? left : gang->per_node);
            left -= gang->per_node;
        }
        if (gang->per_node > 0) /* any order of the nodes may do: all but one need per_node */
            exact = (used - 1) * gang->per_node < gang->tasks &&
                    used * gang->per_node >= gang->tasks;
        if (gang->per_node > 0 && exact) {
            int full = 0, last = gang->tasks - (used - 1) * gang->per_node, enough = 0;

            for (int i = 0; i < count; i++) {
                int fit = slots_fit(&nodes[i].free, &gang->size);

                if (set >> i & 1) {
                    full += fit >= gang->per_node;
                    enough += fit >= last;
                }
            }
            exact = full >= used - 1 && enough == used;
        }
        if (open && (gang->per_node > 0 ? exact : room >= gang->tasks) &&
            (fewest == 0 || used < fewest))
            fewest = used;
    }
    return fewest;
}

static void random_gangs_are_on_as_few_nodes_as_can_be(void **state)
{
    unsigned seed = 4711;

    (void)state;
    for (int round = 0; round < 50000; round++) {
        struct slots_node nodes[NODES_MAX];
        struct slots_gang gang = {{rand_r(&seed) % 3, rand_r(&seed) % 2, rand_r(&seed) % 3},
                                  1 + rand_r(&seed) % TASKS_MAX,
                                  rand_r(&seed) % 4,
                                  false};
        int count = 1 + rand_r(&seed) % NODES_MAX, where[TASKS_MAX], again[TASKS_MAX], used = 0;
        int on[NODES_MAX] = {0}, want[2];
        bool placed;

        for (int i = 0; i < count; i++)
            nodes[i] = (struct slots_node){
                .free = {rand_r(&seed) % 9, rand_r(&seed) % 4, rand_r(&seed) % 9},
                .closed = rand_r(&seed) % 5 == 0,
                .group = (uint32_t)rand_r(&seed) % 3 / 2,
                .avoided = rand_r(&seed) % 3};
        for (uint32_t group = 0; group < 2; group++)
            want[group] = fewest_nodes(nodes, count, group, &gang);
        placed = slots_place(nodes, count, &gang, where);
        assert_int_equal(placed, want[0] > 0 || want[1] > 0);
        if (!placed)
            continue;
        for (int task = 0; task < gang.tasks; task++) {
            assert_in_range(where[task], 0, count - 1);
            used += on[where[task]]++ == 0;
            assert_true(!nodes[where[task]].closed &&
                        nodes[where[task]].group == nodes[where[0]].group);
            slots_take(&nodes[where[task]].free, &gang.size);
        }
        assert_int_equal(used, want[nodes[where[0]].group]);
        for (int i = 0; i < count; i++) {
            assert_true(nodes[i].free.cpus >= 0 && nodes[i].free.gpus >= 0 &&
                        nodes[i].free.memory >= 0);
            assert_true(gang.per_node == 0 || on[i] <= gang.per_node);
        }
        for (int task = 0; task < gang.tasks; task++)
            slots_give(&nodes[where[task]].free, &gang.size);
        assert_true(slots_place(nodes, count, &gang, again));
        assert_memory_equal(where, again, (size_t)gang.tasks * sizeof(*where));
    }
}

/* ---- words ----------------------------------------------------------------------------------- */

static void what_never_fits_is_named(void **state)
{
    struct slots_size node = {8, 2, 1000};
    char text[40];

    (void)state;
    assert_null(slots_too_large(&node, &(struct slots_gang){{8, 2, 1000}, 9, 0, false}, text, 40));
    assert_string_equal(
        slots_too_large(&node, &(struct slots_gang){{12, 0, 0}, 1, 0, false}, text, sizeof(text)),
        "12 CPUs");
    assert_string_equal(
        slots_too_large(&node, &(struct slots_gang){{1, 1, 0}, 9, 3, false}, text, sizeof(text)),
        "3 GPUs");
    assert_string_equal(
        slots_too_large(&node, &(struct slots_gang){{1, 0, 1001}, 1, 0, false}, text, sizeof(text)),
        "1001 MiB of memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gangs_are_placed_as_the_table_says),
        cmocka_unit_test(random_gangs_are_on_as_few_nodes_as_can_be),
        cmocka_unit_test(what_never_fits_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

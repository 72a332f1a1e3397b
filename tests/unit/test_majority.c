/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/majority, and how it spreads the processes of a learner over nodes. */
#include "lib/majority.h"

#include "lib/slots.h"
#include "tests/unit/support.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define NODES        20

static void test_numbers(void **state)
{
    static const struct {
        int numbers[NODES], count, expected;
    } cases[] = {
        {{0}, 0, 0},
        {{0}, 1, 0},
        {{4}, 1, 4},
        {{1, 2, 3, 4, 5, 2, 2, 4, 6, 2, 3, 3, 1}, 13, 2},
        {{1, 2, 3, 4, 5, 2, 2, 4, 6, 2, 3, 3, 1, 3}, 14, 3}, /* of several the largest */
        {{1, 3, 3, 4, 5, 2, 2, 4, 6, 2, 3, 2, 1, 3}, 14, 3},
        {{0, 8, 0, 4, 0}, 5, 8}, /* most have none: the largest */
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int numbers[NODES];

        memcpy(numbers, cases[i].numbers, sizeof(numbers));
        assert_int_equal(majority(numbers, cases[i].count), cases[i].expected);
    }
}

/* So many nodes of so many GPUs, twice. A gang of `gpus` processes has so many on its nodes. */
static void test_spread(void **state)
{
    static const struct {
        struct {
            int nodes, gpus;
        } of[3];
        int gpus, expected[3];
    } cases[] = {
        {{{4, 8}, {3, 10}, {3, 6}}, 12, {8, 4}},
        {{{4, 8}, {3, 10}, {3, 6}}, 16, {8, 8}},
        {{{4, 8}, {4, 10}, {3, 6}}, 16, {10, 6}},
        {{{4, 8}, {4, 10}, {3, 6}}, 8, {8}},
        {{{4, 8}}, 2, {2}},
        {{{4, 8}}, 10, {8, 2}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct slots_node nodes[NODES] = {0};
        int numbers[NODES], count = 0, where[NODES], on[3] = {0}, used = 0, most;

        for (int kind = 0; kind < 3; kind++)
            for (int k = 0; k < cases[i].of[kind].nodes; k++) {
                numbers[count] = cases[i].of[kind].gpus;
                nodes[count++].free = (struct slots_size){64, cases[i].of[kind].gpus, 0};
            }
        most = majority(numbers, count);
        assert_true(slots_place(
            nodes, count,
            &(struct slots_gang){
                {1, 1, 0}, cases[i].gpus, most < cases[i].gpus ? most : cases[i].gpus, true},
            where));
        for (int task = 0; task < cases[i].gpus; task++) {
            used += task > 0 && where[task] != where[task - 1];
            on[used]++;
        }
        assert_memory_equal(on, cases[i].expected, sizeof(on));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_spread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

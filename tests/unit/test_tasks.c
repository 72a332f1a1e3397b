/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/tasks: each node's own number of tasks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/tasks.h"

static void each_node_has_its_own(void **state)
{
    static const struct {
        const char *text;
        int node, tasks, most;
    } table[] = {
        {NULL, 0, 0, 0},
        {"", 0, 0, 0},
        {"4", 0, 4, 4},
        {"4", 1, 0, 4},
        {"3,1", 0, 3, 3},
        {"3,1", 1, 1, 3},
        {"2(x3),1", 0, 2, 2},
        {"2(x3),1", 2, 2, 2},
        {"2(x3),1", 3, 1, 2},
        {"2(x3),1", 4, 0, 2},
        {"1,4(x2)", 0, 1, 4},
        {"1,4(x2)", 2, 4, 4},
        {"x", 0, 0, 0},
        {"2(x", 0, 0, 0},
        {"2(x0)", 0, 0, 0},
        {"2;3", 0, 0, 0},
        {"2(x2147483647),3", 7, 2, 3},
        {"99999999999", 0, 0, 0},
        {"-1", 0, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (tasks_of_node(table[i].text, table[i].node) != table[i].tasks)
            fail_msg("row %zu: %d tasks", i, tasks_of_node(table[i].text, table[i].node));
        assert_int_equal(tasks_most(table[i].text), table[i].most);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_node_has_its_own)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

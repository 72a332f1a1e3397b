/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How many nodes hold what a job guarantees (lib/roles_base.h). */
#include "lib/roles_base.h"
#include "lib/text.h"
#include "tests/unit/roles_fixture.h"
#include "tests/unit/support.h"

#define LEADER "roles:\n  a: {leads: yes, run: [a]}\n"

static void test_need(void **state)
{
    struct roles *roles = create(
        LEADER "  b: {run: [b], replicas: 3:9, tasks: 2, cpus: 2, gpus: 1, memory: 1G}\n"
               "  w: {run: [w], kind: world, nodes: 2:4, cpus: 4}\n");
    struct roles_need need;

    roles_need(roles, &need);
    assert_int_equal(need.tasks, 7);
    assert_int_equal(need.cpus, 1 + 12 + 8);
    assert_int_equal(need.gpus, 6);
    assert_int_equal(need.memory, 6144);
    assert_int_equal(need.world, 2);
    roles_destroy(roles);
}

static void test_base(void **state)
{
    static const struct {
        const char *roles;
        int nodes;
        struct slots_size taken;
        const char *message;
    } cases[] = {
        {"", 1, {1, 0, 0}, ""},
        {"  b: {run: [b], replicas: 7:20}\n", 1, {8, 0, 0}, ""},
        {"  b: {run: [b], replicas: 8:20}\n", 2, {8, 0, 0}, ""},
        {"  b: {run: [b], replicas: 0:20, cpus: 8}\n", 1, {1, 0, 0}, ""},
        {"  b: {run: [b], cpus: 8, memory: 2G}\n", 2, {8, 0, 2048}, ""},
        {"  b: {run: [b], tasks: 4, per-node: 1, gpus: 1}\n", 4, {2, 1, 0}, ""},
        {"  b: {run: [b], replicas: 5:5, cpus: 8, base: p}\n", 1, {1, 0, 0}, ""},
        {"  b: {run: [b], tasks: 100, cpus: 4, replicas: 3}\n", 151, {8, 0, 0}, ""},
        {"  w: {run: [w], kind: world, nodes: 3:4}\n", 3, {2, 0, 0}, ""},
        {"  w: {run: [w], kind: world, nodes: 3:4, cpus: 8}\n", 4, {8, 0, 0}, ""},
        {"  b: {run: [b], cpus: 9}\n", -1, {0}, "b needs 9 CPUs on a node, those of p have 8"},
        {"  w: {run: [w], kind: world, gpus: 4}\n",
         -1,
         {0},
         "w needs 4 GPUs on a node, those of p have 2"},
        {"  b: {run: [b], tasks: 1024, cpus: 8, replicas: 65}\n",
         -1,
         {0},
         "what is guaranteed needs more than 4096 nodes"},
    };
    const struct slots_size node = {8, 2, 16000};

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct slots_size taken = {0};
        struct error err = {""};
        char text[512] = LEADER;
        struct roles *roles;

        text_append(text, sizeof(text), "%s", cases[i].roles);
        roles = create(text);
        assert_int_equal(roles_base_nodes(roles, &node, "p", &taken, &err), cases[i].nodes);
        assert_string_equal(err.text, cases[i].message);
        assert_int_equal(taken.cpus, cases[i].taken.cpus);
        assert_int_equal(taken.gpus, cases[i].taken.gpus);
        assert_int_equal(taken.memory, cases[i].taken.memory);
        roles_destroy(roles);
    }
}

static void test_fit(void **state)
{
    static const struct {
        const char *role;
        int fits;
    } cases[] = {
        {"  b: {run: [b], replicas: 0:5}\n", 5},
        {"  b: {run: [b], replicas: 0:50}\n", 12},
        {"  b: {run: [b], replicas: 0:50, cpus: 3}\n", 3},
        {"  b: {run: [b], replicas: 0:50, cpus: 3, tasks: 2}\n", 1},
        {"  b: {run: [b], replicas: 0:50, cpus: 1, tasks: 2, per-node: 1}\n", 4},
        {"  b: {run: [b], replicas: 0:50, cpus: 9}\n", 0},
        {"  b: {run: [b], kind: world, nodes: 1:50}\n", 2},
    };
    const struct slots_node nodes[] = {{.free = {8, 0, 1000}}, {.free = {4, 0, 1000}}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[512] = LEADER;
        struct roles *roles;

        text_append(text, sizeof(text), "%s", cases[i].role);
        roles = create(text);
        assert_int_equal(roles_fit(&roles->list[1], nodes, COUNT(nodes)), cases[i].fits);
        assert_int_equal(roles_fit(&roles->list[1], NULL, 0), 0);
        roles_destroy(roles);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_need),
        cmocka_unit_test(test_base),
        cmocka_unit_test(test_fit),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("roles_base", tests, NULL, NULL);
}

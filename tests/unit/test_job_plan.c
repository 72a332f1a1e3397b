/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What selastic plan prints (cmd/job_plan.h). */
#include "cmd/job_plan.h"
#include "tests/unit/roles_fixture.h"
#include "tests/unit/support.h"

static const char file[] =
    "roles:\n"
    "  coordinator: {leads: yes, run: [python3, coordinator.py], memory: 2G}\n"
    "  learner: {kind: world, nodes: 2:4, run: [python3, learner.py], gpus: 1}\n"
    "  collector:\n"
    "    replicas: 2:64\n"
    "    run: [python3, collector.py]\n"
    "    cpus: 2\n"
    "    memory: 3G\n"
    "    ready: {file: up}\n"
    "    after: [coordinator, learner]\n";

#define TABLE                                                                                      \
    "ROLE         KIND             SIZE  TASKS  CPUS  GPUS  MEMORY  READY  AFTER                "  \
    "RUN\n"                                                                                        \
    "coordinator  replicas, leads   1:1      1     1     0   2048M  -      -                    "  \
    "python3 coordinator.py\n"                                                                     \
    "learner      world             2:4      1   all     1      0M  -      -                    "  \
    "python3 learner.py\n"                                                                         \
    "collector    replicas         2:64      1     2     0   3072M  file   coordinator learner  "  \
    "python3 collector.py\n"                                                                       \
    "\n"                                                                                           \
    "guaranteed: 3 tasks and a world on 2 nodes, with 5 CPUs, 2 GPUs and 8192 MiB of memory\n"

static void assert_plan(const char *text, int gpus, int count, int rc, const char *expected)
{
    const struct slots_node node = {.free = {8, gpus, 16000}};
    const struct slots_node nodes[] = {node, node, node};
    const struct render_options options = {0};
    struct roles *roles = create(text);
    json_object *plan = job_plan("my file.yaml", roles);
    char *rendered;

    if (count > 0)
        assert_int_equal(job_plan_add(plan, roles, "cpu", nodes, count), rc);
    rendered = render_plan(plan, &options);
    assert_string_equal(rendered, expected);
    free(rendered);
    json_object_put(plan);
    roles_destroy(roles);
}

static void test_file(void **state)
{
    assert_plan(file, 0, 0, 0, TABLE);
}

static void test_partition(void **state)
{
    assert_plan(file, 1, 3, 0,
                TABLE "\n"
                      "each role alone on the 3 nodes of cpu, when they are empty:\n"
                      "ROLE         FITS  WHY NOT MORE\n"
                      "coordinator     1  -\n"
                      "learner         3  4 wanted, and cpu has no room for more\n"
                      "collector      12  64 wanted, and cpu has no room for more\n"
                      "\n"
                      "base: 2 of its nodes\n"
                      "sbatch --elastic-roles='my file.yaml' --partition=cpu --nodes=2 "
                      "--ntasks-per-node=1 --exclusive --gpus-per-node=1\n");
}

static void test_too_large(void **state)
{
    assert_plan(file, 0, 3, -1,
                TABLE "\n"
                      "each role alone on the 3 nodes of cpu, when they are empty:\n"
                      "ROLE         FITS  WHY NOT MORE\n"
                      "coordinator     1  -\n"
                      "learner         0  learner needs 1 GPU on a node, those of cpu have 0\n"
                      "collector      12  64 wanted, and cpu has no room for more\n"
                      "\n"
                      "no base\n"
                      "learner needs 1 GPU on a node, those of cpu have 0\n");
    assert_plan(file, 1, 1, -1,
                TABLE "\n"
                      "each role alone on the 1 nodes of cpu, when they are empty:\n"
                      "ROLE         FITS  WHY NOT MORE\n"
                      "coordinator     1  -\n"
                      "learner         1  4 wanted, and cpu has no room for more\n"
                      "collector       4  64 wanted, and cpu has no room for more\n"
                      "\n"
                      "no base\n"
                      "what is guaranteed needs 2 nodes, and cpu has 1\n");
}

static void test_gpus(void **state)
{
    static const struct {
        const char *gres;
        int gpus;
    } cases[] = {
        {NULL, 0},          {"", 0},
        {"gpu", 1},         {"gpu:4", 4},
        {"gpu:tesla:4", 4}, {"gpu:tesla:4(S:0-1),gpu:a:2", 6},
        {"bandwidth:7", 0}, {"gpu:2(S:0,2),craynetwork:4", 2},
        {"gpus:4", 0},      {"craynetwork:1,gpu:8(S:0)", 8},
        {"gpu:x:3(S:0", 3},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(job_plan_gpus(cases[i].gres), cases[i].gpus);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_partition),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_gpus),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("job_plan", tests, NULL, NULL);
}

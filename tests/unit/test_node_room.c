/* SPDX-License-Identifier: GPL-2.0-or-later */
/* agent/node_room: what Slurm's environment says of a node, and its GPUs, given to tasks. */
#include "agent/node_room.h"
#include "lib/text.h"
#include "tests/unit/support.h"

static const struct node_machine machine = {.cpus = 16, .memory = 64000};
static const struct node_machine amd = {.cpus = 16, .memory = 64000, .amd = true};

static void test_size(void **state)
{
    static const struct {
        char *env[4];
        struct slots_size size;
    } cases[] = {
        {{NULL}, {16, 0, 64000}},
        {{"SLURM_CPUS_ON_NODE=4", "SLURM_MEM_PER_NODE=8000"}, {4, 0, 8000}},
        {{"SLURM_CPUS_ON_NODE=4", "SLURM_MEM_PER_CPU=1000"}, {4, 0, 4000}},
        {{"SLURM_MEM_PER_CPU=1000"}, {16, 0, 16000}},
        {{"SLURM_MEM_PER_NODE=0"}, {16, 0, 64000}},
        {{"SLURM_CPUS_ON_NODE=x", "SLURM_MEM_PER_NODE=", "SLURM_GPUS_ON_NODE=-1"}, {16, 0, 64000}},
        {{"SLURM_GPUS_ON_NODE=3"}, {16, 3, 64000}},
        {{"CUDA_VISIBLE_DEVICES=2,5", "SLURM_GPUS_ON_NODE=4"}, {16, 2, 64000}},
        {{"CUDA_VISIBLE_DEVICES=", "ROCR_VISIBLE_DEVICES=0"}, {16, 1, 64000}},
        {{"CUDA_VISIBLE_DEVICES=NoDevFiles"}, {16, 0, 64000}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct node_room *room = node_room_create((char *const *)cases[i].env, &machine);
        struct slots_size size;

        assert_non_null(room);
        node_room_size(room, &size);
        assert_int_equal(size.cpus, cases[i].size.cpus);
        assert_int_equal(size.gpus, cases[i].size.gpus);
        assert_int_equal(size.memory, cases[i].size.memory);
        node_room_destroy(room);
    }
}

/* Both variables are set where Slurm does not know whose GPUs they are. A program of AMD's would
 * choose by ROCR's list, and then in what is left by CUDA's. */
static void test_kind(void **state)
{
    static const struct {
        char *env[3];
        const struct node_machine *machine;
        bool cuda, rocr;
    } cases[] = {
        {{NULL}, &machine, false, false},
        {{NULL}, &amd, false, false},
        {{"SLURM_GPUS_ON_NODE=1"}, &machine, true, false},
        {{"SLURM_GPUS_ON_NODE=1"}, &amd, false, true},
        {{"CUDA_VISIBLE_DEVICES=0"}, &machine, true, false},
        {{"CUDA_VISIBLE_DEVICES=0"}, &amd, true, false},
        {{"ROCR_VISIBLE_DEVICES=0"}, &machine, false, true},
        {{"CUDA_VISIBLE_DEVICES=0", "ROCR_VISIBLE_DEVICES=0"}, &machine, true, false},
        {{"CUDA_VISIBLE_DEVICES=0", "ROCR_VISIBLE_DEVICES=0"}, &amd, false, true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct node_room *room = node_room_create((char *const *)cases[i].env, cases[i].machine);

        assert_int_equal(node_room_cuda(room), cases[i].cuda);
        assert_int_equal(node_room_rocr(room), cases[i].rocr);
        node_room_destroy(room);
    }
}

static char *take(struct node_room *room, int gpus, const char *expected)
{
    struct error err = {""};
    char *ids = node_room_take(room, gpus, &err);

    assert_string_equal(err.text, "");
    assert_string_equal(ids, expected);
    return ids;
}

static void test_gpus(void **state)
{
    char *const env[] = {"CUDA_VISIBLE_DEVICES=1,MIG-a,GPU-b,11", NULL};
    struct node_room *room = node_room_create(env, &machine);
    struct error err = {""};
    char *first, *second, *none, *third;

    (void)state;
    first = take(room, 2, "1,MIG-a");
    second = take(room, 1, "GPU-b");
    none = take(room, 0, "");
    assert_null(node_room_take(room, 2, &err));
    assert_string_equal(err.text, "it needs 2 GPUs, and 1 of the 4 of this node are free");
    node_room_give(room, first);
    third = take(room, 3, "1,MIG-a,11"); /* 1 is not 11 */
    node_room_give(room, none);
    node_room_give(room, NULL);
    assert_null(node_room_take(room, 1, &err));
    node_room_give(room, second);
    node_room_give(room, third);
    free(first);
    first = take(room, 4, "1,MIG-a,GPU-b,11");
    free(first);
    free(second);
    free(third);
    free(none);
    node_room_destroy(room);
}

static void test_ids(void **state)
{
    char *const numbered[] = {"SLURM_GPUS_ON_NODE=12", NULL}, *const none[] = {NULL};
    char **ids = node_gpus(numbered);

    (void)state;
    assert_int_equal(strings_count(ids), 12);
    assert_string_equal(ids[11], "11");
    strings_free(ids);
    ids = node_gpus(none);
    assert_non_null(ids);
    assert_null(ids[0]);
    strings_free(ids);
}

static void test_the_rest(void **state)
{
    char *const env[] = {"PATH=/bin",        "CUDA_VISIBLE_DEVICES=0", "SLURM_JOB_GPUS=0",
                         "SLURM_JOB_GPUSX=", "ZE_AFFINITY_MASK=0",     NULL};
    char **rest = node_env_without_gpus(env);

    (void)state;
    assert_string_equal(rest[0], "PATH=/bin");
    assert_string_equal(rest[1], "SLURM_JOB_GPUSX=");
    assert_null(rest[2]);
    strings_free(rest);
}

static void test_this_machine(void **state)
{
    struct node_machine own;

    (void)state;
    node_machine_read(&own);
    assert_true(own.cpus > 0);
    assert_true(own.memory > 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_size),     cmocka_unit_test(test_kind),
        cmocka_unit_test(test_gpus),     cmocka_unit_test(test_ids),
        cmocka_unit_test(test_the_rest), cmocka_unit_test(test_this_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

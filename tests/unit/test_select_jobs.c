/* SPDX-License-Identifier: GPL-2.0-or-later */
/* plugins/select/jobs.c with a slurmctld that has very many elastic jobs: how large they are, which
 * of their nodes count, and what it costs to find out when all are read. */
#include "plugins/select/compat.h"

#include "plugins/select/jobs.h"

#include "tests/unit/support.h"

#define NODES 200
#define BASES 40
#define JOBS  2000
#define LIMIT 100
#define CORES 4 /* of a node */

list_t *job_list;

static job_record_t jobs[JOBS];
static char *base_env[] = {(char[]){"SPANK_ELASTIC_SIZES=1:100"}};
static char comments[JOBS][64];
static int unions; /* calls of bit_or() */

job_record_t *find_job_record(uint32_t job_id)
{
    return job_id >= 1 && job_id <= JOBS ? &jobs[job_id - 1] : NULL;
}

/* In the place of slurmctld's, for nodes that are all alike. */
int count_job_resources_node(job_resources_t *resources, uint32_t number)
{
    int count = 0;

    for (uint32_t i = number * CORES; i < (number + 1) * CORES; i++)
        count += bit_test(resources->core_bitmap, i);
    return count;
}

/* In the place of bit_or() (tests/unit/local.mk). */
void __real_slurm_bit_or(bitstr_t *to, bitstr_t *other);
void __wrap_slurm_bit_or(bitstr_t *to, bitstr_t *other);

void __wrap_slurm_bit_or(bitstr_t *to, bitstr_t *other)
{
    unions++;
    __real_slurm_bit_or(to, other);
}

/* Job 1 to BASES are bases of one node each, the others extensions of two nodes, some of which are
 * those of another extension. */
static int set_up(void **state)
{
    (void)state;
    job_list = list_create(NULL);
    for (int i = 0; i < JOBS; i++) {
        job_record_t *job = &jobs[i];

        *job = (job_record_t){.job_id = (uint32_t)i + 1,
                              .job_state = JOB_RUNNING,
                              .user_id = 7,
                              .node_bitmap = bit_alloc(NODES)};
        bit_set(job->node_bitmap, i % NODES);
        if (i < BASES) {
            job->spank_job_env = base_env;
            job->spank_job_env_size = 1;
            job->node_cnt = 1;
        } else {
            bit_set(job->node_bitmap, (i + 1) % NODES);
            snprintf(comments[i], sizeof(comments[i]), "elastic-extension-of=%d.0", i % BASES + 1);
            job->comment = comments[i];
        }
        list_append(job_list, job);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    jobs_forget();
    for (int i = 0; i < JOBS; i++)
        bit_free(jobs[i].node_bitmap);
    list_destroy(job_list);
    return 0;
}

static int growth_of(const job_record_t *base)
{
    const struct placement_map map = {.node_count = NODES};
    bool nodes[NODES] = {false};

    return jobs_world(&map, base, nodes);
}

static void test_all_are_read_as_one_by_one(void **state)
{
    int growth[BASES];

    (void)state;
    jobs_forget();
    for (int i = JOBS - 1; i >= 0; i--)
        jobs_add(&jobs[i]);
    for (int i = 0; i < BASES; i++) {
        growth[i] = growth_of(&jobs[i]);
        assert_in_range(growth[i], 1, LIMIT - 2); /* it has grown, and may grow */
    }
    jobs_read();
    for (int i = 0; i < BASES; i++)
        assert_int_equal(growth_of(&jobs[i]), growth[i]);
    jobs_remove(&jobs[BASES]);
    jobs_add(&jobs[BASES]);
    assert_int_equal(growth_of(&jobs[0]), growth[0]);
}

static void test_reading_takes_one_union_of_nodes_for_each(void **state)
{
    (void)state;
    unions = 0;
    jobs_read();
    assert_int_equal(unions, JOBS - BASES);
}

/* What jobs of the tests have, on two nodes at most. */
static uint64_t memory[JOBS][2], counts[JOBS][2];
static gres_job_state_t gpus[JOBS];
static gres_state_t of_gpus[JOBS];

#define GPU 7 /* Slurm's number of the name */

static int number_of(const job_record_t *job)
{
    return (int)(job - jobs);
}

static void set_cores(job_record_t *job, int first, int second)
{
    int nodes = bit_set_count(job->node_bitmap);

    job->job_resrcs = calloc(1, sizeof(*job->job_resrcs));
    assert_non_null(job->job_resrcs);
    job->job_resrcs->nhosts = (uint32_t)nodes;
    job->job_resrcs->node_bitmap = job->node_bitmap;
    job->job_resrcs->core_bitmap = bit_alloc(nodes * CORES);
    job->job_resrcs->memory_allocated = memory[number_of(job)];
    for (int i = 0; i < first; i++)
        bit_set(job->job_resrcs->core_bitmap, i);
    for (int i = 0; i < second; i++)
        bit_set(job->job_resrcs->core_bitmap, CORES + i);
}

static void set_memory(const job_record_t *job, uint64_t first, uint64_t second)
{
    memory[number_of(job)][0] = first;
    memory[number_of(job)][1] = second;
}

/* type: NULL: none has been asked for. */
static void set_gpus(job_record_t *job, const char *type, uint64_t first, uint64_t second)
{
    int number = number_of(job);

    if (job->gres_list_alloc != NULL)
        list_destroy(job->gres_list_alloc);
    job->gres_list_alloc = list_create(NULL);
    counts[number][0] = first;
    counts[number][1] = second;
    gpus[number] = (gres_job_state_t){.type_id = type != NULL ? (uint32_t)type[0] : 0,
                                      .type_name = (char *)type,
                                      .node_cnt = (uint32_t)bit_set_count(job->node_bitmap),
                                      .gres_cnt_node_alloc = counts[number]};
    of_gpus[number] = (gres_state_t){.plugin_id = GPU, .gres_data = &gpus[number]};
    list_append(job->gres_list_alloc, &of_gpus[number]);
}

static void unset(job_record_t *job)
{
    bit_free(job->job_resrcs->core_bitmap);
    free(job->job_resrcs);
    job->job_resrcs = NULL;
    set_memory(job, 0, 0);
    if (job->gres_list_alloc != NULL)
        list_destroy(job->gres_list_alloc);
    job->gres_list_alloc = NULL;
}

/* Of extensions that may leave: nodes with as many cores as the base has on one. */
static void test_which_nodes_count(void **state)
{
    job_record_t *base = &jobs[0], *half = &jobs[BASES], *large = &jobs[2 * BASES],
                 *same = &jobs[BASES + NODES];
    job_record_t *all[] = {base, half, large, same, &jobs[1]};
    int extended[5];

    (void)state;
    assert_true(bit_equal(half->node_bitmap, same->node_bitmap));
    jobs_read();
    assert_int_equal(jobs_extended(all, 5, extended), 0);
    assert_int_equal(extended[0], 0); /* how many cores they have is not known */
    set_cores(base, 4, 0);
    set_cores(half, 4, 1);
    set_cores(large, 4, 4);
    set_cores(same, 4, 3);
    assert_int_equal(jobs_extended(all, 1, extended), 0);
    assert_int_equal(extended[0], 0);
    assert_int_equal(jobs_extended(all, 2, extended), 0);
    assert_int_equal(extended[0], 1);
    assert_int_equal(extended[1], 0);
    assert_int_equal(jobs_extended(all, 5, extended), 0);
    assert_int_equal(extended[0], 3);
    assert_int_equal(extended[4], 0); /* the base of others */
    for (int i = 0; i < 4; i++)
        unset(all[i]);
}

static int extended_by(job_record_t *base, job_record_t *extension)
{
    job_record_t *both[] = {base, extension};
    int extended[2];

    assert_int_equal(jobs_extended(both, 2, extended), 0);
    return extended[0];
}

/* Who preempts may need what the base has: an extension without it is no reason to spare the
 * base. */
static void test_each_resource_of_the_base_counts(void **state)
{
    job_record_t *base = &jobs[0], *extension = &jobs[2 * BASES];

    (void)state;
    jobs_read();
    slurm_conf.select_type_param = COUNTS_MEMORY;
    set_cores(base, 4, 0);
    set_cores(extension, 4, 4);
    set_memory(extension, 4000, 1);
    assert_int_equal(extended_by(base, extension), 2); /* the base has no memory of its own */
    set_memory(base, 4000, 0);
    assert_int_equal(extended_by(base, extension), 1);
    slurm_conf.select_type_param = 0;
    assert_int_equal(extended_by(base, extension), 2); /* memory is what nobody allocates */
    set_gpus(base, NULL, 4, 0);
    assert_int_equal(extended_by(base, extension), 0);
    set_gpus(extension, NULL, 3, 4);
    assert_int_equal(extended_by(base, extension), 1);
    set_gpus(extension, "large", 4, 4);
    assert_int_equal(extended_by(base, extension), 2);
    set_gpus(base, "large", 4, 0);
    assert_int_equal(extended_by(base, extension), 2);
    set_gpus(extension, "small", 4, 4);
    assert_int_equal(extended_by(base, extension), 0);
    set_gpus(extension, NULL, 4, 4);
    assert_int_equal(extended_by(base, extension), 2);
    set_gpus(base, "large", NO_CONSUME_VAL64, 0);
    set_gpus(extension, "large", 0, 0);
    assert_int_equal(extended_by(base, extension), 2);
    unset(base);
    unset(extension);
}

/* Each test of a job that may preempt asks for the kind of all candidates. */
static void test_the_kind_of_a_running_job_is_kept(void **state)
{
    (void)state;
    jobs_read();
    assert_int_equal(jobs_running_kind(&jobs[0]), PLACEMENT_BASE);
    assert_int_equal(jobs_running_kind(&jobs[BASES]), PLACEMENT_EXTENSION);
    /* What a rigid job would cost to read is of no account. */
    jobs_remove(&jobs[1]);
    assert_int_equal(jobs_running_kind(&jobs[1]), PLACEMENT_RIGID);
    jobs[0].spank_job_env_size = 0;
    assert_int_equal(jobs_running_kind(&jobs[0]), PLACEMENT_BASE);
    jobs[0].spank_job_env_size = 1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_are_read_as_one_by_one),
        cmocka_unit_test(test_which_nodes_count),
        cmocka_unit_test(test_the_kind_of_a_running_job_is_kept),
        cmocka_unit_test(test_each_resource_of_the_base_counts),
        cmocka_unit_test(test_reading_takes_one_union_of_nodes_for_each),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* plugins/select/jobs.c with a slurmctld that has very many elastic jobs: how large they are, and
 * what it costs to find out when all are read. */
#include "plugins/select/compat.h"

#include "plugins/select/jobs.h"

#include "tests/unit/support.h"

#define NODES 200
#define BASES 40
#define JOBS  2000

list_t *job_list;

static job_record_t jobs[JOBS];
static char *base_env[] = {(char[]){"SPANK_ELASTIC_SIZES=1:100"}};
static char comments[JOBS][64];
static int unions; /* calls of bit_or() */

job_record_t *find_job_record(uint32_t job_id)
{
    return job_id >= 1 && job_id <= JOBS ? &jobs[job_id - 1] : NULL;
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

static void test_all_are_read_as_one_by_one(void **state)
{
    int sizes[BASES];

    (void)state;
    jobs_forget();
    for (int i = JOBS - 1; i >= 0; i--)
        jobs_add(&jobs[i]);
    for (int i = 0; i < BASES; i++) {
        sizes[i] = jobs_size(&jobs[i]);
        assert_true(sizes[i] > 1);
    }
    jobs_read();
    for (int i = 0; i < BASES; i++)
        assert_int_equal(jobs_size(&jobs[i]), sizes[i]);
    jobs_remove(&jobs[BASES]);
    jobs_add(&jobs[BASES]);
    assert_int_equal(jobs_size(&jobs[0]), sizes[0]);
}

static void test_reading_takes_one_union_of_nodes_for_each(void **state)
{
    (void)state;
    unions = 0;
    jobs_read();
    assert_int_equal(unions, JOBS - BASES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_are_read_as_one_by_one),
        cmocka_unit_test(test_reading_takes_one_union_of_nodes_for_each),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}

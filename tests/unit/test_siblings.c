/* SPDX-License-Identifier: GPL-2.0-or-later */
/* plugins/job_submit/base_job.c: which extensions of a base count, and of what slurmctld looks at
 * for that. */
#include "plugins/slurmctld.h"

#include "plugins/job_submit/base_job.h"

#include "tests/unit/support.h"

#define NODES 8
#define BASE  12

struct xlist *job_list;

static job_record_t jobs[8];
static int job_count;
static struct admitted admitted;

/* No user has job_submit look at these. */
static char **trap = (char **)8;

job_record_t *find_job_record(uint32_t job_id)
{
    for (int i = 0; i < job_count; i++)
        if (jobs[i].job_id == job_id)
            return &jobs[i];
    return NULL;
}

/* In the place of slurmctld's: the numbers of the nodes. */
char *bitmap2node_name(bitstr_t *set)
{
    char text[64];

    return xstrdup(bit_fmt(text, sizeof(text), set));
}

static int set_up(void **state)
{
    (void)state;
    job_list = list_create(NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < job_count; i++)
        bit_free(jobs[i].node_bitmap);
    list_destroy(job_list);
    job_count = 0;
    return 0;
}

static job_record_t *add_job(uint32_t id, int first, int last)
{
    job_record_t *job = &jobs[job_count++];

    *job = (job_record_t){.job_id = id,
                          .user_id = 7,
                          .job_state = JOB_RUNNING,
                          .end_time = time(NULL) + 3600,
                          .start_time = time(NULL) - 3600,
                          .node_cnt = (uint32_t)(last - first + 1),
                          .node_bitmap = bit_alloc(NODES)};
    bit_nset(job->node_bitmap, first, last);
    list_append(job_list, job);
    return job;
}

/* As job_submit/elastic has let it in. */
static job_record_t *add_extension(uint32_t id, int first, int last, const char *note)
{
    job_record_t *job = add_job(id, first, last);

    job->comment = (char *)"elastic-extension-of=12.0";
    job->admin_comment = (char *)note;
    job->spank_job_env = trap;
    job->spank_job_env_size = ADMISSION_ENV_COUNT;
    return job;
}

static struct admission_job base_of(const char *sizes)
{
    static char *env[1];

    env[0] = (char *)sizes;
    return (struct admission_job){.id = BASE,
                                  .uid = 7,
                                  .known = true,
                                  .running = true,
                                  .role = ADMISSION_BASE,
                                  .env = {env, 1},
                                  .minutes_left = ADMISSION_UNLIMITED};
}

static void count(const struct conf *conf, const struct admission_job *base, int pool,
                  struct admission_siblings *siblings)
{
    base_job_siblings(conf, base, pool, &admitted, time(NULL) * INT64_C(1000000), siblings);
}

static struct conf *two_pools(void)
{
    static const char text[] = "[pool slow]\n[pool spot]\n[pool spots]\n";
    struct error err;
    struct conf *conf = conf_parse("elastic.conf", text, strlen(text), &err);

    assert_non_null(conf);
    return conf;
}

static void test_the_pool_is_the_one_that_job_submit_has_noted(void **state)
{
    struct admission_job base = base_of("SPANK_ELASTIC_SIZES=1:8");
    struct admission_siblings siblings;
    struct conf *conf = two_pools();

    (void)state;
    add_job(BASE, 0, 0);
    add_extension(13, 1, 2, "elastic-extension-of=12.0 pool=spot elastic-admission=5");
    add_extension(14, 3, 3, "elastic-extension-of=12.0 pool=spots");
    add_extension(15, 4, 4, "elastic-extension-of=12.0 pool=gone elastic-admission=6");
    add_extension(16, 5, 5, "elastic-extension-of=12.0");
    count(conf, &base, 1, &siblings);
    assert_int_equal(siblings.node_count, 5);
    assert_int_equal(siblings.pool_count, 2);
    free((char *)siblings.nodes);
    count(conf, &base, 2, &siblings);
    assert_int_equal(siblings.pool_count, 1);
    assert_string_equal(siblings.nodes, "1-5");
    free((char *)siblings.nodes);
    conf_destroy(conf);
}

static void test_each_node_is_named_once(void **state)
{
    struct admission_job base = base_of("SPANK_ELASTIC_SIZES=1:8");
    struct admission_siblings siblings;
    struct conf *conf = two_pools();

    (void)state;
    add_job(BASE, 0, 0);
    for (uint32_t i = 0; i < 5; i++)
        add_extension(13 + i, 3, 4, "elastic-extension-of=12.0 pool=slow");
    count(conf, &base, 0, &siblings);
    assert_string_equal(siblings.nodes, "3-4");
    free((char *)siblings.nodes);
    base.whole_nodes = true;
    count(conf, &base, 0, &siblings);
    assert_null(siblings.nodes);
    conf_destroy(conf);
}

/* Slurm has let it go on (OverTimeLimit): it has its nodes, and its successor has come. */
static void test_what_goes_on_after_its_time_counts_again(void **state)
{
    struct admission_job base = base_of("SPANK_ELASTIC_SIZES=1:8");
    struct admission_siblings siblings;
    struct conf *conf = two_pools();
    job_record_t *extension;

    (void)state;
    add_job(BASE, 0, 0);
    extension = add_extension(13, 1, 2, "elastic-extension-of=12.0 pool=slow");
    for (int left = 600; left >= -600; left -= 100) {
        extension->end_time = time(NULL) + left;
        count(conf, &base, 0, &siblings);
        assert_int_equal(siblings.node_count, left == 100 || left == 0 ? 0 : 2);
        free((char *)siblings.nodes);
    }
    conf_destroy(conf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_pool_is_the_one_that_job_submit_has_noted, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_each_node_is_named_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_goes_on_after_its_time_counts_again, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* plugins/job_submit/drains.c with a slurmctld that counts what is locked, and for what. */
#include "plugins/slurmctld.h"

#include "lib/drain_notices.h"
#include "plugins/job_submit/drains.h"

#include "tests/unit/support.h"

#define NODES 8

struct xlist *job_list;
time_t last_node_update;
int node_record_count = NODES;
node_record_t **node_record_table_ptr;
slurm_conf_t slurm_conf;
slurmctld_config_t slurmctld_config;

static node_record_t nodes[NODES], *node_table[NODES];
static job_record_t jobs[6];
static char told[256]; /* jobs, in their order */
static int passes;     /* over the nodes */
static slurmctld_lock_t held;
static bool locked;

void lock_slurmctld(slurmctld_lock_t levels)
{
    assert_false(locked);
    locked = true;
    held = levels;
    passes += levels.job == READ_LOCK && levels.node == READ_LOCK;
}

void unlock_slurmctld(slurmctld_lock_t levels)
{
    assert_true(locked);
    assert_int_equal(memcmp(&levels, &held, sizeof(held)), 0);
    locked = false;
}

job_record_t *find_job_record(uint32_t job_id)
{
    assert_int_equal(held.job, WRITE_LOCK);
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
        if (jobs[i].job_id == job_id)
            return &jobs[i];
    return NULL;
}

int job_signal(job_record_t *record, uint16_t number, uint16_t flags, uid_t uid, bool preempt)
{
    assert_true(locked);
    assert_int_equal(held.job, WRITE_LOCK);
    assert_int_equal(number, DRAIN_NOTICES_SIGNAL);
    assert_true((flags & KILL_STEPS_ONLY) != 0);
    assert_false(preempt);
    assert_int_equal(uid, 0);
    snprintf(told + strlen(told), sizeof(told) - strlen(told), "%s%u", *told ? " " : "",
             record->job_id);
    return SLURM_SUCCESS;
}

static void add_job(int i, uint32_t id, uint32_t state, int first, int last)
{
    jobs[i] = (job_record_t){.job_id = id, .job_state = state};
    jobs[i].node_bitmap = bit_alloc(NODES);
    bit_nset(jobs[i].node_bitmap, first, last);
    list_append(job_list, &jobs[i]);
}

static int set_up(void **state)
{
    static char *base_env[] = {(char *)"_SLURM_SPANK_OPTION_elastic_elastic=2:4"};

    (void)state;
    node_record_table_ptr = node_table;
    for (int i = 0; i < NODES; i++)
        node_table[i] = &nodes[i];
    job_list = list_create(NULL);
    add_job(0, 1, JOB_RUNNING, 0, 1); /* a base */
    jobs[0].spank_job_env = base_env;
    jobs[0].spank_job_env_size = 1;
    add_job(1, 2, JOB_RUNNING, 2, 3); /* an extension */
    jobs[1].comment = (char *)"elastic-extension-of=1.0";
    add_job(2, 3, JOB_RUNNING, 4, 5); /* rigid jobs */
    add_job(3, 4, JOB_RUNNING, 0, 7); /* … which share nodes */
    jobs[3].comment = (char *)"mine";
    add_job(4, 5, JOB_SUSPENDED, 6, 6);
    jobs[4].comment = jobs[1].comment;
    add_job(5, 6, JOB_COMPLETE, 7, 7);
    jobs[5].comment = jobs[1].comment;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
        FREE_NULL_BITMAP(jobs[i].node_bitmap);
    FREE_NULL_LIST(job_list);
    return 0;
}

static void test_jobs_of_drained_nodes_are_told(void **state)
{
    static const struct {
        double now;
        int node; /* that changes; -1: none. NODES: slurmctld is configured again */
        uint32_t flags;
        const char *told;
        bool ends; /* slurmctld ends */
    } table[] = {
        {100, -1, 0, "", false},
        {102, 0, NODE_STATE_DRAIN, "1", false},
        {104, 2, NODE_STATE_FAIL, "2", false},
        {106, 4, NODE_STATE_DRAIN, "", false}, /* no elastic job is there */
        {108, 6, NODE_STATE_DRAIN, "", false}, /* suspended */
        {110, 7, NODE_STATE_DRAIN, "", false}, /* over */
        {112, 0, 0, "1", false},               /* resumed */
        {114, 0, NODE_STATE_DRAIN, "", false}, /* too soon … */
        {116, -1, 0, "", false},
        {118, -1, 0, "1", false},                   /* … but then */
        {120, 3, NODE_STATE_MAINT, "", false},      /* a reservation: the job may stay */
        {122, 1, NODE_STATE_NO_RESPOND, "", false}, /* its members are silent */
        {130, NODES, 0, "1 2", false},              /* nodes may have other numbers now */
        {140, 0, 0, "", true},
    };
    struct drains *drains = drains_create();

    (void)state;
    for (size_t row = 0; row < sizeof(table) / sizeof(table[0]); row++) {
        told[0] = '\0';
        if (table[row].node == NODES)
            slurm_conf.last_update++;
        else if (table[row].node >= 0)
            nodes[table[row].node].node_state = NODE_STATE_ALLOCATED | table[row].flags;
        if (table[row].node >= 0)
            last_node_update++;
        slurmctld_config.shutdown_time = table[row].ends;
        drains_look(drains, table[row].now);
        assert_false(locked);
        if (strcmp(told, table[row].told) != 0)
            fail_msg("row %zu: told: '%s'", row, told);
    }
    drains_destroy(drains);
    slurmctld_config.shutdown_time = 0;
}

static void test_nothing_is_locked_when_no_node_has_changed(void **state)
{
    struct drains *drains = drains_create();

    (void)state;
    drains_look(drains, 1);
    passes = 0;
    drains_look(drains, 3);
    assert_int_equal(passes, 0);
    /* In this second another node may change, without another number. */
    last_node_update = time(NULL) + 10;
    drains_look(drains, 5);
    drains_look(drains, 7);
    assert_int_equal(passes, 2);
    last_node_update = 1;
    drains_look(drains, 9);
    drains_look(drains, 11);
    assert_int_equal(passes, 3);
    drains_destroy(drains);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jobs_of_drained_nodes_are_told),
        cmocka_unit_test(test_nothing_is_locked_when_no_node_has_changed),
    };

    return cmocka_run_group_tests_name("drains", tests, set_up, tear_down);
}

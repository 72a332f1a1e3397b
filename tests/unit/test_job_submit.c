/* SPDX-License-Identifier: GPL-2.0-or-later */
/* plugins/job_submit/plugin.c, called by two threads of slurmctld at a time, as Slurm does since
 * 23.02; and with updates that scontrol does not send. */
#include "plugins/slurmctld.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "plugins/job_submit/base_job.h"
#include "plugins/job_submit/site.h"
#include "plugins/job_submit/watch.h"

#include "tests/unit/support.h"

extern int job_submit(job_desc_msg_t *desc, uint32_t submit_uid, char **err_msg);
extern int job_modify(job_desc_msg_t *desc, struct job_record *record,
                      uint32_t submit_uid WITH_ERROR_TEXT(char **err_msg));

static struct conf *of_site;
static atomic_int inside, answered, accepted;
static atomic_bool met;
static _Atomic pid_t second; /* the thread that comes while the first one is inside */

void watch_start(time_t (*configured)(void))
{
    (void)configured;
}

void watch_stop(void)
{
}

void site_forget(void)
{
}

/* The first that decide() asks. */
const struct conf *site_conf(time_t configured, time_t now, struct error *err)
{
    (void)configured;
    (void)now;
    (void)err;
    if (atomic_fetch_add(&inside, 1) != 0)
        met = true;
    return of_site;
}

time_t base_job_configured(void)
{
    return 1;
}

bool base_job_partition_exists(const char *name)
{
    (void)name;
    return true;
}

int base_job_partition_nodes(const char *partitions, const char **name)
{
    (void)partitions;
    *name = NULL;
    return ADMISSION_UNSET;
}

bool base_job_partition_node(const char *partitions, struct slots_size *size)
{
    (void)partitions;
    (void)size;
    return false;
}

void base_job_find(uint32_t job_id, time_t now, struct admission_job *job)
{
    static char *env[] = {(char *)"SPANK_ELASTIC_SIZES=2:8"};

    (void)now;
    *job = (struct admission_job){.id = job_id,
                                  .uid = 1000,
                                  .known = true,
                                  .running = true,
                                  .role = ADMISSION_BASE,
                                  .env = {env, 1},
                                  .name = "train",
                                  .nodes = "n[1-2]",
                                  .node_count = 2,
                                  .minutes_left = 90};
}

void base_job_siblings(const struct conf *site, const struct admission_job *base, int pool,
                       struct admitted *admitted, int64_t now, struct admission_siblings *siblings)
{
    (void)site;
    (void)base;
    (void)pool;
    (void)admitted;
    (void)now;
    *siblings = (struct admission_siblings){0};
}

/* Whether a thread of this process sleeps. */
static bool sleeps(pid_t thread)
{
    char path[64], state = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)thread);
    if ((file = fopen(path, "r"))) {
        if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
            state = 0;
        fclose(file);
    }
    return state == 'S';
}

static void *submit(void *is_second)
{
    static const char *const env[] = {"_SLURM_SPANK_OPTION_elastic_elastic_extend=12"};
    job_desc_msg_t desc;
    char *text = NULL;

    slurm_init_job_desc_msg(&desc);
    desc.het_job_offset = NO_VAL;
    desc.user_id = 1000;
    desc.min_nodes = desc.max_nodes = 1;
    desc.comment = (char *)"elastic-extension-of=12.0";
    desc.spank_job_env = (char **)env;
    desc.spank_job_env_size = 1;
    if (is_second)
        second = (pid_t)syscall(SYS_gettid);
    accepted += job_submit(&desc, 1000, &text) == SLURM_SUCCESS;
    xfree(desc.admin_comment);
    xfree(desc.name);
    xfree(desc.partition);
    xfree(desc.exc_nodes);
    xfree(text);
    answered++;
    return NULL;
}

/* The last that decide() asks. The first thread waits here until the other one waits for it, or is
 * inside as well. */
int base_job_most_minutes(const char *partition, const char *qos)
{
    static atomic_bool is_first = true;
    pthread_t thread;

    (void)partition;
    (void)qos;
    if (atomic_exchange(&is_first, false)) {
        if (pthread_create(&thread, NULL, submit, &second) != 0)
            abort();
        pthread_detach(thread);
        while (!met && (second == 0 || !sleeps(second)))
            usleep(1000);
    }
    inside--;
    return ADMISSION_UNLIMITED;
}

static void test_one_is_decided_after_the_other(void **state)
{
    static const char text[] = "default_pool = spot\n[pool spot]\npartition = low\n";
    struct error err;

    (void)state;
    of_site = conf_parse("elastic.conf", text, strlen(text), &err);
    assert_non_null(of_site);
    submit(NULL);
    assert_int_not_equal(second, 0);
    while (answered < 2)
        usleep(1000);
    assert_int_equal(accepted, 2);
    assert_false(met);
    conf_destroy(of_site);
}

/* ---- updates --------------------------------------------------------------------------------- */

bool base_job_is_admin(uint32_t uid)
{
    return uid == 0;
}

/* An extension that waits. */
void base_job_read(struct job_record *record, time_t now, struct admission_job *job)
{
    (void)record;
    (void)now;
    *job = (struct admission_job){.id = 13,
                                  .uid = 1000,
                                  .known = true,
                                  .pending = true,
                                  .role = ADMISSION_EXTENSION,
                                  .extends = 12,
                                  .node_count = 1};
}

/* scontrol sends no such numbers of nodes, but other programs can. */
static void test_no_number_of_nodes_and_no_longer_time_by_an_update(void **state)
{
    static const struct {
        uint32_t uid, min_nodes, max_nodes, time_limit;
        bool allowed;
    } table[] = {
        {1000, NO_VAL, NO_VAL, NO_VAL, true},    {1000, NO_VAL, 0, NO_VAL, false},
        {1000, NO_VAL, 2, NO_VAL, false},        {1000, NO_VAL, 0x80000000, NO_VAL, false},
        {1000, NO_VAL, INFINITE, NO_VAL, false}, {1000, 0x80000000, NO_VAL, NO_VAL, false},
        {1000, 1, NO_VAL, NO_VAL, false},        {1000, NO_VAL, NO_VAL, 20, true},
        {1000, NO_VAL, NO_VAL, 10, true},        {1000, NO_VAL, NO_VAL, 21, false},
        {1000, NO_VAL, NO_VAL, INFINITE, false}, {0, NO_VAL, 0, 21, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        job_record_t record = {.job_id = 13, .time_limit = 20};
        job_desc_msg_t desc;
        char *text = NULL;
        int rc;

        slurm_init_job_desc_msg(&desc);
        desc.min_nodes = table[i].min_nodes;
        desc.max_nodes = table[i].max_nodes;
        desc.time_limit = table[i].time_limit;
        rc = job_modify(&desc, &record, table[i].uid WITH_ERROR_TEXT(&text));
        xfree(text);
        if ((rc == SLURM_SUCCESS) != table[i].allowed)
            fail_msg("row %zu: %d", i, rc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_number_of_nodes_and_no_longer_time_by_an_update),
        cmocka_unit_test(test_one_is_decided_after_the_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

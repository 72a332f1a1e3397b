/* SPDX-License-Identifier: GPL-2.0-or-later */
/* plugins/job_submit/base_job.c with a slurmctld that removes every QOS as soon as nobody holds the
 * lock. */
#include "config.h"

#include "src/common/slurm_xlator.h"

#include "src/common/assoc_mgr.h"
#include "src/slurmctld/slurmctld.h"

#include "plugins/job_submit/base_job.h"

#include "tests/unit/support.h"

#define REMOVED 1 /* what is read of a QOS that is gone */

void *acct_db_conn;
part_record_t *default_part_loc;

static slurmdb_qos_rec_t of_partition, of_job;
static part_record_t partition = {
    .name = (char *)"batch", .max_time = 60, .qos_ptr = &of_partition};
static int locked;

void assoc_mgr_lock(assoc_mgr_lock_t *locks)
{
    assert_int_equal(locks->qos, READ_LOCK);
    assert_int_equal(locked++, 0); /* a thread that has it waits for itself if a writer waits */
    of_partition.max_wall_pj = 50;
    of_job.max_wall_pj = 40;
}

void assoc_mgr_unlock(assoc_mgr_lock_t *locks)
{
    assert_int_equal(--locked, 0);
    of_partition.max_wall_pj = of_job.max_wall_pj = REMOVED;
}

int assoc_mgr_fill_in_qos(void *db_conn, slurmdb_qos_rec_t *qos, int enforce,
                          slurmdb_qos_rec_t **qos_pptr, bool is_locked)
{
    assoc_mgr_lock_t locks = {.qos = READ_LOCK};

    if (!is_locked)
        assoc_mgr_lock(&locks);
    assert_int_equal(locked, 1);
    *qos_pptr = strcmp(qos->name, "normal") == 0 ? &of_job : NULL;
    if (!is_locked)
        assoc_mgr_unlock(&locks);
    return SLURM_SUCCESS;
}

part_record_t *find_part_record(char *name)
{
    return strcmp(name, partition.name) == 0 ? &partition : NULL;
}

static void test_a_qos_is_read_while_it_is_there(void **state)
{
    of_partition.max_wall_pj = of_job.max_wall_pj = REMOVED;
    assert_int_equal(base_job_most_minutes("batch", "normal"), 40);
    assert_int_equal(base_job_most_minutes("batch", NULL), 50);
    assert_int_equal(base_job_most_minutes("none", "normal"), 40);
    assert_int_equal(base_job_most_minutes(NULL, "none"), ADMISSION_UNLIMITED);
    assert_int_equal(locked, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_qos_is_read_while_it_is_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

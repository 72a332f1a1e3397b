/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A job finds directories of its own, of nobody and of other jobs (agent/state_dir.c). */
#include "tests/unit/support.h"

#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/state_dir.h"
#include "common/files.h"

#define SUBMIT 1772366400

static char root[] = "/tmp/elastic-test-state-dir-XXXXXX";
static char dir[128];
static const struct job_record new_job = {
    .cluster = "c", .user = "ada", .job = 12, .submit = SUBMIT};

static int make_root(void **state)
{
    setenv("TZ", "UTC", 1);
    snprintf(root, sizeof(root), "/tmp/elastic-test-state-dir-XXXXXX");
    if (mkdtemp(root) == NULL)
        return -1;
    snprintf(dir, sizeof(dir), "%s/12", root);
    return 0;
}

static int remove_root(void **state)
{
    return dir_remove(root, NULL);
}

static bool has(const char *name)
{
    char path[300];

    snprintf(path, sizeof(path), "%s/%s", root, name);
    return access(path, F_OK) == 0;
}

static void put(const char *name)
{
    struct error err = {""};
    char path[300];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    assert_int_equal(file_replace(path, "x", 1, 0600, &err), 0);
}

static void take(bool named, struct job_record job)
{
    struct error err = {""};

    if (state_dir_take(dir, named, &job, &err) != 0)
        fail_msg("%s", err.text);
}

static void test_own(void **state)
{
    struct job_record job = new_job;
    struct error err = {""};

    take(false, new_job);
    put("kept");
    take(false, new_job); /* another step of the same job */
    job.restarts = 1;
    job.submit += 100;
    assert_int_equal(state_dir_take(dir, false, &job, &err), 0);
    assert_true(has("12/kept"));
    assert_int_equal(job.first, SUBMIT);
}

static void test_of_an_older_job(void **state)
{
    struct job_record old = new_job, later = new_job;

    old.submit -= 1000;
    take(false, old);
    put("checkpoint");
    take(false, new_job);
    assert_false(has("12/checkpoint"));
    assert_true(has("12/job.json"));
    assert_true(has("12.old-20260301T114320/checkpoint"));
    later.submit += 1;
    take(true, later); /* as it was told */
    assert_true(has("12/job.json"));
    assert_false(has("12.old-20260301T120000"));
}

/* The terms of the older job would be taken for this job's. */
static void test_named_loses_terms(void **state)
{
    struct job_record other = new_job;
    char path[160];

    take(false, new_job);
    put("checkpoint");
    snprintf(path, sizeof(path), "%s/leader", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    other.job = 13; /* may be running: its terms are its own */
    take(true, other);
    assert_true(has("12/leader"));
    other.submit += 5;
    take(true, other);
    assert_false(has("12/leader"));
    assert_true(has("12/checkpoint"));
}

/* Any user may make the directory of the jobs of another one in /scratch. Who names a directory
 * knows whose it is. */
static void test_below_a_strangers(void **state)
{
    struct job_record job = new_job;
    struct error err = {""};
    char user[160];

    if (geteuid() != 0)
        skip();
    assert_int_equal(chmod(root, 01777), 0);
    snprintf(user, sizeof(user), "%s/ada", root);
    snprintf(dir, sizeof(dir), "%s/12", user);
    assert_int_equal(mkdir(user, 0700), 0);
    assert_int_equal(chown(user, 65534, (gid_t)-1), 0);
    assert_int_equal(state_dir_take(dir, false, &job, &err), -1);
    assert_non_null(strstr(err.text, "belongs to uid 65534"));
    assert_false(has("ada/12"));
    take(true, new_job);
    assert_int_equal(state_dir_take(dir, false, &job, &err), -1);
}

static void test_without_a_record(void **state)
{
    struct job_record job = new_job;
    struct error err = {""};

    assert_int_equal(dir_make(dir, &err), 0);
    put("mine"); /* prepared by the user */
    take(false, new_job);
    assert_true(has("12/mine"));
    assert_int_equal(dir_remove(dir, &err), 0);
    /* … and by an elasticrun that kept none. */
    assert_int_equal(dir_make(dir, &err), 0);
    put("generation.json");
    job.submit = time(NULL) + 1000;
    take(false, job);
    assert_false(has("12/generation.json"));
    assert_true(has("12/job.json"));
}

static void test_checkpoints_are_used_as_told(void **state)
{
    struct job_record old = new_job;
    struct error err = {""};

    old.job = 11;
    assert_int_equal(state_dir_take_checkpoints(dir, &old, &err), 0);
    put("00000001");
    assert_int_equal(state_dir_take_checkpoints(dir, &new_job, &err), 0);
    assert_true(has("12/00000001"));
    assert_true(has("12/.job.json"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_own, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_of_an_older_job, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_named_loses_terms, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_below_a_strangers, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_without_a_record, make_root, remove_root),
        cmocka_unit_test_setup_teardown(test_checkpoints_are_used_as_told, make_root, remove_root),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

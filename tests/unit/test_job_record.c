/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A directory belongs to one job: not to a later job of the same number. */
#include "tests/unit/support.h"

#include "lib/job_record.h"

#define SUBMIT 1772366400

static const struct job_record job = {
    .cluster = "c", .user = "ada", .job = 12, .submit = SUBMIT, .first = SUBMIT};

static void test_is_written_and_read(void **state)
{
    struct job_record read;
    struct error err = {""};
    char *text = job_record_format(&job);

    assert_non_null(text);
    assert_int_equal(job_record_parse(text, strlen(text), &read, &err), 0);
    assert_true(job_record_is_of(&read, &job));
    assert_int_equal(read.first, SUBMIT);
    free(text);
    assert_int_equal(job_record_parse("{}", 2, &read, &err), -1);
    assert_one_line(err.text);
    assert_int_equal(job_record_parse("{", 1, &read, &err), -1);
    assert_one_line(err.text);
}

static void test_owner(void **state)
{
    static const struct {
        struct job_record found;
        bool same;
    } table[] = {
        {{.cluster = "c", .user = "ada", .job = 12, .submit = SUBMIT}, true},
        /* Ids have started anew. */
        {{.cluster = "c", .user = "ada", .job = 12, .submit = SUBMIT - 1}, false},
        {{.cluster = "c", .user = "ada", .job = 12, .submit = SUBMIT - 9, .restarts = 1}, false},
        {{.cluster = "d", .user = "ada", .job = 12, .submit = SUBMIT}, false},
        {{.cluster = "c", .user = "bob", .job = 12, .submit = SUBMIT}, false},
        {{.cluster = "c", .user = "ada", .job = 13, .submit = SUBMIT}, false},
        {{.cluster = "c", .user = "ada", .job = 12, .submit = 0}, true}, /* not known */
    };
    struct job_record again = job;

    for (size_t i = 0; i < COUNT(table); i++)
        assert_int_equal(job_record_is_of(&table[i].found, &job), table[i].same);
    /* Slurm has requeued it, with another time of submission. */
    again.restarts = 2;
    again.submit = SUBMIT + 1000;
    assert_true(job_record_is_of(&job, &again));
    assert_false(job_record_is_of(&again, &job));
}

static void test_words(void **state)
{
    char text[160], *path;

    setenv("TZ", "UTC", 1);
    job_record_describe(&job, text, sizeof(text));
    assert_string_equal(text, "job 12 of ada, submitted 2026-03-01 12:00:00");
    path = job_record_aside("/s/12//", SUBMIT, 1);
    assert_string_equal(path, "/s/12.old-20260301T120000");
    free(path);
    path = job_record_aside("/s/12", SUBMIT, 2);
    assert_string_equal(path, "/s/12.old-20260301T120000-2");
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_is_written_and_read),
        cmocka_unit_test(test_owner),
        cmocka_unit_test(test_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

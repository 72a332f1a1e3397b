/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which state directories `selastic clean` removes: never one of a job that lives or may live. */
#include "tests/unit/support.h"

#include "lib/leftover.h"

#define NOW 1772366400
#define DAY 86400

static void test_names(void **state)
{
    static const struct {
        const char *pattern, *name;
        bool named;
    } table[] = {
        {"c-\001", "c-12", true},
        {"c-\001", "c-12.old-20260301T120000", true},
        {"c-\001", "c-12.old-20260301T120000-2", true},
        {"c-\001", "c-12.old-20260301T120000-", false},
        {"c-\001", "c-12.old-20260301", false},
        {"c-\001", "c-12.old", false},
        {"c-\001", "c-12x", false},
        {"c-\001", "c-", false},
        {"c-\001", "c-123456789012", false},
        {"c-\001", "d-12", false},
        {"c-\001", "c-12.d", false},
        {"c-\001.d", "c-12.d", true},
        {"\001", "12", true},
        {"\001", "..", false},
        {"c", "c", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++)
        if (leftover_is_named(table[i].pattern, table[i].name) != table[i].named)
            fail_msg("%s is wrong", table[i].name);
}

#define RECORD(number)                                                                             \
    {                                                                                              \
        .cluster = "c", .user = "ada", .job = (number)                                             \
    }

static void test_what_may_go(void **state)
{
    static const uint32_t known[] = {50, 60};
    static const struct leftover_site site = {.cluster = "c",
                                              .user = "ada",
                                              .known = known,
                                              .known_count = COUNT(known),
                                              .now = NOW,
                                              .days = 30};
    static const struct {
        struct job_record records[2];
        int count;
        bool partial, not_owned;
        int age; /* seconds */
        const char *why;
    } table[] = {
        {{RECORD(12)}, 1, .age = 30 * DAY, .why = ""},
        {{RECORD(12)}, 1, .age = 30 * DAY - 1, .why = "changed in the last 30 days"},
        {{RECORD(12)}, 1, .age = -DAY, .why = "changed in the last 30 days"},
        /* Pending, running, or ended a moment ago; also if its number was given anew. */
        {{RECORD(50)}, 1, .age = 99 * DAY, .why = "Slurm knows job 50"},
        /* A job that runs goes on with the checkpoints of an old one. */
        {{RECORD(12), RECORD(60)}, 2, .age = 99 * DAY, .why = "Slurm knows job 60"},
        {{RECORD(12), RECORD(13)}, 2, .age = 99 * DAY, .why = ""},
        /* Its slurmctld was not asked. */
        {{{.cluster = "d", .user = "ada", .job = 12}},
         1,
         .age = 99 * DAY,
         .why = "job 12 of cluster d has used it"},
        {{RECORD(12), {.cluster = "c", .user = "bob", .job = 9}},
         2,
         .age = 99 * DAY,
         .why = "job 9 of bob has used it"},
        {{RECORD(12)}, 0, .age = 99 * DAY, .why = "no job.json says whose it is"},
        {{RECORD(12)},
         1,
         .not_owned = true,
         .age = 99 * DAY,
         .why = "no job.json says whose it is"},
        {{RECORD(12)},
         1,
         .partial = true,
         .age = 99 * DAY,
         .why = "not all of it can be looked at"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct job_record records[2] = {table[i].records[0], table[i].records[1]};
        struct leftover found = {.complete = !table[i].partial,
                                 .owned = !table[i].not_owned,
                                 .records = records,
                                 .record_count = table[i].count,
                                 .changed = NOW - table[i].age};
        char why[128] = "?";

        assert_int_equal(leftover_may_go(&site, &found, why, sizeof(why)), !*table[i].why);
        assert_string_equal(why, table[i].why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_what_may_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

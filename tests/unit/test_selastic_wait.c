/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmd/wait_rule: when `selastic wait` has come to its end. */
#include <string.h>

#include "cmd/wait_rule.h"
#include "lib/json_text.h"
#include "tests/unit/support.h"

#define STATE(text) "{\"phase\": \"running\", \"min\": 2, \"max\": 8, " text "}"
#define SIZE4       STATE("\"size\": 4, \"steps\": 100")

static void test_table(void **unused)
{
    static const struct {
        const char *what;
        const char *size, *step, *state; /* of the goal */
        bool ended;
        enum job_state_kind kind;
        const char *answer; /* of the leader; NULL: none */
        enum wait_verdict verdict;
    } rows[] = {
        {"the size", "4", NULL, NULL, false, JOB_KIND_RUNNING, SIZE4, WAIT_REACHED},
        {"another size", "5", NULL, NULL, false, JOB_KIND_RUNNING, SIZE4, WAIT_ON},
        {"in the range", "3:4", NULL, NULL, false, JOB_KIND_RUNNING, SIZE4, WAIT_REACHED},
        {"below the range", "5:8", NULL, NULL, false, JOB_KIND_RUNNING, SIZE4, WAIT_ON},
        {"more than MAX", "9", NULL, NULL, false, JOB_KIND_RUNNING, SIZE4, WAIT_NEVER},
        {"less than MIN", "1", NULL, NULL, false, JOB_KIND_RUNNING, SIZE4, WAIT_NEVER},
        {"a range over MAX", "8:20", NULL, NULL, false, JOB_KIND_RUNNING, SIZE4, WAIT_ON},
        {"a job with roles has no MAX", "9", NULL, NULL, false, JOB_KIND_RUNNING,
         STATE("\"size\": 4, \"roles\": \"a 1/1\""), WAIT_ON},
        {"the step", NULL, "100", NULL, false, JOB_KIND_RUNNING, SIZE4, WAIT_REACHED},
        {"before the step", NULL, "101", NULL, false, JOB_KIND_RUNNING, SIZE4, WAIT_ON},
        {"size and step", "4", "101", NULL, false, JOB_KIND_RUNNING, SIZE4, WAIT_ON},
        {"the phase", NULL, NULL, "running", false, JOB_KIND_RUNNING, SIZE4, WAIT_REACHED},
        {"another phase", NULL, NULL, "switching", false, JOB_KIND_RUNNING, SIZE4, WAIT_ON},
        {"pending", NULL, NULL, "pending", false, JOB_KIND_PENDING, NULL, WAIT_REACHED},
        {"nodes power up", NULL, NULL, "pending", false, JOB_KIND_BOOTING, NULL, WAIT_REACHED},
        {"not pending", NULL, NULL, "pending", false, JOB_KIND_RUNNING, SIZE4, WAIT_ON},
        {"no leader yet", "4", NULL, NULL, false, JOB_KIND_RUNNING, NULL, WAIT_ON},
        {"requeued", "4", NULL, NULL, false, JOB_KIND_PENDING, NULL, WAIT_ON},
        {"suspended", "4", NULL, NULL, false, JOB_KIND_SUSPENDED, NULL, WAIT_ON},
        {"completing", "4", NULL, NULL, false, JOB_KIND_ENDING, NULL, WAIT_ON},
        {"ended before", "4", NULL, NULL, false, JOB_KIND_ENDED, NULL, WAIT_ENDED},
        {"forgotten", NULL, "1", NULL, false, JOB_KIND_UNKNOWN, NULL, WAIT_ENDED},
        {"ended, the old answer is there", "4", NULL, NULL, false, JOB_KIND_ENDED, SIZE4,
         WAIT_ENDED},
        {"the end", NULL, NULL, NULL, true, JOB_KIND_ENDED, NULL, WAIT_REACHED},
        {"the end, forgotten", NULL, NULL, NULL, true, JOB_KIND_UNKNOWN, NULL, WAIT_REACHED},
        {"not yet the end", NULL, NULL, NULL, true, JOB_KIND_ENDING, NULL, WAIT_ON},
        {"nor while it runs", NULL, NULL, NULL, true, JOB_KIND_RUNNING, SIZE4, WAIT_ON},
        {"an answer without fields", "4", "1", NULL, false, JOB_KIND_RUNNING, "{}", WAIT_ON},
        {"fields of other types", "4", NULL, "running", false, JOB_KIND_RUNNING,
         "{\"size\": \"4\", \"phase\": 7, \"max\": []}", WAIT_ON},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct wait_goal goal = {.ended = rows[i].ended};
        struct error err = {""};
        json_object *state = rows[i].answer != NULL
                                 ? json_text_parse(rows[i].answer, strlen(rows[i].answer), NULL)
                                 : NULL;
        assert_true((state != NULL) == (rows[i].answer != NULL));
        assert_true(rows[i].size == NULL || wait_goal_size(&goal, rows[i].size, &err) == 0);
        assert_true(rows[i].step == NULL || wait_goal_step(&goal, rows[i].step, &err) == 0);
        assert_true(rows[i].state == NULL || wait_goal_state(&goal, rows[i].state, &err) == 0);
        assert_int_equal(wait_goal_check(&goal, &err), 0);
        if (wait_decide(&goal, rows[i].kind, state, &err) != rows[i].verdict)
            fail_msg("%s", rows[i].what);
        if (rows[i].verdict == WAIT_NEVER)
            assert_string_equal(err.text, "the job never has this size: it allows 2 to 8 nodes");
        json_object_put(state);
    }
}

/* Slurm is asked less and less often: 9 times in three minutes, then twice a minute. */
static void test_pauses(void **unused)
{
    int time = 0, n = 0, first = 0;
    for (; time < 3600; n++) {
        assert_in_range(wait_pause(n), 1, 30);
        time += wait_pause(n);
        if (time <= 180)
            first = n + 1;
    }
    assert_int_equal(first, 9);
    assert_in_range(n, 100, 125);
    assert_int_equal(wait_pause(1000000), 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_pauses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The other job of a service: when Slurm is asked for it, and what its answer is worth. */
#include "lib/service_gone.h"
#include "tests/unit/support.h"

#define JOB 7

static struct service_gone_answer ended(double asked, double silent, double ago)
{
    return (struct service_gone_answer){
        .job = JOB, .asked = asked, .silent = silent, .ended = true, .ago = ago};
}

static void test_first_question(void **state)
{
    struct service_gone gone = {0};

    (void)state;
    assert_true(service_gone_ask(&gone, JOB, 0, 100)); /* though it has just written */
    assert_false(service_gone_ask(&gone, JOB, 0, 101));
    assert_false(service_gone_ask(&gone, JOB, 1, 1000)); /* it writes: it is not asked for again */
    assert_true(service_gone_ask(&gone, JOB + 1, 0, 1000)); /* another job has it now */
}

/* A job that writes costs one question. One that is silent is asked for less and less often. */
static void test_pauses(void **state)
{
    struct service_gone gone = {0};
    double at[8] = {0};
    int count = 0;

    (void)state;
    for (double now = 1; now < 200; now += 1)
        if (service_gone_ask(&gone, JOB, now < 50 ? 10 : now - 40, now)) {
            assert_true(count < 8);
            at[count++] = now;
        }
    assert_int_equal(count, 6);
    assert_true(at[0] == 1);
    assert_true(at[1] == 40 + SERVICE_GONE_LATE);
    assert_true(at[2] - at[1] == 2 * SERVICE_GONE_FIRST);
    assert_true(at[3] - at[2] == 4 * SERVICE_GONE_FIRST);
    assert_true(at[4] - at[3] == 8 * SERVICE_GONE_FIRST);
    assert_true(at[5] - at[4] == SERVICE_GONE_PAUSE);
    for (double now = 200; now < 2000; now += 1)
        count += service_gone_ask(&gone, JOB, 100, now);
    assert_in_range(count, 6 + 1800 / SERVICE_GONE_PAUSE - 1, 6 + 1800 / SERVICE_GONE_PAUSE + 1);
}

static void test_answers(void **state)
{
    struct service_gone gone = {0};
    struct service_gone_answer answer = ended(100, 4, 3);

    (void)state;
    service_gone_ask(&gone, JOB, 4, 100);
    assert_false(service_gone_is(&gone, JOB, 4, 100));
    answer.ended = false;
    assert_false(service_gone_answered(&gone, &answer));
    assert_false(service_gone_is(&gone, JOB, 5, 101));
    answer.ended = true;
    assert_true(service_gone_answered(&gone, &answer));
    assert_false(service_gone_answered(&gone, &answer)); /* it was known */
    assert_true(service_gone_is(&gone, JOB, 5, 101));
    assert_true(service_gone_is(&gone, JOB, 34, 130));
    assert_false(service_gone_is(&gone, JOB + 1, 34, 130));
}

/* A job whose end is refuted by what it writes. */
static void test_it_lives(void **state)
{
    struct service_gone gone = {0};
    struct service_gone_answer answer = ended(100, 4, 3);

    (void)state;
    service_gone_ask(&gone, JOB, 4, 100);
    assert_true(service_gone_answered(&gone, &answer));
    assert_false(service_gone_is(&gone, JOB, 1, 110));
}

/* Jobs of two clusters may have the same number. */
static void test_another_of_that_number(void **state)
{
    struct service_gone gone = {0};
    struct service_gone_answer answer = ended(100, 4, 65);

    (void)state;
    service_gone_ask(&gone, JOB, 4, 100);
    assert_false(service_gone_answered(&gone, &answer));
    assert_false(service_gone_is(&gone, JOB, 5, 101));
    answer.ago = 63;
    assert_true(service_gone_answered(&gone, &answer));
    answer.job = JOB + 1;
    assert_false(service_gone_answered(&gone, &answer));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_question),
        cmocka_unit_test(test_pauses),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_it_lives),
        cmocka_unit_test(test_another_of_that_number),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

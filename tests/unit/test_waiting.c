/* SPDX-License-Identifier: GPL-2.0-or-later */
/* plugins/select/waiting.c with a slurmctld that has one job: for how long extensions keep off the
 * nodes that it waits for. */
#include "plugins/select/compat.h"

#include "plugins/select/jobs.h"
#include "plugins/select/waiting.h"

#include "tests/unit/support.h"

#define NODES 4

static job_record_t preemptor, extension;
static details_t details;

job_record_t *find_job_record(uint32_t job_id)
{
    return job_id == preemptor.job_id ? &preemptor : NULL;
}

int64_t jobs_priority(const job_record_t *job)
{
    return job == &preemptor ? 2 : 1;
}

/* The only function of bitmaps here that libslurm does not have under its plain name. */
void bit_and_not(bitstr_t *bitmap, bitstr_t *other)
{
    for (int i = 0; i < bit_size(bitmap); i++)
        if (bit_test(other, i))
            bit_clear(bitmap, i);
}

static void begin(void)
{
    details = (details_t){0};
    preemptor = (job_record_t){.job_id = 7,
                               .job_state = JOB_PENDING,
                               .priority = 10,
                               .details = &details,
                               .state_reason = WAIT_RESOURCES};
    extension = (job_record_t){.job_id = 8, .job_state = JOB_PENDING};
}

/* How many nodes are left to the extension of those that it could have. */
static int nodes_left(void)
{
    bitstr_t *nodes = bit_alloc(NODES);
    int left;

    for (int i = 0; i < NODES; i++)
        bit_set(nodes, i);
    waiting_keep_off(&extension, nodes);
    left = bit_set_count(nodes);
    bit_free(nodes);
    return left;
}

static void note(void)
{
    bitstr_t *nodes = bit_alloc(NODES);

    bit_set(nodes, 1);
    bit_set(nodes, 2);
    waiting_note(&preemptor, nodes);
    bit_free(nodes);
}

static void hold(void)
{
    preemptor.priority = 0;
}

static void start(void)
{
    preemptor.job_state = JOB_RUNNING;
}

static void depend(void)
{
    preemptor.bit_flags |= JOB_DEPENDENT;
}

static void wait_for_a_dependency(void)
{
    preemptor.state_reason = WAIT_DEPENDENCY;
}

static void wait_for_a_limit(void)
{
    preemptor.state_reason = WAIT_ASSOC_JOB_LIMIT;
}

static void begin_later(void)
{
    details.begin_time = time(NULL) + 3600;
}

static void end(void)
{
    preemptor.job_id = 9;
}

static void test_extensions_keep_off_while_the_job_waits(void **state)
{
    static const enum job_state_reason reasons[] = {WAIT_NO_REASON, WAIT_RESOURCES, WAIT_PRIORITY};

    (void)state;
    begin();
    assert_int_equal(nodes_left(), NODES);
    note();
    for (size_t i = 0; i < COUNT(reasons); i++) {
        preemptor.state_reason = reasons[i];
        details.begin_time = time(NULL);
        assert_int_equal(nodes_left(), NODES - 2);
    }
    waiting_forget();
    assert_int_equal(nodes_left(), NODES);
}

static void test_a_job_that_cannot_start_is_forgotten(void **state)
{
    static const struct {
        const char *what;
        void (*change)(void);
    } table[] = {
        {"held", hold},
        {"running", start},
        {"behind another job, by its flag", depend},
        {"behind another job, by its reason", wait_for_a_dependency},
        {"over a limit", wait_for_a_limit},
        {"to begin later", begin_later},
        {"gone", end},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        print_message("# %s\n", table[i].what);
        begin();
        note();
        assert_int_equal(nodes_left(), NODES - 2);
        table[i].change();
        assert_int_equal(nodes_left(), NODES);
        /* Nor does it come back, but by another test that names victims. */
        begin();
        assert_int_equal(nodes_left(), NODES);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_extensions_keep_off_while_the_job_waits),
        cmocka_unit_test(test_a_job_that_cannot_start_is_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/requests: what is accepted, in which order it is carried out, how each ends; the open bugs
 * of others as cases; and random jobs, in which every request must end exactly once. */
#include "lib/requests.h"

#include "tests/unit/support.h"

static char *const names[] = {"n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", NULL};

/* A job of base nodes n1 and n2 with room up to 8, as it is with so many nodes. */
struct job {
    struct sizes sizes;
    char *held[9];
    struct request_situation now;
    struct requests *requests;
};

static void has_nodes(struct job *job, int size)
{
    for (int i = 0; i < 8; i++)
        job->held[i] = i < size ? names[i] : NULL;
    job->now.size = size;
    job->now.held = job->held;
    job->now.settled = true;
}

static struct job *job_of(const char *sizes, int size)
{
    struct job *job = calloc(1, sizeof(*job));
    struct error err;

    assert_int_equal(sizes_parse(sizes, &job->sizes, &err), 0);
    job->now.sizes = &job->sizes;
    job->now.base_nodes = job->sizes.min;
    job->requests = requests_create();
    has_nodes(job, size);
    return job;
}

static void job_free(struct job *job)
{
    requests_destroy(job->requests);
    free(job);
}

static int extend(struct job *job, int nodes, const char *label)
{
    struct request_wish wish = {.nodes = nodes, .label = label};
    struct error err = {""};
    int rc = requests_extend(job->requests, &job->now, &wish, &err);

    if (rc < 0)
        assert_one_line(err.text);
    return rc;
}

static int drop(struct job *job, int nodes, char *const *which)
{
    struct request_wish wish = {.nodes = nodes, .names = which};
    struct error err = {""};
    int rc = requests_release(job->requests, &job->now, &wish, &err);

    if (rc < 0)
        assert_one_line(err.text);
    return rc;
}

static int goal(struct job *job)
{
    const struct request *current;

    requests_update(job->requests, &job->now, 0);
    current = requests_current(job->requests);
    return current != NULL ? current->goal : 0;
}

static void assert_ended(struct job *job, int number, enum request_state state)
{
    struct request *ended;

    requests_update(job->requests, &job->now, 0);
    ended = requests_ended(job->requests);
    assert_non_null(ended);
    assert_int_equal(ended->number, number);
    assert_int_equal(ended->state, state);
    assert_int_equal(state == REQUEST_FAILED, ended->why[0] != '\0');
    request_free(ended);
}

static void test_what_is_refused(void **state)
{
    static const struct {
        const char *sizes;
        int size, change; /* negative: a release */
        int answer;       /* 1: accepted */
    } cases[] = {
        {"2:8", 2, 6, 1},
        {"2:8", 2, 7, REQUEST_BAD},
        {"2:8", 2, -1, REQUEST_BAD},
        {"2:8", 4, -2, 1},
        {"2:8", 4, -3, REQUEST_BAD},
        {"2:8:2", 2, 1, REQUEST_BAD},
        {"2:8:2", 2, 2, 1},
        {"2:8:2", 6, -1, REQUEST_BAD},
        {"2,3,8", 3, 5, 1},
        {"2,3,8", 3, 1, REQUEST_BAD},
        {"2:8", 2, 1000000, REQUEST_BAD},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct job *job = job_of(cases[i].sizes, cases[i].size);
        int change = cases[i].change;

        assert_int_equal(change > 0 ? extend(job, change, NULL) : drop(job, -change, NULL),
                         cases[i].answer);
        job_free(job);
    }
}

static void test_refused_for_other_reasons(void **state)
{
    struct job *job = job_of("2:8", 2);
    char *twice[] = {"n3", "n3", NULL};

    (void)state;
    assert_int_equal(extend(job, 0, NULL), REQUEST_BAD);
    assert_int_equal(extend(job, -1, NULL), REQUEST_BAD);
    assert_int_equal(extend(job, 1, ""), REQUEST_BAD);
    assert_int_equal(
        extend(job, 1, "a label of more than sixty-three bytes, which is a great many for one"),
        REQUEST_BAD);
    assert_int_equal(extend(job, 1, "mine"), 1);
    assert_int_equal(extend(job, 1, "mine"), REQUEST_BAD);
    has_nodes(job, 6);
    assert_int_equal(drop(job, 2, twice), REQUEST_BAD);
    job->now.deaf = "no pool";
    assert_int_equal(extend(job, 1, NULL), REQUEST_NOT_AVAILABLE);
    job_free(job);
}

static void test_growth(void **state)
{
    struct job *job = job_of("2:8", 2);

    (void)state;
    assert_true(requests_empty(job->requests));
    assert_int_equal(extend(job, 2, NULL), 1);
    assert_false(requests_empty(job->requests));
    assert_int_equal(goal(job), 4);
    has_nodes(job, 3);
    assert_int_equal(goal(job), 4);
    has_nodes(job, 4);
    job->now.settled = false; /* its workers are not there yet */
    assert_int_equal(goal(job), 4);
    assert_null(requests_ended(job->requests));
    job->now.settled = true;
    assert_ended(job, 1, REQUEST_DONE);
    assert_int_equal(goal(job), 0);
    job_free(job);
}

/* Two that ask at once are served together, and each is told. */
static void test_growth_on_growth(void **state)
{
    struct job *job = job_of("2:8", 2);

    (void)state;
    assert_int_equal(extend(job, 1, "a"), 1);
    assert_int_equal(goal(job), 3);
    assert_int_equal(extend(job, 2, "b"), 2);
    assert_int_equal(extend(job, 4, "c"), REQUEST_BAD);
    assert_int_equal(goal(job), 5);
    has_nodes(job, 3);
    assert_ended(job, 1, REQUEST_DONE);
    has_nodes(job, 5);
    assert_ended(job, 2, REQUEST_DONE);
    job_free(job);
}

/* A release during growth waits for its end, whichever it is, and growth after it for its. */
static void test_release_during_growth(void **state)
{
    struct job *job = job_of("2:8", 3);

    (void)state;
    assert_int_equal(extend(job, 2, NULL), 1);
    assert_int_equal(goal(job), 5);
    assert_int_equal(drop(job, 1, NULL), 2);
    assert_int_equal(extend(job, 1, NULL), 3);
    assert_int_equal(goal(job), 5);
    has_nodes(job, 5);
    assert_ended(job, 1, REQUEST_DONE);
    assert_int_equal(goal(job), 4);
    has_nodes(job, 4);
    assert_ended(job, 2, REQUEST_DONE);
    assert_int_equal(goal(job), 5);
    job_free(job);
}

static void test_release_after_growth_that_fails(void **state)
{
    struct job *job = job_of("2:8", 2);

    (void)state;
    assert_int_equal(extend(job, 2, NULL), 1);
    assert_int_equal(goal(job), 4);
    assert_int_equal(drop(job, 1, NULL), 2); /* one of those to come */
    requests_growth_failed(job->requests, "extension job 7 was cancelled");
    assert_ended(job, 1, REQUEST_FAILED);
    assert_ended(job, 2, REQUEST_FAILED); /* there is none */
    assert_int_equal(goal(job), 0);
    job_free(job);
}

/* Gone is what Slurm says is gone. */
static void test_release_by_name(void **state)
{
    struct job *job = job_of("2:8", 4);
    char *which[] = {"n3", NULL};

    (void)state;
    assert_int_equal(drop(job, 1, which), 1);
    assert_int_equal(goal(job), 3);
    assert_string_equal(requests_current(job->requests)->nodes[0], "n3");
    job->now.size = 3; /* the world goes on without it, and its job still ends */
    assert_int_equal(goal(job), 3);
    job->held[2] = "n4";
    job->held[3] = NULL;
    assert_ended(job, 1, REQUEST_DONE);
    job_free(job);
}

static void test_cancel(void **state)
{
    struct job *job = job_of("2:8", 2);
    struct error err = {""};

    (void)state;
    assert_int_equal(extend(job, 1, "a"), 1);
    assert_int_equal(extend(job, 1, "b"), 2);
    assert_int_equal(goal(job), 4);
    assert_int_equal(requests_cancel(job->requests, 0, "b", &err), 0);
    assert_ended(job, 2, REQUEST_CANCELLED);
    assert_int_equal(goal(job), 3);
    assert_int_equal(requests_cancel(job->requests, 0, "b", &err), REQUEST_NOT_FOUND);
    assert_one_line(err.text);
    assert_int_equal(requests_cancel(job->requests, 1, NULL, &err), 0);
    assert_int_equal(requests_cancel(job->requests, 1, NULL, &err), REQUEST_NOT_FOUND);
    assert_int_equal(requests_cancel(job->requests, 0, NULL, &err), REQUEST_NOT_FOUND);
    assert_ended(job, 1, REQUEST_CANCELLED);
    assert_int_equal(goal(job), 0);
    job_free(job);
}

static void test_what_was_granted(void **state)
{
    struct job *job = job_of("2:8", 2);

    (void)state;
    assert_int_equal(extend(job, 3, NULL), 1);
    goal(job);
    assert_int_equal(requests_take_grant(job->requests, 1), 0); /* not yet */
    has_nodes(job, 5);
    assert_ended(job, 1, REQUEST_DONE);
    assert_int_equal(requests_take_grant(job->requests, 1), 3);
    assert_int_equal(requests_take_grant(job->requests, 1), 0); /* given back */
    assert_int_equal(requests_take_grant(job->requests, 0), 0);
    assert_int_equal(requests_take_grant(job->requests, 2), 0);
    job_free(job);
}

static void test_time(void **state)
{
    struct job *job = job_of("2:8", 2);
    struct request_wish wish = {.nodes = 1, .expires = 10};
    struct error err = {""};

    (void)state;
    assert_int_equal(requests_extend(job->requests, &job->now, &wish, &err), 1);
    assert_true(requests_update(job->requests, &job->now, 9) == 10);
    assert_null(requests_ended(job->requests));
    assert_true(requests_update(job->requests, &job->now, 10) == 0);
    assert_ended(job, 1, REQUEST_FAILED);
    job_free(job);
}

static void test_the_job_ends(void **state)
{
    struct job *job = job_of("2:8", 2);

    (void)state;
    extend(job, 1, NULL);
    goal(job);
    drop(job, 1, NULL);
    requests_fail_all(job->requests, "the job ends");
    assert_ended(job, 1, REQUEST_FAILED);
    assert_false(requests_empty(job->requests));
    assert_ended(job, 2, REQUEST_FAILED);
    assert_null(requests_ended(job->requests));
    assert_true(requests_empty(job->requests));
    job_free(job);
}

static void test_a_flood(void **state)
{
    struct job *job = job_of("2:8", 2);

    (void)state;
    for (int i = 0; i < REQUESTS_MAX / 2; i++) {
        assert_true(extend(job, 1, NULL) > 0);
        assert_true(drop(job, 1, NULL) > 0);
    }
    assert_int_equal(extend(job, 1, NULL), REQUEST_NOT_AVAILABLE);
    job_free(job);
}

/* A job that does, slowly and with setbacks, what is to be carried out. */
static void random_job(uint64_t *seed)
{
    struct job *job = job_of(random_below(seed, 2) ? "2:8" : "2:8:2", 2);
    int accepted = 0, ended = 0;
    bool over[200] = {false};

    for (int step = 0; step < 400; step++) {
        const struct request *current;
        struct request *each;
        int what = (int)random_below(seed, 12), rc = 0;

        if (step < 150 && what < 3)
            rc = extend(job, 1 + (int)random_below(seed, 3), NULL);
        else if (step < 150 && what < 5)
            rc = drop(job, 1 + (int)random_below(seed, 3), NULL);
        else if (what == 5 && accepted > 0)
            requests_cancel(job->requests, 1 + (int)random_below(seed, (uint32_t)accepted), NULL,
                            NULL);
        else if (what == 6)
            requests_growth_failed(job->requests, "no");
        else if (what == 7 && job->now.size > 2 && job->sizes.step == 1)
            has_nodes(job, job->now.size - 1); /* preempted */
        accepted += rc > 0;
        requests_update(job->requests, &job->now, 0);
        current = requests_current(job->requests);
        if (current != NULL) {
            assert_true(sizes_allowed(&job->sizes, current->goal));
            if (random_below(seed, 3) == 0 && job->now.size != current->goal)
                has_nodes(job, current->goal);
        }
        requests_update(job->requests, &job->now, 0);
        while ((each = requests_ended(job->requests)) != NULL) {
            assert_in_range(each->number, 1, accepted);
            assert_false(over[each->number]);
            over[each->number] = true;
            ended++;
            request_free(each);
        }
    }
    assert_int_equal(ended, accepted);
    assert_null(requests_current(job->requests));
    job_free(job);
}

static void test_random(void **state)
{
    uint64_t seed = 5;

    (void)state;
    for (int i = 0; i < 300; i++)
        random_job(&seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_refused_for_other_reasons),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_growth_on_growth),
        cmocka_unit_test(test_release_during_growth),
        cmocka_unit_test(test_release_after_growth_that_fails),
        cmocka_unit_test(test_release_by_name),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_what_was_granted),
        cmocka_unit_test(test_time),
        cmocka_unit_test(test_the_job_ends),
        cmocka_unit_test(test_a_flood),
        cmocka_unit_test(test_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

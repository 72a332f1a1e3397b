/* SPDX-License-Identifier: GPL-2.0-or-later */
/* common/crew: threads that share work. */
#include "tests/unit/support.h"

#include <pthread.h>
#include <string.h>

#include "common/crew.h"

#define PIECES 500
#define LANES  8

struct job {
    pthread_mutex_t lock;
    int done[PIECES];
    bool busy[LANES];
    size_t order[PIECES], ordered;
    size_t bad; /* the piece that fails */
    bool late;  /* … in its turn */
    bool in_order;
};

static int work(struct crew *crew, int lane, size_t piece, void *arg, struct error *err)
{
    struct job *job = arg;

    pthread_mutex_lock(&job->lock);
    assert_in_range(lane, 0, LANES - 1);
    assert_false(job->busy[lane]);
    job->busy[lane] = true;
    job->done[piece]++;
    pthread_mutex_unlock(&job->lock);
    if (piece == job->bad && !job->late)
        return error_set(err, "piece %zu", piece);
    if (job->in_order) {
        if (!crew_turn(crew, piece))
            return -1;
        if (piece == job->bad)
            return error_set(err, "piece %zu", piece);
        job->order[job->ordered++] = piece;
        crew_pass(crew);
    }
    pthread_mutex_lock(&job->lock);
    job->busy[lane] = false;
    pthread_mutex_unlock(&job->lock);
    return 0;
}

static int run(struct job *job, int lanes, size_t count, struct error *err)
{
    *err = (struct error){""};
    return crew_run(lanes, count, work, job, err);
}

static void test_each_piece_is_done_once(void **unused)
{
    static const size_t counts[] = {0, 1, 7, 8, 9, PIECES};
    struct error err;
    (void)unused;

    for (int lanes = 1; lanes <= LANES; lanes++)
        for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
            struct job job = {.lock = PTHREAD_MUTEX_INITIALIZER, .bad = PIECES};

            assert_int_equal(run(&job, lanes, counts[i], &err), 0);
            for (size_t piece = 0; piece < PIECES; piece++)
                assert_int_equal(job.done[piece], piece < counts[i]);
        }
}

static void test_turns_are_in_order(void **unused)
{
    struct error err;
    (void)unused;

    for (int lanes = 1; lanes <= LANES; lanes++) {
        struct job job = {.lock = PTHREAD_MUTEX_INITIALIZER, .bad = PIECES, .in_order = true};

        assert_int_equal(run(&job, lanes, PIECES, &err), 0);
        assert_int_equal(job.ordered, PIECES);
        for (size_t i = 0; i < PIECES; i++)
            assert_int_equal(job.order[i], i);
    }
}

static void test_a_failure_ends_all(void **unused)
{
    struct error err;
    (void)unused;

    for (int lanes = 1; lanes <= LANES; lanes++)
        for (int kind = 0; kind < 3; kind++) {
            struct job job = {.lock = PTHREAD_MUTEX_INITIALIZER,
                              .bad = 40,
                              .in_order = kind > 0,
                              .late = kind == 2};

            assert_int_equal(run(&job, lanes, PIECES, &err), -1);
            assert_string_equal(err.text, "piece 40");
            assert_true(kind == 0 || job.ordered <= 40);
        }
}

static void test_nobody_listens(void **unused)
{
    struct job job = {.lock = PTHREAD_MUTEX_INITIALIZER, .bad = 3};
    (void)unused;

    assert_int_equal(crew_run(LANES, PIECES, work, &job, NULL), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_piece_is_done_once),
        cmocka_unit_test(test_turns_are_in_order),
        cmocka_unit_test(test_a_failure_ends_all),
        cmocka_unit_test(test_nobody_listens),
    };

    return cmocka_run_group_tests_name("crew", tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls beside the loop follow each other, and those for later let the others pass. */
#include "tests/unit/support.h"

#include <stdatomic.h>

#include "common/slurm_queue.h"

struct call {
    char name;
    uv_loop_t *loop;
    int again; /* so often it is to be asked once more, later */
};

static char said[64];
static size_t said_len;
static atomic_int at_work;

static void say(char what)
{
    assert_true(said_len + 1 < sizeof(said));
    said[said_len++] = what;
}

static void work(void *arg)
{
    (void)arg;
    assert_int_equal(atomic_fetch_add(&at_work, 1), 0);
    uv_sleep(1);
    atomic_fetch_sub(&at_work, 1);
}

static void done(void *arg)
{
    struct call *call = arg;

    say(call->name);
    if (call->again-- > 0)
        assert_int_equal(slurm_ask_after(call->loop, 1, work, done, call), 0);
}

static void test_order(void **state)
{
    uv_loop_t loop;
    struct call later = {'l', &loop, 2}, first = {'1', &loop, 0}, second = {'2', &loop, 1};

    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(slurm_ask_after(&loop, 1000, work, done, &later), 0);
    assert_int_equal(slurm_ask(&loop, work, done, &first), 0);
    assert_int_equal(slurm_ask(&loop, work, done, &second), 0);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_string_equal(said, "122lll");
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

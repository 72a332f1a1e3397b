/* SPDX-License-Identifier: GPL-2.0-or-later */
/* flush/guard: a child ends, is stopped, or takes too long. */
#include "flush/guard.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/stop.h"
#include "tests/unit/support.h"

static pid_t sleeper(void)
{
    pid_t child = fork();

    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* the test may fail */
        for (;;)
            pause();
    }
    assert_true(child > 0);
    return child;
}

static void assert_gone(pid_t child)
{
    errno = 0;
    assert_int_equal(waitpid(child, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void test_ends(void **state)
{
    pid_t child = fork();

    (void)state;
    if (child == 0)
        _exit(0);
    assert_int_equal(guard_wait(child, 60), GUARD_ENDED);
    assert_gone(child);
}

static void test_killed_by_its_user(void **state)
{
    pid_t child = sleeper();

    (void)state;
    kill(child, SIGKILL);
    assert_int_equal(guard_wait(child, 60), GUARD_ENDED);
    assert_gone(child);
}

static void test_stopped(void **state)
{
    pid_t child = sleeper();

    (void)state;
    kill(child, SIGSTOP);
    assert_int_equal(guard_wait(child, 60), GUARD_STOPPED);
    assert_gone(child);
}

/* While it is waited for. */
static void test_stopped_later(void **state)
{
    pid_t child = sleeper(), other = fork();

    (void)state;
    if (other == 0) {
        const struct timespec pause = {.tv_nsec = 50000000};

        nanosleep(&pause, NULL);
        kill(child, SIGSTOP);
        _exit(0);
    }
    assert_int_equal(guard_wait(child, 60), GUARD_STOPPED);
    assert_gone(child);
    assert_int_equal(waitpid(other, NULL, 0), other);
}

static void test_late(void **state)
{
    pid_t child = sleeper();

    (void)state;
    assert_int_equal(guard_wait(child, 0), GUARD_LATE);
    assert_gone(child);
}

/* The request of somebody who knows this process only. */
static void test_asked_to_stop(void **state)
{
    pid_t child = sleeper();

    (void)state;
    stop_watch(0);
    raise(SIGTERM);
    assert_int_equal(guard_wait(child, 60), GUARD_ENDED);
    assert_gone(child);
    stop_watch(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends),    cmocka_unit_test(test_killed_by_its_user),
        cmocka_unit_test(test_stopped), cmocka_unit_test(test_stopped_later),
        cmocka_unit_test(test_late),    cmocka_unit_test(test_asked_to_stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* common/stop: a process ends in time, whatever its parent has left it. */
#include "common/stop.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/support.h"

/* The signal that has ended a child whose parent did that to SIGALRM. */
static int ends_by(bool blocks, bool ignores)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        sigset_t set;

        sigemptyset(&set);
        sigaddset(&set, SIGALRM);
        if (blocks)
            sigprocmask(SIG_BLOCK, &set, NULL);
        if (ignores)
            signal(SIGALRM, SIG_IGN);
        stop_limit(1);
        for (int i = 0; i < 20; i++)
            sleep(1); /* for a test that fails */
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void test_limit(void **state)
{
    (void)state;
    assert_int_equal(ends_by(true, false), SIGALRM);
    assert_int_equal(ends_by(false, true), SIGALRM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_limit)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmd/deadline: the end of time in a call that hangs. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/deadline.h"
#undef DEADLINE_MS
#define DEADLINE_MS 1800
#include "cmd/deadline.c"
#include "tests/unit/support.h"

/* Status and words of a program that is in such a call. */
static int run_out_of_time(void (*begin)(void), char *said, size_t size)
{
    int pipes[2], status = 0;
    ssize_t len;
    pid_t child;

    assert_int_equal(pipe(pipes), 0);
    child = fork();
    if (child == 0) {
        dup2(pipes[1], STDERR_FILENO);
        deadline_start();
        begin();
        signal(SIGALRM, SIG_DFL); /* as libslurm does while it talks to munged */
        for (;;)
            pause();
    }
    close(pipes[1]);
    len = read(pipes[0], said, size - 1);
    assert_true(len >= 0);
    said[len] = '\0';
    close(pipes[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void test_slurm_that_hangs(void **state)
{
    char said[256];
    int status = run_out_of_time(deadline_enter_slurm, said, sizeof(said));

    (void)state;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), STATUS_FAILED);
    assert_string_equal(said,
                        "selastic: Slurm did not answer within 1.8 s; see whether squeue works\n");
}

static void test_a_parent_that_has_blocked_it(void **state)
{
    char said[256];
    sigset_t set;
    int status;

    (void)state;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &set, NULL);
    status = run_out_of_time(deadline_enter_slurm, said, sizeof(said));
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), STATUS_FAILED);
}

static void test_a_thread_that_hangs(void **state)
{
    char said[256];
    int status = run_out_of_time(deadline_enter_threads, said, sizeof(said));

    (void)state;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), STATUS_FAILED);
    assert_non_null(strstr(said, "munged"));
}

static void test_what_ends_in_time_goes_on(void **state)
{
    (void)state;
    deadline_start();
    deadline_enter_slurm();
    deadline_leave();
    deadline_leave(); /* harmless */
    usleep(2000 * 1000);
    assert_true(deadline_over());
    assert_int_equal(deadline_left(), 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slurm_that_hangs),
        cmocka_unit_test(test_a_parent_that_has_blocked_it),
        cmocka_unit_test(test_a_thread_that_hangs),
        cmocka_unit_test(test_what_ends_in_time_goes_on),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("selastic deadline", tests, NULL, NULL);
}

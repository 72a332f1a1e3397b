/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The process between slurmstepd and an agent: real processes, this one in the place of
 * slurmstepd. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/support.h"

#include "agent/supervise.h"
#include "lib/drain_notices.h"

#define LIMIT 120 /* seconds for each process, which ends by SIGALRM else */

/* What an agent does; its exit status says what went wrong. */
typedef void (*agent_part)(struct agent_handover *agent_handover);

static void know_somebody(struct agent_handover *agent_handover)
{
    agent_handover->places.count = 2;
    agent_handover->known = true;
}

/* The status of the task that slurmstepd would see. */
static int status_of(agent_part part)
{
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        struct agent_handover *agent_handover = supervise(0);

        alarm(LIMIT);
        if (agent_handover == NULL)
            _exit(99);
        part(agent_handover);
        _exit(98);
    }
    while (waitpid(pid, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    return status;
}

static void end_with_three(struct agent_handover *agent_handover)
{
    _exit(agent_handover->starts == 1 && getppid() != getpid() ? 3 : 97);
}

static void its_status_is_that_of_the_agent(void **state)
{
    int status = status_of(end_with_three);

    (void)state;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 3);
}

static void be_killed_once(struct agent_handover *agent_handover)
{
    know_somebody(agent_handover);
    if (agent_handover->starts == 1)
        raise(SIGKILL);
    _exit(agent_handover->starts == 2 && agent_handover->places.count == 2 ? 0 : 97);
}

static void one_that_was_killed_is_started_again(void **state)
{
    int status = status_of(be_killed_once);

    (void)state;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void be_killed_alone(struct agent_handover *agent_handover)
{
    if (agent_handover->starts > 1)
        _exit(97);
    raise(SIGKILL);
}

static void without_anybody_to_join_it_is_not(void **state)
{
    int status = status_of(be_killed_alone);

    (void)state;
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
}

static void be_killed_always(struct agent_handover *agent_handover)
{
    know_somebody(agent_handover);
    if (agent_handover->starts > 4)
        _exit(97);
    raise(SIGKILL);
}

static void not_for_ever(void **state)
{
    int status = status_of(be_killed_always);

    (void)state;
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
}

/* As Slurm ends a step: all its processes get SIGTERM, and what is left SIGKILL. */
static void be_ended_by_slurm(struct agent_handover *agent_handover)
{
    know_somebody(agent_handover);
    if (agent_handover->starts > 1)
        _exit(97);
    kill(getppid(), SIGTERM);
    usleep(300000);
    raise(SIGKILL);
}

static void nor_when_it_was_told_to_end(void **state)
{
    int status = status_of(be_ended_by_slurm);

    (void)state;
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
}

static volatile sig_atomic_t got[32];

static void count(int number)
{
    got[number] = got[number] + 1;
}

/* As with proctrack/cgroup: Slurm signals only the process in between, which hands on what is for
 * the agent or for its workers, and stays. Signals of the agent's own do not come back. */
static void hear_of_slurms_signals(struct agent_handover *agent_handover)
{
    static const int passed[] = {
        SIGUSR1, SIGHUP, SIGQUIT, SIGUSR2, SIGURG, SIGXCPU, DRAIN_NOTICES_SIGNAL, SIGINT, SIGTERM};
    static const int kept[] = {SIGCONT, SIGTSTP}; /* SIGALRM ends the test */
    pid_t parent = getppid();
    pid_t stranger;
    int status = 0;

    for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
        signal(passed[i], count);
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
        signal(kept[i], count);
    kill(parent, SIGUSR2); /* from the agent */
    stranger = fork();
    if (stranger == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
            kill(parent, kept[i]);
        for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
            if (passed[i] != SIGUSR2)
                kill(parent, passed[i]);
        _exit(0);
    }
    while (waitpid(stranger, &status, 0) < 0)
        continue;
    while (!got[SIGTERM] || !got[SIGUSR1] || !got[SIGHUP] || !got[SIGQUIT] || !got[SIGURG] ||
           !got[SIGXCPU] || !got[SIGINT] || !got[DRAIN_NOTICES_SIGNAL])
        usleep(1000);
    if (got[SIGUSR2] || got[SIGCONT] || got[SIGTSTP] || getppid() != parent)
        _exit(97);
    know_somebody(agent_handover);
    raise(SIGKILL); /* it was told to end: nobody starts it again */
}

static void it_hands_slurms_signals_on(void **state)
{
    int status = status_of(hear_of_slurms_signals);

    (void)state;
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
}

/* The process that is there for slurmstepd is killed. What the agent finds comes through a pipe,
 * whose other end tells the one in between apart from it. */
static void an_agent_knows_who_is_lost(void **state)
{
    (void)state;
    for (int kill_stepd = 0; kill_stepd < 2; kill_stepd++) {
        int ends[2];
        char found = '?';
        pid_t stepd;

        assert_int_equal(pipe(ends), 0);
        stepd = fork();
        assert_true(stepd >= 0);
        if (stepd == 0) {
            pid_t self = getpid(), task = fork();
            struct agent_handover *agent_handover;
            bool spoiled = false;

            if (task != 0)
                for (;;)
                    pause();
            alarm(LIMIT);
            agent_handover = supervise(0);
            if (agent_handover == NULL || supervise_lost(agent_handover, &spoiled) ||
                supervise_stepd() != self)
                _exit(1);
            kill(kill_stepd ? self : getppid(), SIGKILL);
            while (!supervise_lost(agent_handover, &spoiled))
                usleep(1000);
            _exit(write(ends[1], spoiled ? "s" : "g", 1) != 1);
        }
        close(ends[1]);
        assert_int_equal(read(ends[0], &found, 1), 1);
        close(ends[0]);
        kill(stepd, SIGKILL);
        waitpid(stepd, NULL, 0);
        assert_int_equal(found, kill_stepd ? 'g' : 's');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_status_is_that_of_the_agent),
        cmocka_unit_test(one_that_was_killed_is_started_again),
        cmocka_unit_test(without_anybody_to_join_it_is_not),
        cmocka_unit_test(not_for_ever),
        cmocka_unit_test(nor_when_it_was_told_to_end),
        cmocka_unit_test(it_hands_slurms_signals_on),
        cmocka_unit_test(an_agent_knows_who_is_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

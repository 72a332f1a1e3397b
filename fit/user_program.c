/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program of the user (program.h). */
#include "fit/user_program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LOOK_NS    100000000L
#define GRACE_LOOK 100 /* looks from SIGTERM to SIGKILL */
#define CANNOT_RUN 127

static int open_log(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* Of the child, which never returns. */
static void become(const struct program *program, int log)
{
    sigset_t none;
    int input = open("/dev/null", O_RDONLY);

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    dup2(input, STDIN_FILENO);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    for (char *const *one = program->added; *one != NULL; one++)
        putenv(*one);
    execvp(program->argv[0], program->argv);
    dprintf(STDERR_FILENO, "elastic-fit: %s: %s\n", program->argv[0], strerror(errno));
    _exit(CANNOT_RUN);
}

/* Until a child has ended, or some time has passed. */
static void pause_once(const sigset_t *ends)
{
    struct timespec time = {.tv_nsec = LOOK_NS};

    sigtimedwait(ends, NULL, &time);
}

/* It is waited for, and must not come before that. */
static void block_child_signal(void)
{
    sigset_t ends;

    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ends, NULL);
}

/* It is not reaped: while it is there, its number, and that of its group, is nobody else's. */
bool program_has_ended(pid_t child)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
}

/* False: it was ended. What it has started goes with it. */
static bool await(const struct program *program, pid_t child, int *status)
{
    bool wanted = true;
    sigset_t ends;
    int looks = 0;

    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    while (!program_has_ended(child)) {
        if (wanted && program->unwanted(program->arg)) {
            wanted = false;
            kill(-child, SIGTERM);
        }
        if (!wanted && looks++ == GRACE_LOOK)
            kill(-child, SIGKILL);
        pause_once(&ends);
    }
    kill(-child, SIGKILL);
    while (waitpid(child, status, 0) < 0 && errno == EINTR)
        ;
    return wanted;
}

pid_t program_start(const struct program *program, int *code, struct error *why)
{
    int log = open_log(program->log);
    pid_t child;

    block_child_signal();
    child = log >= 0 ? fork() : -1;
    *code = CANNOT_RUN;
    if (child == 0)
        become(program, log);
    if (child < 0)
        error_set(why, "%s: %s", error_path(program->log).text, strerror(errno));
    else
        setpgid(child, child);
    if (log >= 0)
        close(log);
    return child;
}

bool program_await(const struct program *program, pid_t child, int *code, struct error *why)
{
    int status = 0;
    bool wanted = await(program, child, &status);

    *code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (WIFSIGNALED(status))
        error_set(why, "signal %d has ended it", WTERMSIG(status));
    else if (*code == CANNOT_RUN)
        error_set(why, "%s cannot be run; 'selastic fit log' says why",
                  error_value(program->argv[0]).text);
    else if (*code != 0)
        error_set(why, "exit status %d; 'selastic fit log' has what it said", *code);
    return wanted;
}

bool program_run(const struct program *program, int *code, struct error *why)
{
    pid_t child = program_start(program, code, why);

    return child < 0 || program_await(program, child, code, why);
}

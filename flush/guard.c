/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process that must end (guard.h). The parent hears of a stop at once, and nobody else gets the
 * child's number before the parent has seen its end. */
#include "flush/guard.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>

#include "common/monotonic.h"
#include "common/stop.h"

#define END_MAX 10 /* seconds for a killed process, which may be in a call of a file system */

/* What has become of the child: true if it has ended, or if it has stopped and *stopped says so. */
static bool look(pid_t child, bool *stopped)
{
    int status;
    pid_t got = waitpid(child, &status, WNOHANG | WUNTRACED);

    *stopped = got == child && WIFSTOPPED(status);
    return got == child || (got < 0 && errno == ECHILD);
}

/* False: the time is over. */
static bool wait_until(time_t until, pid_t child, bool *stopped)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    while (!look(child, stopped)) {
        struct timespec left = {.tv_sec = until - monotonic_s()};

        if (left.tv_sec <= 0)
            return false;
        if (stop_asked())
            kill(child, stop_asked());
        sigtimedwait(&set, NULL, &left);
    }
    return true;
}

enum guarded guard_wait(pid_t child, int limit)
{
    bool stopped = false;
    enum guarded result;
    time_t until;
    sigset_t set;

    /* What has come before this is found by the first look. */
    signal(SIGCHLD, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    if (wait_until(monotonic_s() + limit, child, &stopped) && !stopped)
        return GUARD_ENDED;
    result = stopped ? GUARD_STOPPED : GUARD_LATE;
    kill(child, SIGKILL);
    until = monotonic_s() + END_MAX;
    do { /* a stop that was reported late is no end */
        if (!wait_until(until, child, &stopped))
            return GUARD_STUCK;
    } while (stopped);
    return result;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The process between slurmstepd and an agent (supervise.h). */
#include "agent/supervise.h"

#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STARTS_MAX 4   /* of agents that live for less than … */
#define LONG_LIFE  600 /* seconds */

static pid_t stepd;  /* of whom this process, or the one in between, is a child; 0: not known */
static pid_t parent; /* of the agent; 0: nobody is in between */
static bool told_to_end;

/* All signals are blocked, and come here. Slurm sends its own to every process of the step: they are for the agent. */
static void take(int number, struct legacy *legacy)
{
    told_to_end = told_to_end || number == SIGTERM || number == SIGINT;
    /* That of the thread that has started us is no end of it. */
    if (getppid() != stepd) {
        legacy->stepd_gone = true;
        _exit(0); /* nobody asks; the agent finds that it is alone */
    }
}

static int wait_for(pid_t agent, struct legacy *legacy)
{
    sigset_t all;
    int status;

    sigfillset(&all);
    for (;;) {
        take(sigwaitinfo(&all, NULL), legacy);
        if (waitpid(agent, &status, WNOHANG) == agent)
            return status;
    }
}

static void sleep_for(double seconds, struct legacy *legacy)
{
    struct timespec now, until;
    sigset_t all;

    sigfillset(&all);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)seconds + 1;
    do {
        take(sigtimedwait(&all, NULL, &(struct timespec){.tv_nsec = 200000000}), legacy);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec < until.tv_sec && !told_to_end);
}

static void end_like(int status) __attribute__((noreturn));
static void end_like(int status)
{
    sigset_t all;

    if (WIFEXITED(status))
        _exit(WEXITSTATUS(status));
    prctl(PR_SET_DUMPABLE, 0); /* the agent has left a core, if any */
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
    sigfillset(&all);
    sigprocmask(SIG_UNBLOCK, &all, NULL);
    _exit(128 + WTERMSIG(status));
}

/* Is there somebody whom another agent could join? */
static bool is_of_use(const struct legacy *legacy, int status)
{
    return WIFSIGNALED(status) && !told_to_end && legacy->known && legacy->count > 0 &&
           legacy->starts < STARTS_MAX;
}

struct legacy *supervise(double pause)
{
    struct legacy *legacy = mmap(NULL, sizeof(*legacy), PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t self = getpid(), agent;
    sigset_t all, before;
    time_t begun;
    int status = 0;

    if (legacy == MAP_FAILED)
        return NULL;
    stepd = getppid();
    signal(SIGCHLD, SIG_DFL);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    prctl(PR_SET_PDEATHSIG, SIGHUP);
    for (;;) {
        legacy->starts++;
        begun = time(NULL);
        agent = fork();
        if (agent <= 0)
            break;
        prctl(PR_SET_NAME, SUPERVISE_NAME);
        status = wait_for(agent, legacy);
        if (time(NULL) - begun > LONG_LIFE)
            legacy->starts = 1;
        if (!is_of_use(legacy, status))
            end_like(status);
        /* The leader is not to count on what the other one has heard. */
        sleep_for(pause, legacy);
        if (told_to_end)
            end_like(status);
    }
    if (agent < 0 && legacy->starts > 1)
        end_like(status);
    if (agent < 0)
        prctl(PR_SET_PDEATHSIG, 0);
    if (legacy->starts > 1)
        prctl(PR_SET_NAME, "elasticrun");
    sigprocmask(SIG_SETMASK, &before, NULL);
    parent = agent == 0 ? self : 0;
    return agent == 0 ? legacy : NULL;
}

pid_t supervise_stepd(void)
{
    return stepd > 1 ? stepd : getppid();
}

bool supervise_lost(const struct legacy *legacy, bool *spoiled)
{
    if (parent == 0 || getppid() == parent)
        return false;
    *spoiled = !legacy->stepd_gone;
    return true;
}

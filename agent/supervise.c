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

#include "agent/program_signals.h"
#include "lib/drain_notices.h"

#define STARTS_MAX 4   /* of agents that live for less than … */
#define LONG_LIFE  600 /* seconds */
#define STEPD_GONE SIGRTMIN

static pid_t stepd;  /* whose child this process, or the process in between, is; 0: not known */
static pid_t parent; /* of the agent; 0: no process is in between */
static bool told_to_end;

/* All signals are blocked, and come here; `number` may be an error. Slurm may have sent the signal
 * to us only, as to slurmstepd's child, or to every process of the step. A second copy does no harm
 * to the agent. agent: 0 if there is none. */
static void take(int number, const siginfo_t *info, pid_t agent,
                 struct agent_handover *agent_handover)
{
    bool ends = number == SIGTERM || number == SIGINT;

    told_to_end = told_to_end || ends;
    if (agent > 0 && info->si_pid != agent &&
        (ends || number == DRAIN_NOTICES_SIGNAL || program_signal(number)))
        kill(agent, number); /* not reaped yet, so the pid is its own */
    /* The signal also comes when only the parent's thread that has started this process ends. */
    if (getppid() != stepd) {
        agent_handover->stepd_gone = true;
        _exit(0); /* nobody asks; the agent finds that no process watches it */
    }
}

static int wait_for(pid_t agent, struct agent_handover *agent_handover)
{
    siginfo_t info = {0};
    sigset_t all;
    int status;

    sigfillset(&all);
    for (;;) {
        int number = sigwaitinfo(&all, &info);

        take(number, &info, agent, agent_handover);
        if (waitpid(agent, &status, WNOHANG) == agent)
            return status;
    }
}

static void sleep_for(double seconds, struct agent_handover *agent_handover)
{
    struct timespec now, until;
    siginfo_t info = {0};
    sigset_t all;

    sigfillset(&all);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)seconds + 1;
    do {
        int number = sigtimedwait(&all, &info, &(struct timespec){.tv_nsec = 200000000});

        take(number, &info, 0, agent_handover);
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

/* Is there an agent that a new agent could join? */
static bool is_of_use(const struct agent_handover *agent_handover, int status)
{
    return WIFSIGNALED(status) && !told_to_end && agent_handover->known &&
           agent_handover->places.count > 1 && agent_handover->starts < STARTS_MAX;
}

struct agent_handover *supervise(double pause)
{
    struct agent_handover *agent_handover = mmap(
        NULL, sizeof(*agent_handover), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t self = getpid(), agent;
    sigset_t all, before;
    time_t begun;
    int status = 0;

    if (agent_handover == MAP_FAILED)
        return NULL;
    stepd = getppid();
    signal(SIGCHLD, SIG_DFL);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    prctl(PR_SET_PDEATHSIG, STEPD_GONE);
    for (;;) {
        agent_handover->starts++;
        begun = time(NULL);
        agent = fork();
        if (agent <= 0)
            break;
        prctl(PR_SET_NAME, SUPERVISE_NAME);
        status = wait_for(agent, agent_handover);
        if (time(NULL) - begun > LONG_LIFE)
            agent_handover->starts = 1;
        if (!is_of_use(agent_handover, status))
            end_like(status);
        /* After this pause the leader does not count on messages that the killed agent has
         * heard. */
        sleep_for(pause, agent_handover);
        if (told_to_end)
            end_like(status);
    }
    if (agent < 0 && agent_handover->starts > 1)
        end_like(status);
    if (agent < 0)
        prctl(PR_SET_PDEATHSIG, 0);
    if (agent_handover->starts > 1)
        prctl(PR_SET_NAME, "elasticrun");
    sigprocmask(SIG_SETMASK, &before, NULL);
    parent = agent == 0 ? self : 0;
    return agent == 0 ? agent_handover : NULL;
}

pid_t supervise_stepd(void)
{
    return stepd > 1 ? stepd : getppid();
}

bool supervise_lost(const struct agent_handover *agent_handover, bool *spoiled)
{
    if (parent == 0 || getppid() == parent)
        return false;
    *spoiled = !agent_handover->stepd_gone;
    return true;
}

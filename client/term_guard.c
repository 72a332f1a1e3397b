/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeping Slurm's SIGTERM from ending a worker before it has saved.
 *
 * When Slurm wants a node, slurmstepd signals every process of the step: the agent, which tells the leader and gets an
 * agreed step for all ranks, but also the workers themselves and the processes that load their data. Python's default
 * would be to die there and then, in the middle of a step. So a worker that attaches, and whatever it forks later,
 * lets a SIGTERM pass that comes from its slurmstepd: the event that follows says what to do, and SIGKILL comes if
 * nothing is done. SIGTERM from the agent, from the parent (a data loader ending its processes), or from a user ends
 * the process as ever. */
#include "client/term_guard.h"

#include <signal.h>
#include <stddef.h>

/* A signal handler has no argument for this. Written once, before the handler is installed. */
static volatile pid_t stepd_pid;

static void on_term(int number, siginfo_t *info, void *context)
{
    struct sigaction action = {.sa_handler = SIG_DFL};

    (void)context;
    if (info->si_code == SI_USER && info->si_pid == stepd_pid)
        return;
    sigaction(number, &action, NULL);
    raise(number); /* delivered when this handler returns */
}

void term_guard_install(pid_t stepd)
{
    struct sigaction action = {.sa_sigaction = on_term, .sa_flags = SA_SIGINFO | SA_RESTART}, old;

    if (stepd <= 1 || sigaction(SIGTERM, NULL, &old) != 0 || (old.sa_flags & SA_SIGINFO) ||
        old.sa_handler != SIG_DFL)
        return;
    stepd_pid = stepd;
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
}

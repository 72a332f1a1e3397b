/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeping Slurm's SIGTERM from ending a worker before it has saved.
 *
 * When Slurm wants a node, slurmstepd signals every process of the step. The agent gets the signal,
 * tells the leader, and gets a step at which all ranks stop. But the workers get the signal, too,
 * and so do the processes that load their data. By default Python would end at once, in the middle
 * of a step.
 *
 * So a worker that attaches, and every process that it forks later, ignores a SIGTERM from its
 * slurmstepd. The event that follows says what to do, and SIGKILL comes if nothing is done. SIGTERM
 * from the agent, from the parent (a data loader that ends its processes), or from a user ends the
 * process as before.
 *
 * A worker's own handler is left alone: the program knows what it wants. In a data loader's process
 * it is not left alone: PyTorch installs a handler there that ends the process on any SIGTERM but
 * its parent's, and takes the worker with it. */
#include "client/term_guard.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "client/term_signal.h"

/* A signal handler has no argument for these values. They are written before the handler is
 * installed. */
static volatile pid_t stepd_pid;
static struct sigaction next_action;

static void on_term(int number, siginfo_t *info, void *context)
{
    if (!term_signal_is_stepds(info, stepd_pid))
        term_signal_pass(&next_action, number, info, context);
}

static bool is_default(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) == 0 && action->sa_handler == SIG_DFL;
}

static bool is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) != 0 && action->sa_sigaction == on_term;
}

static void install_before(const struct sigaction *next)
{
    struct sigaction action = {.sa_sigaction = on_term, .sa_flags = SA_SIGINFO | SA_RESTART};

    next_action = *next;
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
}

void term_guard_install(pid_t stepd)
{
    struct sigaction old;

    if (stepd <= 1 || sigaction(SIGTERM, NULL, &old) != 0)
        return;
    stepd_pid = stepd;
    if (is_default(&old))
        install_before(&old);
}

void term_guard_chain(void)
{
    struct sigaction old;

    if (stepd_pid > 1 && sigaction(SIGTERM, NULL, &old) == 0 && !is_ours(&old))
        install_before(&old);
}

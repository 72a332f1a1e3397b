/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SIGTERM of slurmstepd, and SIGTERM of others: what term_guard.c and shield.c share. All of it may
 * be called in a signal handler. */
#ifndef ELASTIC_CLIENT_TERM_SIGNAL_H
#define ELASTIC_CLIENT_TERM_SIGNAL_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/* libc's own: never that of a library which wraps it, as shield.c does. */
int term_signal_action(int number, const struct sigaction *action, struct sigaction *old);

/* Has slurmstepd sent this? stepd: its pid as the agent sees it. Outside of this process's pid
 * namespace it has no pid here. Then it is a sender from outside who is another user. */
bool term_signal_is_stepds(const siginfo_t *info, pid_t stepd);

/* Call the handler of `next`, with what the kernel has given to the handler that calls this. With
 * SIG_DFL the process ends by the signal once that handler has returned. */
void term_signal_pass(const struct sigaction *next, int number, siginfo_t *info, void *context);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SIGTERM of slurmstepd, and SIGTERM of others (term_signal.h). */
#include "client/term_signal.h"

#include <unistd.h>

/* The C library offers it under this name as well, which nobody wraps. */
int libc_sigaction(int number, const struct sigaction *action,
                   struct sigaction *old) __asm__("__sigaction");

int term_signal_action(int number, const struct sigaction *action, struct sigaction *old)
{
    return libc_sigaction(number, action, old);
}

/* The kernel gives 0 as the pid of a sender outside of the receiver's pid namespace. Of these, the
 * agent and its shims have the user of this process. slurmstepd is root, or the user nobody where
 * a user namespace does not know root. */
bool term_signal_is_stepds(const siginfo_t *info, pid_t stepd)
{
    if (info->si_code != SI_USER)
        return false;
    return info->si_pid == stepd || (info->si_pid == 0 && info->si_uid != getuid());
}

void term_signal_pass(const struct sigaction *next, int number, siginfo_t *info, void *context)
{
    const struct sigaction action = {.sa_handler = SIG_DFL};

    if (next->sa_handler == SIG_DFL) {
        term_signal_action(number, &action, NULL);
        raise(number); /* delivered when the handler returns */
    } else if ((next->sa_flags & SA_SIGINFO) != 0) {
        next->sa_sigaction(number, info, context);
    } else if (next->sa_handler != SIG_IGN) {
        next->sa_handler(number);
    }
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When to stop (stop.h). */
#include "common/stop.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static volatile sig_atomic_t asked, was_asked;

static void on_signal(int number)
{
    if (asked == 0)
        asked = number;
    was_asked = 1;
    /* A call that began to wait just after the program last looked is interrupted by the next
     * signal. */
    alarm(1);
}

void stop_watch(int seconds)
{
    static const int numbers[] = {SIGHUP, SIGINT, SIGTERM, SIGALRM};
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t set;

    asked = 0;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        sigaction(numbers[i], &action, NULL);
        sigaddset(&set, numbers[i]);
    }
    /* The parent process may have blocked them. */
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    alarm((unsigned int)seconds);
}

int stop_was_asked(void)
{
    return was_asked;
}

int stop_asked(void)
{
    return asked;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When to stop (stop.h). */
#include "common/stop.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static volatile sig_atomic_t asked, was_asked;

static pthread_mutex_t looking = PTHREAD_MUTEX_INITIALIZER;
static bool (*others)(void *arg);
static void *others_arg;

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
    stop_when(NULL, NULL);
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        sigaction(numbers[i], &action, NULL);
        sigaddset(&set, numbers[i]);
    }
    /* The parent process may have blocked them. */
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    alarm((unsigned int)seconds);
}

void stop_limit(int seconds)
{
    sigset_t set;

    signal(SIGALRM, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    alarm((unsigned int)seconds);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

void stop_when(bool (*look)(void *arg), void *arg)
{
    pthread_mutex_lock(&looking);
    others = look;
    others_arg = arg;
    pthread_mutex_unlock(&looking);
}

int stop_was_asked(void)
{
    return was_asked;
}

int stop_asked(void)
{
    if (asked == 0 && pthread_mutex_trylock(&looking) == 0) {
        if (others != NULL && others(others_arg))
            asked = SIGALRM;
        pthread_mutex_unlock(&looking);
    }
    return asked;
}

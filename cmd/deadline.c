/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The time limit of a subcommand: one process, so one clock and one timer. */
#include "cmd/deadline.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LEFT_MIN_MS 500
#define THREADS_MS  1000 /* the loop itself needs a moment to end */

static struct timespec start;
static int limit_ms = DEADLINE_MS;
static volatile enum exit_status status_at_end = STATUS_FAILED; /* of the handler */

void deadline_start_for(int ms, enum exit_status status)
{
    clock_gettime(CLOCK_MONOTONIC, &start);
    limit_ms = ms;
    status_at_end = status;
}

void deadline_start(void)
{
    deadline_start_for(DEADLINE_MS, STATUS_FAILED);
}

static long long spent(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - start.tv_sec) * 1000LL + (now.tv_nsec - start.tv_nsec) / 1000000;
}

int deadline_left(void)
{
    long long left = limit_ms - spent();
    return left > LEFT_MIN_MS ? (int)left : LEFT_MIN_MS;
}

bool deadline_over(void)
{
    return spent() >= limit_ms;
}

static const char thread_silent[] =
    "selastic: munged, the name service or the file system of the job's state directory does not "
    "answer\n";

/* Of the handler, which gets no argument. */
static const char *volatile message;
static timer_t timer;
static bool has_timer;

static void give_up(int signal_number)
{
    (void)signal_number;
    if (write(STDERR_FILENO, message, strlen(message)) < 0) {
        /* nobody to tell */
    }
    _exit((int)status_at_end);
}

static void set_timer(int ms)
{
    struct itimerspec time = {
        .it_value = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000}};
    timer_settime(timer, 0, &time, NULL);
}

static void enter(const char *text, int ms)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
    struct sigaction action = {.sa_handler = give_up};
    message = text;
    sigset_t set;

    sigemptyset(&action.sa_mask);
    /* Whoever has started this program may have blocked it. */
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    if (!has_timer && sigaction(SIGRTMIN, &action, NULL) == 0)
        has_timer = timer_create(CLOCK_MONOTONIC, &event, &timer) == 0;
    if (has_timer)
        set_timer(ms);
}

void deadline_enter_slurm(void)
{
    static char text[128]; /* the handler's */
    snprintf(text, sizeof(text),
             "selastic: Slurm did not answer within %g s; see whether squeue works\n",
             limit_ms / 1000.0);
    enter(text, deadline_left());
}

void deadline_enter_threads(void)
{
    enter(thread_silent, deadline_left() + THREADS_MS);
}

void deadline_leave(void)
{
    if (has_timer)
        set_timer(0);
}

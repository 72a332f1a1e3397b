/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The time limit of a subcommand: one process, so one clock and one alarm. */
#include "cmd/deadline.h"

#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "cmd/command.h"

#define LEFT_MIN_MS 500

static struct timespec start;

void deadline_start(void)
{
    clock_gettime(CLOCK_MONOTONIC, &start);
}

static long long spent(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - start.tv_sec) * 1000LL + (now.tv_nsec - start.tv_nsec) / 1000000;
}

int deadline_left(void)
{
    long long left = DEADLINE_MS - spent();
    return left > LEFT_MIN_MS ? (int)left : LEFT_MIN_MS;
}

bool deadline_over(void)
{
    return spent() >= DEADLINE_MS;
}

static void give_up(int signal_number)
{
    static const char message[] =
        "selastic: Slurm did not answer within 5 s; see whether squeue works\n";
    if (write(STDERR_FILENO, message, sizeof(message) - 1) < 0) {
        /* nobody to tell */
    }
    _exit(STATUS_FAILED);
}

static void set_alarm(int ms)
{
    struct itimerval timer = {.it_value = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

void deadline_enter_slurm(void)
{
    struct sigaction action = {.sa_handler = give_up};
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    set_alarm(deadline_left());
}

void deadline_leave_slurm(void)
{
    set_alarm(0);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Signals for the training program (program_signals.h). */
#include "agent/program_signals.h"

#include <signal.h>
#include <stddef.h>

/* Slurm sends a signal to one process after the other. After this time each shim has its own copy,
 * if it gets any. */
#define COLLECT_MS 200

static const int numbers[PROGRAM_SIGNALS] = {SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGURG, SIGXCPU};

bool program_signal(int number)
{
    for (int i = 0; i < PROGRAM_SIGNALS; i++)
        if (numbers[i] == number)
            return true;
    return false;
}

static void on_collected(uv_timer_t *timer)
{
    struct program_signals *signals = timer->data;
    unsigned due = signals->due;

    signals->due = 0;
    for (int i = 0; i < PROGRAM_SIGNALS; i++)
        if ((due & 1U << i) != 0)
            signals->pass(numbers[i], signals->arg);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct program_signals *signals = handle->data;

    for (int i = 0; i < PROGRAM_SIGNALS; i++)
        if (numbers[i] == number)
            signals->due |= 1U << i;
    if (!uv_is_active((uv_handle_t *)&signals->collect))
        uv_timer_start(&signals->collect, on_collected, COLLECT_MS, 0);
}

void program_signals_start(struct program_signals *signals, uv_loop_t *loop,
                           void (*pass)(int number, void *arg), void *arg)
{
    signals->pass = pass;
    signals->arg = arg;
    uv_timer_init(loop, &signals->collect);
    signals->collect.data = signals;
    for (int i = 0; i < PROGRAM_SIGNALS; i++) {
        uv_signal_init(loop, &signals->handles[i]);
        signals->handles[i].data = signals;
        uv_signal_start(&signals->handles[i], on_signal, numbers[i]);
    }
}

void program_signals_stop(struct program_signals *signals)
{
    if (signals->pass == NULL)
        return;
    for (int i = 0; i < PROGRAM_SIGNALS; i++) {
        uv_close((uv_handle_t *)&signals->handles[i], NULL);
        signal(numbers[i], SIG_IGN); /* libuv has restored what ends the process */
    }
    uv_close((uv_handle_t *)&signals->collect, NULL);
}

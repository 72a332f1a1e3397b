/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Signals that mean nothing to elasticrun. The user sends them, by scancel --signal or by sbatch
 * --signal, and the training program knows what they mean.
 *
 * Slurm signals every process of a step, or only the children of slurmstepd (proctrack/cgroup), or
 * one process group (proctrack/pgid). So the agent passes what it gets on to its workers, and a
 * worker's shim keeps back what the worker has got from Slurm (doc/internals/signals.md). */
#ifndef ELASTIC_PROGRAM_SIGNALS_H
#define ELASTIC_PROGRAM_SIGNALS_H

#include <stdbool.h>

#include <uv.h>

#define PROGRAM_SIGNALS 6

struct program_signals {
    uv_signal_t handles[PROGRAM_SIGNALS];
    uv_timer_t collect;
    unsigned due; /* a bit for each signal that has come */
    void (*pass)(int number, void *arg);
    void *arg;
};

/* Is it one of them? */
bool program_signal(int number);

/* Call pass for each of them that comes, a moment later and once for copies that come together. */
void program_signals_start(struct program_signals *signals, uv_loop_t *loop,
                           void (*pass)(int number, void *arg), void *arg);
/* Ignore them from now on. Also for signals that were never started, all zero. */
void program_signals_stop(struct program_signals *signals);

#endif

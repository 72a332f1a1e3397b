/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls into libslurm beside the loop, one after the other.
 *
 * They wait for each other anyway (slurm_client.h), and for as long as slurmctld hangs. The queue
 * takes a single one of libuv's threads. So the other threads stay free for work that does not need
 * Slurm, such as checking credentials. */
#ifndef ELASTIC_SLURM_QUEUE_H
#define ELASTIC_SLURM_QUEUE_H

#include <uv.h>

/* Have work(arg) called in a thread, and then done(arg) in the loop. There is one loop per process;
 * call this from its thread only. -1: out of memory, and neither function is called. */
int slurm_ask(uv_loop_t *loop, void (*work)(void *arg), void (*done)(void *arg), void *arg);
/* The same, ms milliseconds from now. What others ask does not wait for it until then. */
int slurm_ask_after(uv_loop_t *loop, uint64_t ms, void (*work)(void *arg), void (*done)(void *arg),
                    void *arg);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls into libslurm beside the loop, one after the other.
 *
 * They wait for each other anyway (slurm_client.h), and for as long as slurmctld hangs. The queue
 * takes a single one of libuv's threads. So the other threads stay free for work that does not need
 * Slurm, such as checking credentials. */
#ifndef ELASTIC_SLURM_QUEUE_H
#define ELASTIC_SLURM_QUEUE_H

#include <stdbool.h>

#include <uv.h>

struct slurm_work {
    uv_work_t req;
    uv_timer_t later;
    void (*work)(void *arg); /* in a thread */
    void (*done)(void *arg); /* in the loop; may free the item */
    void *arg;
    struct slurm_work *next;
    bool owned; /* by the queue: slurm_ask() */
};

/* Have item->work and then item->done called with item->arg. There is one loop per process; call
 * this from its thread only. The item must stay where it is until done. */
void slurm_queue(uv_loop_t *loop, struct slurm_work *item);
/* The same without an item of the caller. -1: out of memory, and neither function is called. */
int slurm_ask(uv_loop_t *loop, void (*work)(void *arg), void (*done)(void *arg), void *arg);
/* slurm_queue(), ms milliseconds from now. Other items do not wait for it until then. */
void slurm_queue_after(uv_loop_t *loop, struct slurm_work *item, uint64_t ms);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls into libslurm beside the loop, one after the other.
 *
 * They wait for each other anyway (slurm_client.h), and for as long as slurmctld hangs. Here they
 * wait in a list and take a single one of libuv's threads, so that the others stay free for what
 * does not need Slurm, such as checking who connects. */
#ifndef ELASTIC_SLURM_QUEUE_H
#define ELASTIC_SLURM_QUEUE_H

#include <uv.h>

struct slurm_work {
    uv_work_t req;
    uv_timer_t later;
    void (*work)(void *arg); /* in a thread */
    void (*done)(void *arg); /* in the loop; may free the item */
    void *arg;
    struct slurm_work *next;
};

/* Have item->work and then item->done called with item->arg. One loop per process; from its thread
 * only. The item must stay where it is until done. */
void slurm_queue(uv_loop_t *loop, struct slurm_work *item);
/* The same, some time from now; the others do not wait for it until then. */
void slurm_queue_after(uv_loop_t *loop, struct slurm_work *item, uint64_t ms);

#endif

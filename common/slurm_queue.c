/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A list of calls into libslurm (slurm_queue.h). */
#include "common/slurm_queue.h"

#include <stdlib.h>

/* Global as libslurm's own state is, which is why the calls must follow each other. */
static struct slurm_work *first, *last;

static void run_item(uv_work_t *req)
{
    struct slurm_work *item = req->data;

    item->work(item->arg);
}

static void start_first(uv_loop_t *loop);

/* An item of ours is freed first: done() may free the item of a caller. */
static void finish(struct slurm_work *item)
{
    void (*done)(void *arg) = item->done;
    void *arg = item->arg;

    if (item->owned)
        free(item);
    done(arg);
}

static void item_done(uv_work_t *req, int status)
{
    struct slurm_work *item = req->data;

    (void)status;
    first = item->next;
    if (first == NULL)
        last = NULL;
    else
        start_first(req->loop);
    finish(item);
}

static void start_first(uv_loop_t *loop)
{
    first->req.data = first;
    uv_queue_work(loop, &first->req, run_item, item_done);
}

void slurm_queue(uv_loop_t *loop, struct slurm_work *item)
{
    item->next = NULL;
    if (last != NULL)
        last->next = item;
    last = item;
    if (first != NULL)
        return;
    first = item;
    start_first(loop);
}

int slurm_ask(uv_loop_t *loop, void (*work)(void *arg), void (*done)(void *arg), void *arg)
{
    struct slurm_work *item = calloc(1, sizeof(*item));

    if (item == NULL)
        return -1;
    *item = (struct slurm_work){.work = work, .done = done, .arg = arg, .owned = true};
    slurm_queue(loop, item);
    return 0;
}

static void on_later_closed(uv_handle_t *handle)
{
    slurm_queue(handle->loop, handle->data);
}

static void on_later(uv_timer_t *timer)
{
    uv_close((uv_handle_t *)timer, on_later_closed);
}

void slurm_queue_after(uv_loop_t *loop, struct slurm_work *item, uint64_t ms)
{
    uv_timer_init(loop, &item->later);
    item->later.data = item;
    uv_timer_start(&item->later, on_later, ms, 0);
}

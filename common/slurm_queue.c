/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A list of calls into libslurm (slurm_queue.h). */
#include "common/slurm_queue.h"

#include <stdlib.h>

struct slurm_work {
    uv_work_t req;
    uv_timer_t later;
    void (*work)(void *arg);
    void (*done)(void *arg);
    void *arg;
    struct slurm_work *next;
};

/* Global as libslurm's own state is, which is why the calls must follow each other. */
static struct slurm_work *first, *last;

static void run_item(uv_work_t *req)
{
    struct slurm_work *item = req->data;

    item->work(item->arg);
}

static void start_first(uv_loop_t *loop);

static void item_done(uv_work_t *req, int status)
{
    struct slurm_work *item = req->data, copy = *item;

    (void)status;
    first = item->next;
    if (first == NULL)
        last = NULL;
    else
        start_first(req->loop);
    free(item);
    copy.done(copy.arg);
}

static void start_first(uv_loop_t *loop)
{
    first->req.data = first;
    uv_queue_work(loop, &first->req, run_item, item_done);
}

static void append(uv_loop_t *loop, struct slurm_work *item)
{
    if (last != NULL)
        last->next = item;
    last = item;
    if (first != NULL)
        return;
    first = item;
    start_first(loop);
}

static struct slurm_work *item_create(void (*work)(void *arg), void (*done)(void *arg), void *arg)
{
    struct slurm_work *item = calloc(1, sizeof(*item));

    if (item != NULL)
        *item = (struct slurm_work){.work = work, .done = done, .arg = arg};
    return item;
}

int slurm_ask(uv_loop_t *loop, void (*work)(void *arg), void (*done)(void *arg), void *arg)
{
    struct slurm_work *item = item_create(work, done, arg);

    if (item == NULL)
        return -1;
    append(loop, item);
    return 0;
}

static void on_later_closed(uv_handle_t *handle)
{
    append(handle->loop, handle->data);
}

static void on_later(uv_timer_t *timer)
{
    uv_close((uv_handle_t *)timer, on_later_closed);
}

int slurm_ask_after(uv_loop_t *loop, uint64_t ms, void (*work)(void *arg), void (*done)(void *arg),
                    void *arg)
{
    struct slurm_work *item = item_create(work, done, arg);

    if (item == NULL)
        return -1;
    uv_timer_init(loop, &item->later);
    item->later.data = item;
    return uv_timer_start(&item->later, on_later, ms, 0);
}

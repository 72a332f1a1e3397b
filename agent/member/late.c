/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages that the leader is to hear late (late.h). */
#include "agent/member/late.h"

#include <stdbool.h>
#include <stdlib.h>

struct waiting {
    struct waiting *next;
    json_object *msg;
    uint64_t due;
};

struct late {
    uv_loop_t *loop;
    uv_timer_t *timer; /* for the first message; NULL: none waits */
    struct waiting *first, **end;
    void (*send)(json_object *msg, void *arg);
    void *arg;
};

struct late *late_create(uv_loop_t *loop, void (*send)(json_object *msg, void *arg), void *arg)
{
    struct late *late = calloc(1, sizeof(*late));

    if (late == NULL)
        return NULL;
    late->loop = loop;
    late->end = &late->first;
    late->send = send;
    late->arg = arg;
    return late;
}

static json_object *take_first(struct late *late)
{
    struct waiting *first = late->first;
    json_object *msg = first->msg;

    late->first = first->next;
    if (late->first == NULL)
        late->end = &late->first;
    free(first);
    return msg;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle);
}

static void close_timer(struct late *late)
{
    if (late->timer != NULL)
        uv_close((uv_handle_t *)late->timer, on_closed);
    late->timer = NULL;
}

static void on_due(uv_timer_t *timer)
{
    struct late *late = timer->data;
    uint64_t now = uv_now(late->loop);

    while (late->first != NULL && late->first->due <= now)
        late->send(take_first(late), late->arg);
    if (late->first != NULL)
        uv_timer_start(timer, on_due, late->first->due - now, 0);
    else
        close_timer(late);
}

static bool start_timer(struct late *late)
{
    if (late->timer != NULL)
        return true;
    late->timer = malloc(sizeof(*late->timer));
    if (late->timer == NULL)
        return false;
    uv_timer_init(late->loop, late->timer);
    late->timer->data = late;
    uv_timer_start(late->timer, on_due, LATE_MS, 0);
    return true;
}

void late_send(struct late *late, json_object *msg)
{
    struct waiting *waiting = calloc(1, sizeof(*waiting));

    if (waiting == NULL || !start_timer(late)) {
        free(waiting);
        late->send(msg, late->arg);
        return;
    }
    waiting->msg = msg;
    waiting->due = uv_now(late->loop) + LATE_MS;
    *late->end = waiting;
    late->end = &waiting->next;
}

void late_flush(struct late *late)
{
    close_timer(late);
    while (late->first != NULL)
        late->send(take_first(late), late->arg);
}

void late_destroy(struct late *late)
{
    if (late == NULL)
        return;
    close_timer(late);
    while (late->first != NULL)
        json_object_put(take_first(late));
    free(late);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests that wait for the leader (desk.h).
 *
 * A look that is under way may have been answered before the request came. So a request takes part
 * in the next look: a client sees what it has changed. */
#include "http/desk.h"

#include <stdlib.h>
#include <sys/queue.h>

#define TICK_MS 200 /* a watch looks so often */

enum stage {
    TO_LOOK, /* takes part in the next look */
    LOOKS,   /* … in the present one */
    ASKS,    /* has a question of its own */
    PAUSES,
};

struct ticket {
    TAILQ_ENTRY(ticket) entry;
    struct desk *desk;
    struct api_call *call;
    enum stage stage;
    struct question *question; /* of ASKS */
    uint64_t late;
    desk_done *done;
    void *arg;
};

struct desk {
    uv_loop_t *loop;
    struct courier *courier;
    int hold_ms, watch_ms;
    TAILQ_HEAD(, ticket) tickets;
    int count;
    struct question *look; /* NULL: none is under way */
    uv_timer_t tick;
};

static void on_look(json_object *answer, void *arg);

static void take_off(struct ticket *ticket)
{
    struct desk *desk = ticket->desk;

    TAILQ_REMOVE(&desk->tickets, ticket, entry);
    if (--desk->count == 0)
        uv_timer_stop(&desk->tick);
    if (ticket->stage == ASKS && ticket->question != NULL)
        courier_withdraw(ticket->question);
}

static void release(struct ticket *ticket)
{
    api_call_destroy(ticket->call);
    free(ticket);
}

static void finish(struct ticket *ticket, struct api_reply *reply)
{
    take_off(ticket);
    ticket->done(reply, ticket->arg);
    api_reply_clear(reply);
    release(ticket);
}

static void fail(struct ticket *ticket)
{
    struct api_reply reply;

    api_reply_set(&reply, 500, NULL, "out of memory");
    finish(ticket, &reply);
}

/* All that have the question of the one that has waited longest take part in its look. */
static void begin_look(struct desk *desk)
{
    struct ticket *ticket;
    json_object *question = NULL;

    if (desk->look != NULL)
        return;
    TAILQ_FOREACH (ticket, &desk->tickets, entry) {
        json_object *own = ticket->stage == TO_LOOK ? api_call_question(ticket->call) : NULL;

        if (question == NULL)
            question = json_object_get(own);
        if (own != NULL && json_object_equal(own, question))
            ticket->stage = LOOKS;
        json_object_put(own);
    }
    if (question != NULL)
        desk->look = courier_ask(desk->courier, question, on_look, desk);
    if (question == NULL || desk->look != NULL)
        return;
    TAILQ_FOREACH (ticket, &desk->tickets, entry)
        if (ticket->stage == LOOKS)
            ticket->stage = TO_LOOK; /* the next tick tries it again */
}

static void on_answer(json_object *answer, void *arg);

/* What the call has to ask now. */
static void ask(struct ticket *ticket)
{
    ticket->stage = TO_LOOK;
    if (api_call_looks(ticket->call)) {
        begin_look(ticket->desk);
        return;
    }
    ticket->stage = ASKS;
    ticket->question = courier_ask(ticket->desk->courier, api_call_question(ticket->call),
                                   on_answer, ticket);
    if (ticket->question == NULL)
        fail(ticket);
}

static void take_answer(struct ticket *ticket, json_object *answer)
{
    struct api_reply reply = {0};

    switch (api_call_answered(ticket->call, answer, &reply)) {
    case API_ASK:
        ask(ticket);
        break;
    case API_PAUSE:
        ticket->stage = PAUSES;
        break;
    case API_DONE:
        finish(ticket, &reply);
        break;
    }
}

static void on_answer(json_object *answer, void *arg)
{
    struct ticket *ticket = arg;

    ticket->question = NULL;
    if (answer != NULL) {
        take_answer(ticket, answer);
        return;
    }
    api_call_lost(ticket->call);
    ask(ticket);
}

/* The tickets of this look, and no others: an answered ticket may begin another look. */
static void on_look(json_object *answer, void *arg)
{
    struct desk *desk = arg;
    struct ticket *ticket, *next;

    for (ticket = TAILQ_FIRST(&desk->tickets); ticket != NULL; ticket = next) {
        next = TAILQ_NEXT(ticket, entry);
        if (ticket->stage != LOOKS)
            continue;
        if (answer != NULL)
            take_answer(ticket, answer);
        else
            ticket->stage = TO_LOOK;
    }
    desk->look = NULL;
    begin_look(desk);
}

static void on_tick(uv_timer_t *timer)
{
    struct desk *desk = timer->data;
    struct ticket *ticket, *next;

    for (ticket = TAILQ_FIRST(&desk->tickets); ticket != NULL; ticket = next) {
        struct api_reply reply = {0};

        next = TAILQ_NEXT(ticket, entry);
        if (uv_now(desk->loop) >= ticket->late) {
            api_call_late(ticket->call, &reply);
            finish(ticket, &reply);
        } else if (ticket->stage == PAUSES) {
            ticket->stage = TO_LOOK;
        }
    }
    begin_look(desk);
}

int desk_take(struct desk *desk, const struct api_request *request, desk_done *done, void *arg)
{
    struct ticket *ticket = calloc(1, sizeof(*ticket));
    int patience = api_request_watches(request) ? desk->watch_ms : desk->hold_ms;

    if (ticket == NULL || (ticket->call = api_call_create(request)) == NULL) {
        free(ticket);
        return -1;
    }
    ticket->desk = desk;
    ticket->done = done;
    ticket->arg = arg;
    ticket->late = uv_now(desk->loop) + (uint64_t)patience;
    TAILQ_INSERT_TAIL(&desk->tickets, ticket, entry);
    if (desk->count++ == 0)
        uv_timer_start(&desk->tick, on_tick, TICK_MS, TICK_MS);
    ask(ticket);
    return 0;
}

void desk_withdraw(struct desk *desk, const void *arg)
{
    struct ticket *ticket;

    TAILQ_FOREACH (ticket, &desk->tickets, entry)
        if (ticket->arg == arg) {
            take_off(ticket);
            release(ticket);
            return;
        }
}

bool desk_is_full(const struct desk *desk)
{
    return desk->count >= DESK_MAX;
}

int desk_waiting(const struct desk *desk)
{
    return desk->count;
}

struct desk *desk_create(uv_loop_t *loop, struct courier *courier, int hold_ms, int watch_ms)
{
    struct desk *desk = calloc(1, sizeof(*desk));

    if (desk == NULL)
        return NULL;
    desk->loop = loop;
    desk->courier = courier;
    desk->hold_ms = hold_ms;
    desk->watch_ms = watch_ms;
    TAILQ_INIT(&desk->tickets);
    uv_timer_init(loop, &desk->tick);
    desk->tick.data = desk;
    return desk;
}

static void on_tick_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void desk_destroy(struct desk *desk)
{
    if (desk->look != NULL)
        courier_withdraw(desk->look);
    while (!TAILQ_EMPTY(&desk->tickets)) {
        struct api_reply reply = {0};

        api_call_late(TAILQ_FIRST(&desk->tickets)->call, &reply);
        finish(TAILQ_FIRST(&desk->tickets), &reply);
    }
    uv_close((uv_handle_t *)&desk->tick, on_tick_closed);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The way to the leader (courier.h).
 *
 * There is one question under way at a time: the leader's loop is never flooded, whatever clients
 * do. All addresses are tried at once, and the first that proves to be the leader is asked. */
#include "common/courier.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/link.h"
#include "common/log.h"
#include "common/release_own.h"
#include "lib/json_get.h"

#define SEARCH_MS 5000
#define PAUSE_MS  200 /* between two searches */
#define ANSWER_MS 10000
#define IDLE_MS   60000 /* a job may have many nodes: none keeps a link that it does not need */

struct question {
    TAILQ_ENTRY(question) entry;
    struct courier *courier;
    json_object *message;
    courier_done *done; /* NULL: withdrawn */
    void *arg;
    bool sent;
};

struct courier {
    uv_loop_t *loop;
    struct courier_options options;
    char **addresses;
    int port;
    struct link *links[COURIER_ADDRESSES]; /* of the search; NULL: closed */
    struct link *leader;                   /* NULL: none */
    int live;                              /* links that have not been closed */
    TAILQ_HEAD(, question) questions;
    uv_timer_t timer; /* the pause; with a leader its time to answer, or that of an idle link */
    bool timer_open, destroyed;
};

static void on_timer(uv_timer_t *timer);
static void go_on(struct courier *courier);

/* ---- questions ------------------------------------------------------------------------------- */

static void forget(struct question *question)
{
    TAILQ_REMOVE(&question->courier->questions, question, entry);
    json_object_put(question->message);
    free(question);
}

/* The first question is over, with this answer. */
static void finish(struct courier *courier, json_object *answer)
{
    struct question *question = TAILQ_FIRST(&courier->questions);
    courier_done *done;
    void *arg;

    if (question == NULL || !question->sent)
        return;
    done = question->done;
    arg = question->arg;
    forget(question);
    if (answer != NULL)
        uv_timer_stop(&courier->timer);
    else
        uv_timer_start(&courier->timer, on_timer, PAUSE_MS, 0);
    if (done != NULL)
        done(answer, arg);
}

static void send_next(struct courier *courier)
{
    struct question *question = TAILQ_FIRST(&courier->questions);

    if (question == NULL || question->sent)
        return;
    question->sent = true;
    uv_timer_start(
        &courier->timer, on_timer,
        courier->options.answer_ms > 0 ? (uint64_t)courier->options.answer_ms : ANSWER_MS, 0);
    /* What cannot be sent ends the link, and so is lost. */
    if (link_send(courier->leader, json_object_get(question->message)) != 0)
        link_close(courier->leader, "it cannot be asked");
}

struct question *courier_ask(struct courier *courier, json_object *message, courier_done *done,
                             void *arg)
{
    struct question *question = calloc(1, sizeof(*question));

    if (question == NULL) {
        json_object_put(message);
        return NULL;
    }
    release_write(message, release_own());
    *question = (struct question){.courier = courier, .message = message, .done = done, .arg = arg};
    TAILQ_INSERT_TAIL(&courier->questions, question, entry);
    go_on(courier);
    return question;
}

void courier_withdraw(struct question *question)
{
    question->done = NULL;
    if (!question->sent)
        forget(question);
}

/* ---- the leader ------------------------------------------------------------------------------ */

static void on_open(struct link *link, void *arg)
{
    struct courier *courier = arg;

    if (courier->leader != NULL || courier->destroyed)
        return;
    courier->leader = link;
    for (int i = 0; i < COURIER_ADDRESSES; i++)
        if (courier->links[i] != NULL && courier->links[i] != link)
            link_close(courier->links[i], "the leader has been found");
    go_on(courier);
}

static void on_message(struct link *link, json_object *msg, void *arg)
{
    struct courier *courier = arg;

    if (link != courier->leader)
        return;
    if (json_get_bool(msg, "elsewhere", false)) {
        link_close(link, "it may not lead any more");
        return;
    }
    finish(courier, msg);
    if (courier->leader == link && TAILQ_EMPTY(&courier->questions))
        uv_timer_start(&courier->timer, on_timer, IDLE_MS, 0);
    go_on(courier);
}

static void dispose(struct courier *courier)
{
    if (!courier->destroyed || courier->live > 0 || courier->timer_open)
        return;
    strings_free(courier->addresses);
    free(courier);
}

static void on_closed(struct link *link, const char *why, void *arg)
{
    struct courier *courier = arg;

    log_debug("leader: %s", why);
    courier->live--;
    for (int i = 0; i < COURIER_ADDRESSES; i++)
        if (courier->links[i] == link)
            courier->links[i] = NULL;
    if (link == courier->leader) {
        courier->leader = NULL;
        uv_timer_stop(&courier->timer);
        finish(courier, NULL);
    }
    if (courier->destroyed)
        dispose(courier);
    else if (courier->live == 0 && !TAILQ_EMPTY(&courier->questions) &&
             !uv_is_active((uv_handle_t *)&courier->timer))
        uv_timer_start(&courier->timer, on_timer, PAUSE_MS, 0);
}

static void connect_to(struct courier *courier, int which)
{
    static const struct link_handlers handlers = {
        .open = on_open, .message = on_message, .closed = on_closed};
    const struct courier_options *o = &courier->options;
    struct link_client_options options = {
        .role = LINK_ROLE_CONTROL,
        .job_id = o->job,
        .restarts = o->restarts,
        .leader_uid = o->leader_uid,
        .munge_socket = o->conf->munge_socket,
        .address = courier->addresses[which],
        .port = courier->port,
        .port_first = o->conf->port_first,
        .port_last = o->conf->port_last,
        .state_dir = o->state_dir,
        .timeout_ms = SEARCH_MS,
    };
    struct error err = {""};

    courier->links[which] = link_connect(courier->loop, &options, &handlers, courier, &err);
    if (courier->links[which] != NULL)
        courier->live++;
    else
        log_debug("leader: %s", err.text);
}

static void search(struct courier *courier)
{
    for (int i = 0; courier->addresses != NULL && courier->addresses[i] != NULL; i++)
        connect_to(courier, i);
    if (courier->live == 0)
        uv_timer_start(&courier->timer, on_timer, PAUSE_MS, 0);
}

/* There are questions, or there is a leader. */
static void go_on(struct courier *courier)
{
    if (TAILQ_EMPTY(&courier->questions))
        return;
    if (courier->leader != NULL)
        send_next(courier);
    else if (courier->live == 0 && !uv_is_active((uv_handle_t *)&courier->timer))
        search(courier);
}

static void on_timer(uv_timer_t *timer)
{
    struct courier *courier = timer->data;

    if (courier->leader != NULL)
        link_close(courier->leader,
                   TAILQ_EMPTY(&courier->questions) ? "it is not needed" : "it does not answer");
    else
        go_on(courier);
}

static bool is_there(const struct courier *courier, char *const *addresses, int port)
{
    size_t count = strings_count(addresses);

    if (courier->port != port || strings_count(courier->addresses) != count)
        return false;
    for (size_t i = 0; i < count; i++)
        if (strcmp(courier->addresses[i], addresses[i]) != 0)
            return false;
    return true;
}

void courier_find(struct courier *courier, char *const *addresses, int port)
{
    char **copy = strings_copy(addresses);

    if (copy == NULL || is_there(courier, addresses, port)) {
        strings_free(copy);
        return;
    }
    for (size_t i = COURIER_ADDRESSES; i < strings_count(copy); i++) {
        free(copy[i]);
        copy[i] = NULL;
    }
    strings_free(courier->addresses);
    courier->addresses = copy;
    courier->port = port;
    for (int i = 0; i < COURIER_ADDRESSES; i++)
        if (courier->links[i] != NULL)
            link_close(courier->links[i], "the leader is elsewhere");
    if (courier->live == 0)
        uv_timer_stop(&courier->timer); /* the pause was for the leader of before */
    go_on(courier);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct courier *courier_create(uv_loop_t *loop, const struct courier_options *options)
{
    struct courier *courier = calloc(1, sizeof(*courier));

    if (courier == NULL)
        return NULL;
    courier->loop = loop;
    courier->options = *options;
    TAILQ_INIT(&courier->questions);
    uv_timer_init(loop, &courier->timer);
    courier->timer.data = courier;
    courier->timer_open = true;
    return courier;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct courier *courier = handle->data;

    courier->timer_open = false;
    dispose(courier);
}

void courier_destroy(struct courier *courier)
{
    courier->destroyed = true;
    while (!TAILQ_EMPTY(&courier->questions))
        forget(TAILQ_FIRST(&courier->questions));
    for (int i = 0; i < COURIER_ADDRESSES; i++)
        if (courier->links[i] != NULL)
            link_close(courier->links[i], "the end");
    uv_close((uv_handle_t *)&courier->timer, on_timer_closed);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One question to the leader of a job, on whichever of the job's first nodes it runs.
 *
 * The leader is the agent on the first node of elasticrun's step, which nearly always is the first
 * node of the job. Only when that node stays silent are the others tried, all at once: the first
 * agent that proves to be the leader is asked. */
#include "cmd/ask.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd/terminal_text.h"
#include "common/link.h"
#include "lib/json_get.h"

#define FIRST_ALONE_MS 500
/* A link gives up this much earlier than the question, so that the link's reason can be
 * reported. */
#define CLOSING_MS 100

struct ask {
    uv_loop_t *loop;
    struct ask_options options;
    json_object *request;
    ask_done done;
    void *arg;
    struct link *links[ASK_NODES_MAX];
    int count;            /* addresses */
    int started, live;    /* links: begun so far, not yet closed */
    struct link *leader;  /* the leader that was asked */
    int doubtful;         /* the address of an asked leader that may not lead any more; -1: none */
    json_object *doubted; /* the answer of that leader; NULL: none */
    bool finished;        /* done has been called */
    uv_timer_t timer;
    bool timer_live;
    uint64_t deadline; /* of the loop's clock, ms */
    char why[512];     /* error of the first address: the others are guesses */
};

static void dispose(struct ask *ask)
{
    if (ask->live > 0 || ask->timer_live)
        return;
    json_object_put(ask->request);
    json_object_put(ask->doubted);
    free(ask);
}

static void timer_closed(uv_handle_t *handle)
{
    struct ask *ask = handle->data;
    ask->timer_live = false;
    dispose(ask);
}

static void close_links(struct ask *ask, const struct link *except, const char *why)
{
    for (int i = 0; i < ask->started; i++)
        if (ask->links[i] != NULL && ask->links[i] != except)
            link_close(ask->links[i], why);
}

static void finish(struct ask *ask, json_object *answer, const char *why)
{
    if (ask->finished)
        return;
    ask->finished = true;
    if (answer == NULL && ask->doubted != NULL)
        ask->done(ask->doubted, NULL, ask->arg); /* nobody knows better */
    else
        ask->done(answer, why, ask->arg);
    close_links(ask, NULL, "done");
    uv_close((uv_handle_t *)&ask->timer, timer_closed);
}

static void on_open(struct link *link, void *arg)
{
    struct ask *ask = arg;
    if (ask->finished || ask->leader != NULL)
        return;
    ask->leader = link;
    close_links(ask, link, "the leader has been found");
    if (link_send(link, json_object_get(ask->request)) < 0)
        finish(ask, NULL, "the connection to the leader has broken");
}

static int start_link(struct ask *ask, struct error *err);

static void start_others(struct ask *ask)
{
    while (ask->started < ask->count && ask->leader == NULL) {
        if (ask->started == ask->doubtful)
            ask->links[ask->started++] = NULL;
        else if (start_link(ask, NULL) < 0)
            ask->count = ask->started;
    }
}

/* A suspended old leader was asked: another leader may lead by now, on another node. */
static bool ask_elsewhere(struct ask *ask, struct link *link, json_object *msg)
{
    bool elsewhere = json_get_bool(msg, "elsewhere", false);

    json_object_object_del(msg, "elsewhere");
    if (!elsewhere || ask->doubted != NULL)
        return false;
    ask->doubted = json_object_get(msg);
    for (int i = 0; i < ask->started; i++)
        if (ask->links[i] == link)
            ask->doubtful = i;
    ask->leader = NULL;
    ask->started = 0; /* the other links were closed when this leader was found */
    start_others(ask);
    link_close(link, "it may not lead any more");
    return true;
}

static void on_message(struct link *link, json_object *msg, void *arg)
{
    struct ask *ask = arg;
    if (link == ask->leader && !ask->finished && !ask_elsewhere(ask, link, msg))
        finish(ask, msg, NULL);
}

static void on_closed(struct link *link, const char *why, void *arg)
{
    struct ask *ask = arg;
    bool was_leader = link == ask->leader;
    if (ask->why[0] == '\0' || link == ask->links[0])
        snprintf(ask->why, sizeof(ask->why), "%s", why);
    ask->live--;
    for (int i = 0; i < ask->started; i++)
        if (ask->links[i] == link)
            ask->links[i] = NULL;
    if (!ask->finished)
        start_others(ask);
    if (was_leader)
        finish(ask, NULL, why);
    else if (ask->live == 0)
        finish(ask, NULL, ask->why);
    dispose(ask);
}

static int start_link(struct ask *ask, struct error *err)
{
    static const struct link_handlers handlers = {
        .open = on_open, .message = on_message, .closed = on_closed};
    uint64_t now = uv_now(ask->loop);
    struct link_client_options options = {
        .role = LINK_ROLE_CONTROL,
        .job_id = ask->options.job_id,
        .restarts = ask->options.restarts,
        .leader_uid = ask->options.uid,
        .munge_socket = ask->options.conf->munge_socket,
        .address = ask->options.addresses[ask->started],
        .port_first = ask->options.conf->port_first,
        .port_last = ask->options.conf->port_last,
        .state_dir = ask->options.state_dir,
        .timeout_ms = ask->deadline > now + CLOSING_MS ? (int)(ask->deadline - now) - CLOSING_MS
                                                       : 1,
    };
    struct link *link = link_connect(ask->loop, &options, &handlers, ask, err);
    if (link == NULL)
        return -1;
    ask->links[ask->started++] = link;
    ask->live++;
    return 0;
}

static void on_timer(uv_timer_t *timer)
{
    struct ask *ask = timer->data;
    uint64_t now = uv_now(ask->loop);
    if (now < ask->deadline) {
        start_others(ask);
        uv_timer_start(timer, on_timer, ask->deadline - now, 0);
    } else if (ask->leader != NULL)
        finish(ask, NULL, "the leader is there, but does not answer");
    else
        finish(ask, NULL, ask->why[0] ? ask->why : "nobody answers");
}

static int count_addresses(char *const *addresses)
{
    int count = 0;
    while (count < ASK_NODES_MAX && addresses[count] != NULL)
        count++;
    return count;
}

int ask_leader(uv_loop_t *loop, const struct ask_options *options, ask_done done, void *arg,
               struct error *err)
{
    int count = count_addresses(options->addresses);
    if (count == 0)
        return error_set(err, "job %u has no nodes", options->job_id);
    struct ask *ask = text_need(calloc(1, sizeof(*ask)));
    uint64_t timeout = options->timeout_ms > 0 ? (uint64_t)options->timeout_ms : 1;
    uv_update_time(loop);
    ask->loop = loop;
    ask->options = *options;
    ask->request = json_object_get(options->request);
    ask->done = done;
    ask->arg = arg;
    ask->count = count;
    ask->doubtful = -1;
    ask->deadline = uv_now(loop) + timeout;
    if (start_link(ask, err) < 0) {
        dispose(ask);
        return -1;
    }
    uv_timer_init(loop, &ask->timer);
    ask->timer.data = ask;
    ask->timer_live = true;
    uv_timer_start(&ask->timer, on_timer, timeout < FIRST_ALONE_MS ? timeout : FIRST_ALONE_MS, 0);
    return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests about trainings of the job's service (fits.h). */
#include "http/fits.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/capture.h"
#include "lib/fit_view.h"
#include "lib/json_get.h"
#include "lib/roles.h"

#define PROGRAM_MS 60000
#define TEXT_MAX   ((size_t)16 << 20)

struct ticket {
    LIST_ENTRY(ticket) entry;
    struct fits *fits;
    struct fit_request *request;
    struct question *question; /* NULL: the leader has answered */
    struct look *look;         /* NULL: elastic-fit does not run */
    uv_timer_t patience;       /* with the leader */
    desk_done *done;           /* NULL: nobody waits */
    void *arg;
};

struct fits {
    uv_loop_t *loop;
    struct courier *courier;
    char *program;
    int hold_ms, count;
    LIST_HEAD(, ticket) tickets;
};

static void on_closed(uv_handle_t *handle)
{
    struct ticket *ticket = handle->data;

    fit_request_destroy(ticket->request);
    free(ticket);
}

static void finish(struct ticket *ticket, struct api_reply *reply)
{
    LIST_REMOVE(ticket, entry);
    ticket->fits->count--;
    if (ticket->question != NULL)
        courier_withdraw(ticket->question);
    if (ticket->done != NULL)
        ticket->done(reply, ticket->arg);
    api_reply_clear(reply);
    uv_close((uv_handle_t *)&ticket->patience, on_closed);
}

static void refuse(struct ticket *ticket, int status, const char *why)
{
    struct api_reply reply;

    fit_view_refuse(&reply, ticket->request->openai, status, "%s", why);
    finish(ticket, &reply);
}

/* ---- elastic-fit ----------------------------------------------------------------------------- */

static void on_printed(char *text, size_t size, int status, void *arg)
{
    struct ticket *ticket = arg;
    struct api_reply reply = {0};

    (void)size;
    ticket->look = NULL;
    fit_view_reply(ticket->request, status, text, &reply);
    free(text);
    finish(ticket, &reply);
}

static void run_program(struct ticket *ticket, const char *service)
{
    char **command = fit_request_command(ticket->request, service);
    const struct look_options options = {.program = ticket->fits->program,
                                         .args = command,
                                         .input = ticket->request->input,
                                         .limit_ms = PROGRAM_MS,
                                         .most = TEXT_MAX,
                                         .done = on_printed,
                                         .arg = ticket};

    uv_timer_stop(&ticket->patience);
    if (command != NULL)
        ticket->look = look_begin(ticket->fits->loop, &options);
    strings_free(command);
    if (ticket->look == NULL)
        refuse(ticket, 500, "elastic-fit cannot be run on the node that serves this");
}

/* ---- the leader ------------------------------------------------------------------------------ */

static void ask(struct ticket *ticket);

static void on_answer(json_object *answer, void *arg)
{
    struct ticket *ticket = arg;
    const char *type = answer != NULL ? json_get_string(answer, "t") : NULL, *service;

    ticket->question = NULL;
    if (answer == NULL) {
        ask(ticket);
        return;
    }
    service = json_get_string(answer, "service");
    if (type == NULL || strcmp(type, "shards") != 0 || service == NULL)
        refuse(ticket, 404, "the job runs no service, so there are no trainings of one");
    else if (!role_is_name(service))
        refuse(ticket, 502, "what the leader names is no service");
    else
        run_program(ticket, service);
}

static void ask(struct ticket *ticket)
{
    json_object *question = json_object_new_object();

    json_object_object_add(question, "t", json_object_new_string("shards"));
    ticket->question = courier_ask(ticket->fits->courier, question, on_answer, ticket);
    if (ticket->question == NULL)
        refuse(ticket, 500, "out of memory");
}

static void on_patience_over(uv_timer_t *timer)
{
    refuse(timer->data, 503, "no leader of the job has answered");
}

/* ---- its parts ------------------------------------------------------------------------------- */

bool fits_is_full(const struct fits *fits)
{
    return fits->count >= FITS_MAX;
}

int fits_take(struct fits *fits, struct fit_request *request, desk_done *done, void *arg)
{
    struct ticket *ticket = calloc(1, sizeof(*ticket));

    if (ticket == NULL) {
        fit_request_destroy(request);
        return -1;
    }
    ticket->fits = fits;
    ticket->request = request;
    ticket->done = done;
    ticket->arg = arg;
    ticket->patience.data = ticket;
    LIST_INSERT_HEAD(&fits->tickets, ticket, entry);
    fits->count++;
    uv_timer_init(fits->loop, &ticket->patience);
    uv_timer_start(&ticket->patience, on_patience_over, (uint64_t)fits->hold_ms, 0);
    ask(ticket);
    return 0;
}

void fits_withdraw(struct fits *fits, const void *arg)
{
    struct api_reply none = {0};
    struct ticket *ticket = NULL;

    LIST_FOREACH (ticket, &fits->tickets, entry)
        if (ticket->arg == arg && ticket->done != NULL)
            break;
    if (ticket == NULL)
        return;
    ticket->done = NULL;
    if (ticket->look == NULL)
        finish(ticket, &none);
}

struct fits *fits_create(uv_loop_t *loop, struct courier *courier, const char *program, int hold_ms)
{
    struct fits *fits = calloc(1, sizeof(*fits));

    if (fits == NULL || (fits->program = strdup(program)) == NULL) {
        free(fits);
        return NULL;
    }
    fits->loop = loop;
    fits->courier = courier;
    fits->hold_ms = hold_ms;
    LIST_INIT(&fits->tickets);
    return fits;
}

void fits_destroy(struct fits *fits)
{
    while (fits != NULL && !LIST_EMPTY(&fits->tickets)) {
        struct ticket *ticket = LIST_FIRST(&fits->tickets);

        if (ticket->look != NULL)
            look_cancel(ticket->look);
        refuse(ticket, 503, "the interface of the job ends");
    }
    if (fits != NULL)
        free(fits->program);
    free(fits);
}

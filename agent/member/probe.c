/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Is a task ready? (probe.h)
 *
 *   FIRST_MS ─► look ─► outcome ─► `every` after the begin of that look ─► look …
 *
 * One look is under way at a time. A look that takes too long has failed. Asking a file system may
 * hang, so a thread of libuv does it, and no other look begins before it has come back. */
#include "agent/member/probe.h"

#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/member/http.h"
#include "agent/member/tail.h"
#include "common/tcp_sockets.h"

#define FIRST_MS    50
#define ANSWER_MAX  1 /* bytes: only the status counts */
#define ADDRESS_MAX 2
#define WHY_MAX     320

/* A connection that is being made. */
struct dial {
    struct probe *probe;
    uv_tcp_t tcp;
    uv_connect_t request;
};

struct probe {
    uv_loop_t *loop;
    struct probe_options options;
    struct probe_handlers handlers;
    void *arg;
    uv_timer_t next, limit;
    uint64_t began; /* the look */
    bool ready, destroyed;
    int failures; /* in a row */
    char why[WHY_MAX];

    const char *addresses[ADDRESS_MAX];
    int address_count, address; /* the one to ask */
    int tried;                  /* addresses in this look */
    bool answered;              /* that address stays */
    struct http *http;
    struct dial *dial; /* NULL: none is under way */
    uv_fs_t stat;
    bool stating;
    struct workers *command; /* NULL: it does not run */
    struct tail tail;
    bool succeeded, late; /* the command */
    int open;             /* handles and requests in the loop */
};

static void look(uv_timer_t *timer);

static void free_if_over(struct probe *p)
{
    if (--p->open == 0 && p->destroyed)
        free(p);
}

/* ---- the outcome of a look ------------------------------------------------------------------- */

static uint64_t pause_ms(const struct probe *p)
{
    uint64_t every = (uint64_t)(p->options.every * 1000), gone = uv_now(p->loop) - p->began;

    return gone < every ? every - gone : 1;
}

static void look_again(struct probe *p)
{
    if (p->destroyed)
        return;
    uv_timer_stop(&p->limit);
    if (p->failures < PROBE_FAILURES)
        uv_timer_start(&p->next, look, pause_ms(p), 0);
}

static void succeed(struct probe *p)
{
    p->failures = 0;
    if (!p->ready) {
        p->ready = true;
        p->handlers.ready(p->arg);
    }
    look_again(p);
}

/* p->why says why. */
static void count_failure(struct probe *p)
{
    if (p->ready && ++p->failures == PROBE_FAILURES)
        p->handlers.unready(p->why, p->arg);
}

static void fail(struct probe *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void fail(struct probe *p, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(p->why, sizeof(p->why), fmt, args);
    va_end(args);
    count_failure(p);
    look_again(p);
}

/* ---- a port ---------------------------------------------------------------------------------- */

static void ask_port(struct probe *p);

static uint64_t left_ms(const struct probe *p)
{
    uint64_t gone = uv_now(p->loop) - p->began;

    return gone < PROBE_LIMIT_MS ? PROBE_LIMIT_MS - gone : 0;
}

/* Nobody has answered there: perhaps it listens at the other address. */
static void no_answer(struct probe *p, const char *why)
{
    const char *address = p->addresses[p->address];

    if (!p->answered)
        p->address = (p->address + 1) % p->address_count;
    if (!p->answered && ++p->tried < p->address_count && left_ms(p) > 0)
        ask_port(p);
    else
        fail(p, "port %d of %s: %s", p->options.port, address, why);
}

static void http_answered(const struct http_answer *answer, void *arg)
{
    struct probe *p = arg;

    if (answer->status == 0) {
        no_answer(p, "no answer");
        return;
    }
    p->answered = true;
    if (answer->status >= 200 && answer->status < 300)
        succeed(p);
    else
        fail(p, "%.200s: HTTP status %d", p->options.what, answer->status);
}

static void ask_http(struct probe *p)
{
    const char *address = p->addresses[p->address];
    bool six = strchr(address, ':') != NULL;
    struct http_request request = {.timeout = (double)left_ms(p) / 1000, .status_only = true};
    char *url;
    int rc = -1;

    if (asprintf(&url, "http://%s%s%s:%d%s", six ? "[" : "", address, six ? "]" : "",
                 p->options.port, p->options.what) >= 0) {
        request.url = url;
        rc = http_ask(p->http, &request);
        free(url);
    }
    if (rc != 0)
        fail(p, "out of memory");
}

static void on_dial_closed(uv_handle_t *handle)
{
    struct dial *dial = handle->data;
    struct probe *p = dial->probe;

    free(dial);
    free_if_over(p);
}

static void hang_up(struct probe *p)
{
    if (p->dial != NULL)
        uv_close((uv_handle_t *)&p->dial->tcp, on_dial_closed);
    p->dial = NULL;
}

static void on_connected(uv_connect_t *request, int status)
{
    struct dial *dial = request->data;
    struct probe *p = dial->probe;

    if (p->dial != dial)
        return; /* given up */
    hang_up(p);
    if (status != 0) {
        no_answer(p, uv_strerror(status));
        return;
    }
    p->answered = true;
    succeed(p);
}

static int address_of(const struct probe *p, struct sockaddr_storage *to)
{
    const char *text = p->addresses[p->address];

    if (uv_ip4_addr(text, p->options.port, (struct sockaddr_in *)to) == 0)
        return 0;
    return uv_ip6_addr(text, p->options.port, (struct sockaddr_in6 *)to);
}

static void connect_to(struct probe *p)
{
    struct dial *dial = calloc(1, sizeof(*dial));
    struct sockaddr_storage to;
    int rc;

    if (dial == NULL) {
        fail(p, "out of memory");
        return;
    }
    dial->probe = p;
    dial->tcp.data = dial->request.data = dial;
    uv_tcp_init(p->loop, &dial->tcp);
    p->open++;
    p->dial = dial;
    rc = address_of(p, &to);
    if (rc == 0)
        rc = uv_tcp_connect(&dial->request, &dial->tcp, (struct sockaddr *)&to, on_connected);
    if (rc != 0) {
        hang_up(p);
        no_answer(p, uv_strerror(rc));
    }
}

static void ask_port(struct probe *p)
{
    if (p->options.how == ROLE_PROBE_HTTP)
        ask_http(p);
    else
        connect_to(p);
}

/* Any user can bind a port that this task was given. Who has this task ends it soon (replica.c). */
static bool is_strange(struct probe *p)
{
    return !p->ready && tcp_listener(p->options.port) == TCP_STRANGER;
}

/* ---- a file ---------------------------------------------------------------------------------- */

static void on_stat(uv_fs_t *request)
{
    struct probe *p = request->data;
    ssize_t result = request->result;

    uv_fs_req_cleanup(request);
    p->stating = false;
    if (p->destroyed)
        ; /* nobody asks */
    else if (p->late)
        look_again(p); /* its failure has been counted */
    else if (result == 0)
        succeed(p);
    else
        fail(p, "%.200s: %s", p->options.what, uv_strerror((int)result));
    free_if_over(p);
}

static void ask_file(struct probe *p)
{
    int rc;

    p->stat.data = p;
    rc = uv_fs_stat(p->loop, &p->stat, p->options.what, on_stat);
    if (rc != 0) {
        fail(p, "%s", uv_strerror(rc));
        return;
    }
    p->stating = true;
    p->open++;
}

/* ---- a command ------------------------------------------------------------------------------- */

static void on_command_event(void *arg)
{
    (void)arg;
}

static void on_command_output(int rank, int fd, const char *data, size_t len, void *arg)
{
    struct probe *p = arg;

    (void)rank;
    if (fd == 2)
        tail_feed(&p->tail, data, len);
}

static void on_command_exited(const struct worker_exit *ended, void *arg)
{
    struct probe *p = arg;
    const char *why = tail_why(&p->tail, ended->error, ended->signal);

    p->succeeded = ended->code == 0 && ended->signal == 0;
    if (p->late)
        snprintf(p->why, sizeof(p->why), "its command does not end");
    else if (ended->signal != 0)
        snprintf(p->why, sizeof(p->why), "its command was ended by signal %d", ended->signal);
    else
        snprintf(p->why, sizeof(p->why), "its command ended with %d%s%s", ended->code,
                 why != NULL ? ": " : "", why != NULL ? why : "");
}

static void on_command_drained(void *arg)
{
    struct probe *p = arg;

    workers_destroy(p->command);
    p->command = NULL;
    if (p->succeeded) {
        succeed(p);
        return;
    }
    count_failure(p);
    look_again(p);
}

static void run_command(struct probe *p)
{
    static const struct workers_handlers handlers = {
        .ready = on_command_event,
        .parked = on_command_event,
        .begun = on_command_event,
        .stepping = on_command_event,
        .exited = on_command_exited,
        .drained = on_command_drained,
        .output = on_command_output,
    };
    struct error err = {""};

    p->tail = (struct tail){0};
    p->succeeded = false;
    p->command = workers_start(p->loop, p->options.world, p->options.command, &handlers, p, &err);
    if (p->command == NULL)
        fail(p, "%s", err.text);
}

/* ---- a look ---------------------------------------------------------------------------------- */

static void on_limit(uv_timer_t *timer);

/* A failure, but the look is not over. If it hangs on, it has failed once more. */
static void fail_late(struct probe *p)
{
    p->late = true;
    snprintf(p->why, sizeof(p->why), "%.200s: its file system does not answer", p->options.what);
    count_failure(p);
    if (!p->destroyed && p->failures < PROBE_FAILURES)
        uv_timer_start(&p->limit, on_limit, PROBE_LIMIT_MS, 0);
}

static void on_limit(uv_timer_t *timer)
{
    struct probe *p = timer->data;

    if (p->dial != NULL) {
        hang_up(p);
        no_answer(p, "no answer");
    } else if (p->stating) {
        fail_late(p);
    } else if (p->command != NULL) {
        p->late = true;
        workers_stop(p->command, SIGKILL, 0); /* its end is the outcome */
    }
}

static uint64_t limit_ms(const struct probe *p)
{
    uint64_t every = (uint64_t)(p->options.every * 1000);

    return p->options.how == ROLE_PROBE_EXEC && every > PROBE_LIMIT_MS ? every : PROBE_LIMIT_MS;
}

static void look(uv_timer_t *timer)
{
    struct probe *p = timer->data;

    p->late = false;
    p->tried = 0;
    p->began = uv_now(p->loop);
    uv_timer_start(&p->limit, on_limit, limit_ms(p), 0);
    switch (p->options.how) {
    case ROLE_PROBE_HTTP:
    case ROLE_PROBE_TCP:
        if (is_strange(p))
            fail(p, "a program of another user listens on port %d", p->options.port);
        else
            ask_port(p);
        break;
    case ROLE_PROBE_FILE:
    case ROLE_PROBE_TOLD:
        ask_file(p);
        break;
    case ROLE_PROBE_EXEC:
        run_command(p);
        break;
    default: /* it is ready as it is */
        succeed(p);
        break;
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

struct probe *probe_create(uv_loop_t *loop, const struct probe_options *options,
                           const struct probe_handlers *handlers, void *arg)
{
    struct probe *p = calloc(1, sizeof(*p));

    if (p == NULL)
        return NULL;
    p->loop = loop;
    p->options = *options;
    p->handlers = *handlers;
    p->arg = arg;
    p->addresses[p->address_count++] = "127.0.0.1";
    if (options->address != NULL && strcmp(options->address, p->addresses[0]) != 0)
        p->addresses[p->address_count++] = options->address;
    if (options->how == ROLE_PROBE_HTTP) {
        p->http = http_create(loop, ANSWER_MAX, http_answered, p);
        if (p->http == NULL) {
            free(p);
            return NULL;
        }
        p->open++;
    }
    uv_timer_init(loop, &p->next);
    uv_timer_init(loop, &p->limit);
    p->next.data = p->limit.data = p;
    p->open += 2;
    uv_timer_start(&p->next, look, FIRST_MS, 0);
    return p;
}

const char *probe_address(const struct probe *p)
{
    return p->addresses[p->address];
}

static void on_timer_closed(uv_handle_t *handle)
{
    free_if_over(handle->data);
}

static void on_http_closed(void *arg)
{
    free_if_over(arg);
}

void probe_destroy(struct probe *p)
{
    if (p == NULL || p->destroyed)
        return;
    p->destroyed = true;
    uv_close((uv_handle_t *)&p->next, on_timer_closed);
    uv_close((uv_handle_t *)&p->limit, on_timer_closed);
    hang_up(p);
    if (p->http != NULL)
        http_destroy(p->http, on_http_closed);
    if (p->stating)
        uv_cancel((uv_req_t *)&p->stat); /* if it has not begun */
    workers_destroy(p->command);
    p->command = NULL;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Is this node about to be taken away? (reclaim.h) */
#include "agent/member/reclaim.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "agent/member/http.h"
#include "common/local_service.h"
#include "common/log.h"
#include "lib/notice.h"

#define INTERVAL_MS   5000
#define PROGRAM_TURNS 2 /* a program that runs for this many intervals is ended */

struct reclaim {
    uv_loop_t *loop;
    const struct conf *conf;
    const struct reclaim_handlers *handlers;
    void (*closed)(void *arg);
    void *arg;
    uv_timer_t timer; /* of the program */
    uv_process_t program;
    bool running;     /* the program */
    int turns;        /* intervals for which the program has been running */
    uv_timer_t pause; /* before the next request */
    struct http *http;
    struct notice known;
    struct local_service service;
    bool warned; /* of a stranger in its place */
    bool said;
    int open; /* the timers, http */
};

static void free_if_over(struct reclaim *r)
{
    if (r->closed == NULL || r->running || r->open > 0)
        return;
    r->closed(r->arg);
    free(r);
}

static void say(struct reclaim *r, const char *from, double left)
{
    if (r->said || r->closed != NULL)
        return;
    r->said = true;
    uv_timer_stop(&r->timer);
    uv_timer_stop(&r->pause);
    r->handlers->notice(from, left, r->arg);
}

/* ---- the program ----------------------------------------------------------------------------- */

static void on_program_closed(uv_handle_t *handle)
{
    struct reclaim *r = handle->data;

    r->running = false;
    free_if_over(r);
}

static void on_program_exit(uv_process_t *process, int64_t status, int term_signal)
{
    struct reclaim *r = process->data;

    if (status == 0 && term_signal == 0)
        say(r, "reclaim_program", -1);
    uv_close((uv_handle_t *)process, on_program_closed);
}

/* With what it has started: it leads a session of its own. */
static void kill_program(const struct reclaim *r)
{
    kill(-uv_process_get_pid(&r->program), SIGKILL);
}

static void run_program(uv_timer_t *timer)
{
    struct reclaim *r = timer->data;
    char *args[] = {r->conf->reclaim.program, NULL};
    uv_process_options_t options = {
        .file = args[0], .args = args, .exit_cb = on_program_exit, .flags = UV_PROCESS_DETACHED};
    int rc;

    if (r->running) {
        if (++r->turns >= PROGRAM_TURNS && uv_is_active((uv_handle_t *)&r->program))
            kill_program(r);
        return;
    }
    r->running = true;
    r->turns = 0;
    r->program.data = r;
    rc = uv_spawn(r->loop, &r->program, &options);
    if (rc == 0)
        return;
    log_debug("%s: %s", args[0], uv_strerror(rc));
    uv_close((uv_handle_t *)&r->program, on_program_closed);
}

/* ---- the service ----------------------------------------------------------------------------- */

/* Services name the moment by this clock. */
static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_REALTIME, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Says once why not. */
static bool is_trusted(struct reclaim *r, bool trusted)
{
    if (r->service.of_stranger && !r->warned) {
        r->warned = true;
        log_error("another user listens at port %d of this node, which reclaim in elastic.conf "
                  "names: not asked, not believed",
                  ntohs(r->service.address.sin6_port));
    }
    return trusted;
}

static bool allows(const struct sockaddr *address, void *arg)
{
    struct reclaim *r = arg;

    return is_trusted(r, local_service_allows(&r->service, address));
}

static void answered(const struct http_answer *given, void *arg)
{
    struct reclaim *r = arg;
    struct notice_answer answer = {
        .status = given->status, .text = given->text, .length = given->length, .etag = given->etag};
    struct notice_outcome outcome;

    if (given->status != 0 && !is_trusted(r, local_service_is_trusted(&r->service)))
        answer = (struct notice_answer){0};
    notice_answered(&r->known, now(), &answer, &outcome);
    if (outcome.word[0] != '\0')
        r->handlers->silence(outcome.word, outcome.of_advice, r->arg);
    if (outcome.advised)
        r->handlers->advice(notice_source(&r->conf->reclaim), r->arg);
    if (outcome.comes)
        say(r, notice_source(&r->conf->reclaim), outcome.left);
    else if (r->closed == NULL && !r->said)
        uv_timer_start(&r->pause, r->pause.timer_cb, (uint64_t)(outcome.pause * 1000), 0);
}

static void ask(uv_timer_t *timer)
{
    struct reclaim *r = timer->data;
    struct notice_request next;
    struct http_request request;
    char *url;

    notice_next(&r->known, now(), &next);
    request = (struct http_request){
        .put = next.put, .header = next.header, .timeout = next.timeout};
    if (asprintf(&url, "%s%s", next.endpoint, next.path) < 0)
        url = NULL;
    request.url = url;
    if (url == NULL || http_ask(r->http, &request) < 0)
        uv_timer_start(&r->pause, ask, INTERVAL_MS, 0);
    free(url);
}

/* ---- both ------------------------------------------------------------------------------------ */

struct reclaim *reclaim_create(uv_loop_t *loop, const struct conf *conf,
                               const struct reclaim_handlers *handlers, void *arg)
{
    bool asks = notice_is_asked(&conf->reclaim);
    struct reclaim *r;

    if (conf->reclaim.program == NULL && !asks)
        return NULL;
    r = calloc(1, sizeof(*r));
    if (r == NULL)
        return NULL;
    if (asks) {
        r->http = http_create(loop, NOTICE_ANSWER_MAX, answered, r);
        if (r->http == NULL) {
            free(r);
            return NULL;
        }
        http_limit(r->http, allows);
    }
    r->loop = loop;
    r->conf = conf;
    r->handlers = handlers;
    r->arg = arg;
    r->open = asks ? 3 : 2;
    notice_init(&r->known, &conf->reclaim);
    uv_timer_init(loop, &r->timer);
    uv_timer_init(loop, &r->pause);
    r->timer.data = r->pause.data = r;
    if (conf->reclaim.program != NULL)
        uv_timer_start(&r->timer, run_program, 0, INTERVAL_MS);
    if (asks)
        uv_timer_start(&r->pause, ask, 0, 0);
    return r;
}

static void piece_gone(struct reclaim *r)
{
    r->open--;
    free_if_over(r);
}

static void on_timer_closed(uv_handle_t *handle)
{
    piece_gone(handle->data);
}

static void on_http_closed(void *arg)
{
    piece_gone(arg);
}

void reclaim_destroy(struct reclaim *r, void (*closed)(void *arg))
{
    r->closed = closed;
    if (r->running && uv_is_active((uv_handle_t *)&r->program))
        kill_program(r);
    if (r->http != NULL)
        http_destroy(r->http, on_http_closed);
    uv_close((uv_handle_t *)&r->timer, on_timer_closed);
    uv_close((uv_handle_t *)&r->pause, on_timer_closed);
}

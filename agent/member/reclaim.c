/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Is this node about to be taken away? (reclaim.h) */
#include "agent/member/reclaim.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "common/log.h"

#define INTERVAL_MS   5000
#define CONNECT_MS    1000
#define ANSWER_MS     3000
#define ANSWER_MAX    16384 /* bytes */
#define PROGRAM_TURNS 2     /* a program that runs for this many intervals is ended */

struct reclaim {
    uv_loop_t *loop;
    const struct conf *conf;
    void (*notice)(const char *from, void *arg);
    void (*closed)(void *arg);
    void *arg;
    uv_timer_t timer;
    uv_process_t program;
    uv_work_t request;
    bool running;    /* the program */
    int turns;       /* intervals for which the program has been running */
    bool requesting; /* in libuv's thread */
    bool found;      /* by the request */
    bool said;
    bool timer_open;
    char answer[ANSWER_MAX + 1];
    size_t answer_bytes;
};

static void free_if_over(struct reclaim *r)
{
    if (r->closed == NULL || r->timer_open || r->running || r->requesting)
        return;
    r->closed(r->arg);
    free(r);
}

static void say(struct reclaim *r, const char *from)
{
    if (r->said || r->closed != NULL)
        return;
    r->said = true;
    uv_timer_stop(&r->timer);
    r->notice(from, r->arg);
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
        say(r, "reclaim_program");
    uv_close((uv_handle_t *)process, on_program_closed);
}

/* With what it has started: it leads a session of its own. */
static void kill_program(const struct reclaim *r)
{
    kill(-uv_process_get_pid(&r->program), SIGKILL);
}

static void run_program(struct reclaim *r)
{
    char *args[] = {r->conf->reclaim_program, NULL};
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

/* ---- the address ----------------------------------------------------------------------------- */

static size_t on_data(char *data, size_t size, size_t count, void *arg)
{
    struct reclaim *r = arg;
    size_t bytes = size * count, room = ANSWER_MAX - r->answer_bytes;

    if (bytes > room)
        return 0; /* too long for an answer to us */
    memcpy(r->answer + r->answer_bytes, data, bytes);
    r->answer_bytes += bytes;
    return bytes;
}

/* In libuv's thread. */
static bool ask(struct reclaim *r, CURL *curl)
{
    const struct conf *conf = r->conf;
    struct curl_slist *headers = conf->reclaim_header != NULL
                                     ? curl_slist_append(NULL, conf->reclaim_header)
                                     : NULL;
    long status = 0;
    CURLcode rc;

    r->answer_bytes = 0;
    curl_easy_setopt(curl, CURLOPT_URL, conf->reclaim_url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*"); /* the address is one of the node itself */
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)ANSWER_MS);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, r);
    rc = curl_easy_perform(curl);
    if (rc == CURLE_OK)
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_slist_free_all(headers);
    r->answer[r->answer_bytes] = '\0';
    return rc == CURLE_OK && status == 200 &&
           (conf->reclaim_answer == NULL || strstr(r->answer, conf->reclaim_answer) != NULL);
}

static void request_work(uv_work_t *work)
{
    struct reclaim *r = work->data;
    CURL *curl = curl_easy_init();

    r->found = curl != NULL && ask(r, curl);
    curl_easy_cleanup(curl);
}

static void request_done(uv_work_t *work, int status)
{
    struct reclaim *r = work->data;

    r->requesting = false;
    if (status == 0 && r->found)
        say(r, "reclaim_url");
    free_if_over(r);
}

/* ---- both ------------------------------------------------------------------------------------ */

static void on_timer(uv_timer_t *timer)
{
    struct reclaim *r = timer->data;

    if (r->conf->reclaim_program != NULL)
        run_program(r);
    if (r->conf->reclaim_url != NULL && !r->requesting) {
        r->request.data = r;
        r->requesting = uv_queue_work(r->loop, &r->request, request_work, request_done) == 0;
    }
}

struct reclaim *reclaim_create(uv_loop_t *loop, const struct conf *conf,
                               void (*notice)(const char *from, void *arg), void *arg)
{
    struct reclaim *r;

    if (conf->reclaim_program == NULL && conf->reclaim_url == NULL)
        return NULL;
    r = calloc(1, sizeof(*r));
    if (r == NULL)
        return NULL;
    r->loop = loop;
    r->conf = conf;
    r->notice = notice;
    r->arg = arg;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    uv_timer_init(loop, &r->timer);
    r->timer.data = r;
    r->timer_open = true;
    uv_timer_start(&r->timer, on_timer, 0, INTERVAL_MS);
    return r;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct reclaim *r = handle->data;

    r->timer_open = false;
    free_if_over(r);
}

void reclaim_destroy(struct reclaim *r, void (*closed)(void *arg))
{
    r->closed = closed;
    if (r->running && uv_is_active((uv_handle_t *)&r->program))
        kill_program(r);
    uv_close((uv_handle_t *)&r->timer, on_timer_closed);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One request after the other over HTTP (http.h). */
#include "agent/member/http.h"

#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "common/log.h"

#define CONNECT_MS     1000L
#define FAR_CONNECT_MS 5000L

struct http {
    uv_loop_t *loop;
    void (*answered)(const struct http_answer *answer, void *arg);
    void (*closed)(void *arg);
    bool (*allows)(const struct sockaddr *address, void *arg); /* NULL: any */
    void *arg;
    CURLM *multi;
    CURL *easy; /* NULL: nothing is under way */
    struct curl_slist *headers;
    uv_timer_t timer;
    int open; /* handles in the loop */
    char *text;
    size_t length, most;
    bool status_only;
};

/* A connection in the loop. */
struct watch {
    uv_poll_t poll;
    struct http *http;
    curl_socket_t socket;
};

static void free_if_over(struct http *http)
{
    if (http->closed == NULL || http->open > 0)
        return;
    http->closed(http->arg);
    free(http->text);
    free(http);
}

static void drop_request(struct http *http)
{
    if (http->easy == NULL)
        return;
    curl_multi_remove_handle(http->multi, http->easy);
    curl_easy_cleanup(http->easy);
    curl_slist_free_all(http->headers);
    http->easy = NULL;
    http->headers = NULL;
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* The request is over. What is called may free http. */
static void finish(struct http *http, CURLcode rc)
{
    struct http_answer answer = {.text = http->text};
    struct curl_header *header;
    char *etag = NULL;
    long status = 0;

    if (rc == CURLE_OK || (rc == CURLE_WRITE_ERROR && http->status_only))
        curl_easy_getinfo(http->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status > 0 &&
        curl_easy_header(http->easy, "ETag", 0, CURLH_HEADER, -1, &header) == CURLHE_OK)
        etag = strdup(header->value);
    answer.status = (int)status;
    answer.length = status > 0 ? http->length : 0;
    answer.etag = etag;
    drop_request(http);
    http->answered(&answer, http->arg);
    free(etag);
}

/* There is one request at most, so that one message is all. */
static void look(struct http *http)
{
    int left;
    const CURLMsg *message = curl_multi_info_read(http->multi, &left);

    if (message != NULL && message->msg == CURLMSG_DONE)
        finish(http, message->data.result);
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct watch *watch = poll->data;
    struct http *http = watch->http;
    int flags = 0, running;

    if (status < 0)
        flags = CURL_CSELECT_ERR;
    if ((events & UV_READABLE) != 0)
        flags |= CURL_CSELECT_IN;
    if ((events & UV_WRITABLE) != 0)
        flags |= CURL_CSELECT_OUT;
    curl_multi_socket_action(http->multi, watch->socket, flags, &running);
    look(http);
}

static void on_time(uv_timer_t *timer)
{
    struct http *http = timer->data;
    int running;

    curl_multi_socket_action(http->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    look(http);
}

static void on_watch_closed(uv_handle_t *handle)
{
    struct watch *watch = handle->data;
    struct http *http = watch->http;

    free(watch);
    http->open--;
    free_if_over(http);
}

static int begin_watch(struct http *http, curl_socket_t socket, struct watch **watch)
{
    *watch = calloc(1, sizeof(**watch));
    if (*watch == NULL)
        return -1;
    (*watch)->http = http;
    (*watch)->socket = socket;
    (*watch)->poll.data = *watch;
    if (uv_poll_init_socket(http->loop, &(*watch)->poll, socket) != 0) {
        free(*watch);
        return -1;
    }
    http->open++;
    return curl_multi_assign(http->multi, socket, *watch) == CURLM_OK ? 0 : -1;
}

/* libcurl wants to know when something can be done with a socket. */
static int on_socket(CURL *easy, curl_socket_t socket, int what, void *arg, void *socket_arg)
{
    struct http *http = arg;
    struct watch *watch = socket_arg;
    int events = 0;

    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (watch != NULL) {
            curl_multi_assign(http->multi, socket, NULL);
            uv_poll_stop(&watch->poll);
            uv_close((uv_handle_t *)&watch->poll, on_watch_closed);
        }
        return 0;
    }
    if (watch == NULL && begin_watch(http, socket, &watch) < 0)
        return -1;
    if (what == CURL_POLL_IN || what == CURL_POLL_INOUT)
        events |= UV_READABLE;
    if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT)
        events |= UV_WRITABLE;
    return uv_poll_start(&watch->poll, events, on_ready) == 0 ? 0 : -1;
}

static int on_timer_wanted(CURLM *multi, long ms, void *arg)
{
    struct http *http = arg;

    (void)multi;
    if (ms < 0)
        uv_timer_stop(&http->timer);
    else
        uv_timer_start(&http->timer, on_time, (uint64_t)ms, 0);
    return 0;
}

/* ---- a request ------------------------------------------------------------------------------- */

static size_t on_data(char *data, size_t size, size_t count, void *arg)
{
    struct http *http = arg;
    size_t bytes = size * count;

    if (http->status_only || bytes > http->most - http->length)
        return 0; /* nobody reads on, or it is too long for an answer to us */
    memcpy(http->text + http->length, data, bytes);
    http->length += bytes;
    return bytes;
}

static size_t no_body(char *data, size_t size, size_t count, void *arg)
{
    (void)data;
    (void)size;
    (void)count;
    (void)arg;
    return 0;
}

/* Workers do not inherit it. */
static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct http *http = arg;

    (void)purpose;
    if (http->allows != NULL && !http->allows(&address->addr, http->arg))
        return CURL_SOCKET_BAD;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static void set_post(struct http *http, CURL *easy, const char *text)
{
    http->headers = curl_slist_append(http->headers, "Content-Type: application/json");
    http->headers = curl_slist_append(http->headers, "Expect:");
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, text);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(text));
}

int http_ask(struct http *http, const struct http_request *request)
{
    CURL *easy = curl_easy_init();

    if (easy == NULL)
        return -1;
    http->length = 0;
    http->status_only = request->status_only;
    http->headers = request->header != NULL ? curl_slist_append(NULL, request->header) : NULL;
    curl_easy_setopt(easy, CURLOPT_URL, request->url);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    if (!request->far)
        curl_easy_setopt(easy, CURLOPT_NOPROXY, "*"); /* the address is one of the node itself */
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* do not wait for a thread with a name */
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, http);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, request->far ? FAR_CONNECT_MS : CONNECT_MS);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(request->timeout * 1000));
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, http);
    curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, request->status_only ? 1L : 0L);
    if (request->post != NULL)
        set_post(http, easy, request->post);
    if (request->put) {
        curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(easy, CURLOPT_INFILESIZE, 0L);
        curl_easy_setopt(easy, CURLOPT_READFUNCTION, no_body);
    }
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, http->headers);
    http->easy = easy;
    if (curl_multi_add_handle(http->multi, easy) == CURLM_OK)
        return 0;
    drop_request(http);
    return -1;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct http *http_create(uv_loop_t *loop, size_t answer_max,
                         void (*answered)(const struct http_answer *answer, void *arg), void *arg)
{
    struct http *http = calloc(1, sizeof(*http));

    if (http == NULL)
        return NULL;
    http->text = malloc(answer_max + 1);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    http->multi = curl_multi_init();
    if (http->multi == NULL)
        log_error("cannot ask over HTTP: %s", curl_easy_strerror(CURLE_FAILED_INIT));
    if (http->text == NULL || http->multi == NULL) {
        curl_multi_cleanup(http->multi);
        free(http->text);
        free(http);
        return NULL;
    }
    http->loop = loop;
    http->most = answer_max;
    http->answered = answered;
    http->arg = arg;
    http->open = 1;
    uv_timer_init(loop, &http->timer);
    http->timer.data = http;
    curl_multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
    curl_multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, on_timer_wanted);
    curl_multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
    return http;
}

void http_limit(struct http *http, bool (*allows)(const struct sockaddr *address, void *arg))
{
    http->allows = allows;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct http *http = handle->data;

    http->open--;
    free_if_over(http);
}

void http_destroy(struct http *http, void (*closed)(void *arg))
{
    http->closed = closed;
    drop_request(http);
    curl_multi_cleanup(http->multi);
    uv_close((uv_handle_t *)&http->timer, on_timer_closed);
}

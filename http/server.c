/* SPDX-License-Identifier: GPL-2.0-or-later */
/* HTTP by libmicrohttpd, in libuv's loop (server.h).
 *
 * The library has an epoll descriptor, which the loop watches. A request that waits for the leader
 * is suspended: the library does not look at its connection until there is an answer. So the loop
 * itself watches for a client that goes meanwhile. */
#include "http/server.h"

#include <inttypes.h>
#include <microhttpd.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "common/log.h"
#include "lib/api_request.h"
#include "lib/fit_view.h"

#define HEADERS_MAX 32768
#define TICK_MS     1000
#define RETRY_AFTER "1" /* seconds: who is refused because many wait */
#define JSON        "application/json"

static const int statuses[] = {200, 400, 403, 404, 405, 409, 412, 413, 500, 502, 503};
#define STATUSES (sizeof(statuses) / sizeof(statuses[0]))

/* A client's connection. */
struct line {
    TAILQ_ENTRY(line) entry;
    int fd;
    bool tcp;
    uint64_t late;       /* 0: nothing is expected of the client */
    struct vigil *vigil; /* of the request that waits; NULL: none does */
};

/* Watches for the end of a client whose request waits. It outlives its line until the loop has
 * closed its handle. */
struct vigil {
    uv_poll_t poll;
    struct exchange *exchange;
};

struct server {
    uv_loop_t *loop;
    struct server_options options;
    struct MHD_Daemon *daemon;
    uv_poll_t poll;
    uv_timer_t due, tick;
    int handles;
    TAILQ_HEAD(, line) lines;
    int line_count;
    uint64_t answers[STATUSES];
};

/* A request. */
struct exchange {
    struct server *server;
    struct line *line;
    struct MHD_Connection *connection;
    char *target;
    char *body;
    size_t body_size; /* may be more than was kept */
    bool begun, answered;
    enum api_verb verb;
    struct MHD_Response *response;
    int status;
};

/* ---- the library in the loop ----------------------------------------------------------------- */

static void on_due(uv_timer_t *timer);

static void run(struct server *server)
{
    MHD_UNSIGNED_LONG_LONG ms;

    MHD_run(server->daemon);
    if (MHD_get_timeout(server->daemon, &ms) == MHD_YES)
        uv_timer_start(&server->due, on_due, ms, 0);
    else
        uv_timer_stop(&server->due);
}

static void on_due(uv_timer_t *timer)
{
    run(timer->data);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    run(poll->data);
}

/* The library is not called from within its own calls. */
static void run_soon(struct server *server)
{
    uv_timer_start(&server->due, on_due, 0, 0);
}

/* Who sends or reads too slowly is cut off. The library only knows how long nothing has come. */
static void on_tick(uv_timer_t *timer)
{
    struct server *server = timer->data;
    uint64_t now = uv_now(server->loop);
    struct line *line;

    TAILQ_FOREACH (line, &server->lines, entry)
        if (line->late != 0 && now >= line->late) {
            shutdown(line->fd, SHUT_RDWR);
            line->late = 0;
        }
    /* Doors that found no descriptor free may find one now. */
    server->options.room(server->options.arg);
}

static void expect(struct exchange *exchange)
{
    struct line *line = exchange->line;

    line->late = uv_now(exchange->server->loop) + (uint64_t)exchange->server->options.patience_ms;
}

/* ---- answers --------------------------------------------------------------------------------- */

static void count(struct server *server, int status)
{
    for (size_t i = 0; i < STATUSES; i++)
        server->answers[i] += statuses[i] == status;
}

/* The server's own metrics behind those of the job. A new text. */
static char *add_metrics(const struct server *server, const struct api_reply *reply)
{
    static const struct metrics_family
        requests = {"elastic_http_requests_total", METRICS_COUNTER, NULL,
                    "Requests that have been answered"},
        waiting = {"elastic_http_waiting", METRICS_GAUGE, NULL,
                   "Requests that wait for the leader, or for a change"},
        connections = {"elastic_http_connections", METRICS_GAUGE, NULL, "Connections of clients"};
    char *text = NULL;
    size_t size;
    struct metrics_writer writer = {.out = open_memstream(&text, &size), .format = reply->format};

    if (writer.out == NULL)
        return NULL;
    fputs(reply->text, writer.out);
    for (size_t i = 0; i < STATUSES; i++) {
        char code[16];
        struct metrics_label labels[] = {{"code", code}, {NULL, NULL}};

        snprintf(code, sizeof(code), "%d", statuses[i]);
        metrics_sample(&writer, &requests, labels, (double)server->answers[i]);
    }
    metrics_sample(&writer, &waiting, NULL, desk_waiting(server->options.desk));
    metrics_sample(&writer, &connections, NULL, server->line_count);
    metrics_end(&writer);
    return fclose(writer.out) == 0 ? text : NULL;
}

static struct MHD_Response *make_response(struct exchange *exchange, struct api_reply *reply)
{
    const char *text = reply->text, *type = metrics_content_type(reply->format);
    char *metrics = NULL, etag[24];
    struct MHD_Response *response;

    if (reply->text != NULL && exchange->verb == API_METRICS)
        text = metrics = add_metrics(exchange->server, reply);
    if (reply->body != NULL) {
        type = JSON;
        text = json_object_to_json_string_ext(reply->body, JSON_C_TO_STRING_PLAIN |
                                                               JSON_C_TO_STRING_NOSLASHESCAPE);
    }
    if (text == NULL)
        text = "";
    response = MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text,
                                               MHD_RESPMEM_MUST_COPY);
    free(metrics);
    if (response == NULL)
        return NULL;
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "Cache-Control", "no-store");
    if (reply->status == 503)
        MHD_add_response_header(response, "Retry-After", RETRY_AFTER);
    if (reply->allow[0] != '\0')
        MHD_add_response_header(response, "Allow", reply->allow);
    snprintf(etag, sizeof(etag), "\"%d\"", reply->epoch);
    if (reply->epoch >= 0)
        MHD_add_response_header(response, "ETag", etag);
    return response;
}

static void set_answer(struct exchange *exchange, struct api_reply *reply)
{
    exchange->response = make_response(exchange, reply);
    exchange->status = reply->status;
    exchange->answered = true;
}

static enum MHD_Result send_answer(struct exchange *exchange)
{
    if (exchange->response == NULL)
        return MHD_NO;
    expect(exchange);
    count(exchange->server, exchange->status);
    return MHD_queue_response(exchange->connection, (unsigned)exchange->status, exchange->response);
}

static enum MHD_Result refuse(struct exchange *exchange, int status, const char *why)
{
    struct api_reply reply;

    api_reply_set(&reply, status, NULL, "%s", why);
    set_answer(exchange, &reply);
    api_reply_clear(&reply);
    return send_answer(exchange);
}

/* ---- requests that wait ---------------------------------------------------------------------- */

static void on_vigil_closed(uv_handle_t *handle)
{
    free(handle->data);
}

/* Before the library may close the descriptor. */
static void wait_ends(struct exchange *exchange)
{
    struct vigil *vigil = exchange->line->vigil;

    exchange->line->vigil = NULL;
    if (vigil != NULL)
        uv_close((uv_handle_t *)&vigil->poll, on_vigil_closed);
    MHD_resume_connection(exchange->connection);
    run_soon(exchange->server);
}

/* An answer that is NULL ends the connection. */
static void on_client_gone(uv_poll_t *poll, int status, int events)
{
    struct exchange *exchange = ((struct vigil *)poll->data)->exchange;

    (void)status;
    (void)events;
    desk_withdraw(exchange->server->options.desk, exchange);
    fits_withdraw(exchange->server->options.fits, exchange);
    exchange->answered = true;
    wait_ends(exchange);
}

static int wait_begins(struct exchange *exchange)
{
    struct vigil *vigil = calloc(1, sizeof(*vigil));

    if (vigil == NULL)
        return -1;
    if (uv_poll_init(exchange->server->loop, &vigil->poll, exchange->line->fd) != 0) {
        free(vigil);
        return -1;
    }
    vigil->poll.data = vigil;
    vigil->exchange = exchange;
    exchange->line->vigil = vigil;
    exchange->line->late = 0;
    MHD_suspend_connection(exchange->connection);
    uv_poll_start(&vigil->poll, UV_DISCONNECT, on_client_gone);
    return 0;
}

static void on_reply(struct api_reply *reply, void *arg)
{
    struct exchange *exchange = arg;

    set_answer(exchange, reply);
    wait_ends(exchange);
}

/* ---- requests -------------------------------------------------------------------------------- */

static const char *header(const struct exchange *exchange, const char *name)
{
    return MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
}

static enum MHD_Result wait_for_leader(struct exchange *exchange, const struct api_request *request)
{
    struct desk *desk = exchange->server->options.desk;

    if (wait_begins(exchange) != 0)
        return MHD_NO;
    if (desk_take(desk, request, on_reply, exchange) == 0)
        return MHD_YES;
    exchange->answered = true;
    wait_ends(exchange);
    return MHD_YES;
}

static enum MHD_Result refuse_fit(struct exchange *exchange, struct fit_request *request)
{
    struct api_reply reply;

    fit_view_refuse(&reply, request->openai, 503, "too many requests about trainings wait already");
    fit_request_destroy(request);
    set_answer(exchange, &reply);
    api_reply_clear(&reply);
    return send_answer(exchange);
}

static enum MHD_Result wait_for_fit(struct exchange *exchange, struct fit_request *request)
{
    struct fits *fits = exchange->server->options.fits;

    if (fits_is_full(fits))
        return refuse_fit(exchange, request);
    if (wait_begins(exchange) != 0) {
        fit_request_destroy(request);
        return MHD_NO;
    }
    if (fits_take(fits, request, on_reply, exchange) == 0)
        return MHD_YES;
    exchange->answered = true;
    wait_ends(exchange);
    return MHD_YES;
}

/* As long as 32 digits: nobody ever makes it again. */
static void make_id(char *id, size_t size)
{
    unsigned char bytes[16];

    randombytes_buf(bytes, sizeof(bytes));
    sodium_bin2hex(id, size, bytes, sizeof(bytes));
}

/* The whole request is there. */
static enum MHD_Result serve(struct exchange *exchange, const char *method)
{
    char id[REPORT_ID_MAX];
    struct api_input input = {
        .method = method,
        .target = exchange->target,
        .host = header(exchange, "Host"),
        .origin = header(exchange, "Origin"),
        .if_match = header(exchange, "If-Match"),
        .accept = header(exchange, "Accept"),
        .id = id,
        .tcp = exchange->line->tcp,
        .body = exchange->body,
        .body_size = exchange->body_size,
    };
    struct api_request request;
    struct api_reply reply = {0};

    make_id(id, sizeof(id));
    if (api_request_read(&input, &request, &reply) != 0) {
        set_answer(exchange, &reply);
        api_reply_clear(&reply);
        return send_answer(exchange);
    }
    exchange->verb = request.verb;
    if (request.verb == API_HEALTH) {
        reply = (struct api_reply){.status = 200, .epoch = -1};
        set_answer(exchange, &reply);
        return send_answer(exchange);
    }
    if (request.verb == API_FIT)
        return wait_for_fit(exchange, request.fit);
    if (desk_is_full(exchange->server->options.desk)) {
        di_request_destroy(request.di);
        return refuse(exchange, 503, "too many requests wait already");
    }
    return wait_for_leader(exchange, &request);
}

/* More than may be is counted, and not kept. */
static enum MHD_Result take_body(struct exchange *exchange, const char *data, size_t size)
{
    size_t had = exchange->body_size;
    char *body;

    exchange->body_size += size;
    if (exchange->body_size > API_BODY_MAX)
        return MHD_YES;
    body = realloc(exchange->body, had + size);
    if (body == NULL)
        return MHD_NO;
    memcpy(body + had, data, size);
    exchange->body = body;
    return MHD_YES;
}

static bool is_too_large(const struct exchange *exchange)
{
    const char *length = header(exchange, "Content-Length");

    return length != NULL && strtoull(length, NULL, 10) > API_BODY_MAX;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **arg)
{
    struct exchange *exchange = *arg;
    enum MHD_Result result;

    (void)cls;
    (void)url;
    (void)version;
    if (exchange == NULL || exchange->target == NULL)
        return MHD_NO; /* out of memory */
    exchange->connection = connection;
    if (exchange->answered)
        return send_answer(exchange);
    if (!exchange->begun) {
        exchange->begun = true;
        return is_too_large(exchange) ? refuse(exchange, 413, "the body has more than 1 MiB")
                                      : MHD_YES;
    }
    if (*size == 0)
        return serve(exchange, method);
    result = take_body(exchange, data, *size);
    *size = 0;
    return result;
}

static struct line *line_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(
        connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info != NULL ? info->socket_context : NULL;
}

static void *on_target(void *cls, const char *target, struct MHD_Connection *connection)
{
    struct exchange *exchange = calloc(1, sizeof(*exchange));
    struct line *line = line_of(connection);

    if (exchange == NULL || line == NULL) {
        free(exchange);
        return NULL;
    }
    exchange->server = cls;
    exchange->line = line;
    exchange->connection = connection;
    exchange->target = strdup(target);
    return exchange;
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **arg,
                         enum MHD_RequestTerminationCode why)
{
    struct exchange *exchange = *arg;

    (void)cls;
    (void)connection;
    (void)why;
    *arg = NULL;
    if (exchange == NULL)
        return;
    expect(exchange); /* the next one */
    if (exchange->response != NULL)
        MHD_destroy_response(exchange->response);
    free(exchange->target);
    free(exchange->body);
    free(exchange);
}

/* ---- connections ----------------------------------------------------------------------------- */

static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct server *server = cls;
    struct line *line = *context;

    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (line == NULL)
            return;
        TAILQ_REMOVE(&server->lines, line, entry);
        server->line_count--;
        free(line);
        server->options.room(server->options.arg);
        return;
    }
    line = calloc(1, sizeof(*line));
    *context = line;
    if (line == NULL)
        return;
    line->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    line->tcp = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)
                    ->client_addr->sa_family != AF_UNIX;
    line->late = uv_now(server->loop) + (uint64_t)server->options.patience_ms;
    TAILQ_INSERT_TAIL(&server->lines, line, entry);
    server->line_count++;
}

bool server_is_full(const struct server *server)
{
    return server->line_count >= SERVER_CONNECTIONS;
}

void server_add(struct server *server, int fd, const struct sockaddr *address, socklen_t size)
{
    if (MHD_add_connection(server->daemon, fd, address, size) != MHD_YES)
        log_debug("a connection cannot be served");
    run_soon(server);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void on_log(void *cls, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

static void on_log(void *cls, const char *format, va_list args)
{
    char text[256];

    (void)cls;
    vsnprintf(text, sizeof(text), format, args);
    text[strcspn(text, "\n")] = '\0';
    log_debug("libmicrohttpd: %s", text);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct server *server = handle->data;

    if (--server->handles > 0)
        return;
    free(server);
}

static void close_handles(struct server *server)
{
    uv_close((uv_handle_t *)&server->poll, on_handle_closed);
    uv_close((uv_handle_t *)&server->due, on_handle_closed);
    uv_close((uv_handle_t *)&server->tick, on_handle_closed);
}

struct server *server_create(uv_loop_t *loop, const struct server_options *options,
                             struct error *err)
{
    struct server *server = calloc(1, sizeof(*server));

    if (server == NULL) {
        error_set(err, "out of memory");
        return NULL;
    }
    server->loop = loop;
    server->options = *options;
    TAILQ_INIT(&server->lines);
    server->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0,
        NULL, NULL, on_request, server, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
        MHD_OPTION_URI_LOG_CALLBACK, on_target, server, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
        server, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADERS_MAX, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)SERVER_CONNECTIONS, MHD_OPTION_END);
    if (server->daemon == NULL) {
        free(server);
        error_set(err, "libmicrohttpd cannot be started");
        return NULL;
    }
    uv_poll_init(loop, &server->poll,
                 MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd);
    uv_timer_init(loop, &server->due);
    uv_timer_init(loop, &server->tick);
    server->poll.data = server->due.data = server->tick.data = server;
    server->handles = 3;
    uv_poll_start(&server->poll, UV_READABLE, on_poll);
    uv_timer_start(&server->tick, on_tick, TICK_MS, TICK_MS);
    return server;
}

void server_destroy(struct server *server)
{
    run(server); /* those that were suspended are answered */
    uv_poll_stop(&server->poll);
    MHD_stop_daemon(server->daemon);
    close_handles(server);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elastic-exporter: serves what `selastic exporter --once` prints.
 *
 * A scrape never waits for Slurm: it gets the text of the latest look. A look that fails, takes too
 * long or prints too much leaves nothing but elastic_exporter_success 0: old numbers would look
 * like new ones. One process with one loop; each look is a process of its own. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <uv.h>

#include "common/log.h"
#include "common/tcp_caller.h"
#include "common/capture.h"
#include "lib/error.h"
#include "lib/metrics_text.h"
#include "lib/number.h"

#define TEXT_MAX         ((size_t)32 << 20) /* bytes that a look may print */
#define CONNECTIONS      64
#define CLIENT_MS        10000 /* for a request and its answer, however slow a client is */
#define ACCEPTS_PER_TURN 16
#define SWEEP_MS         1000
#define LATE_MS          1000 /* after the look's own time limit */
#define ARGUMENTS        7

/* A connection. */
struct client {
    TAILQ_ENTRY(client) entry;
    int fd;
    struct caller caller;
    uint64_t late; /* it is cut off then; 0: it is */
    bool known;    /* to the library */
};

struct exporter {
    uv_loop_t loop;
    struct MHD_Daemon *daemon;
    int fd; /* that listens */
    TAILQ_HEAD(, client) clients;
    int client_count;
    uv_poll_t poll, door;
    uv_timer_t due, tick, sweep;
    uv_signal_t term, interrupt;
    struct look *look;  /* NULL: there is none */
    uint64_t look_late; /* nobody waits for it then; 0: nobody does any more */
    bool left;          /* at the end, too */
    /* What scrapes get until the next look is over: all of them the same bytes, however many there
     * are, and however slow. NULL: out of memory. */
    struct MHD_Response *page;
    double at; /* Unix time of the latest look that has succeeded */
    int looks, failures;
    const char *selastic;
    int port, jobs, interval, timeout;
};

/* ---- what is served -------------------------------------------------------------------------- */

static void put_own(FILE *out, const struct exporter *e, bool has_succeeded)
{
    static const struct metrics_family
        success = {"elastic_exporter_success", METRICS_GAUGE, NULL,
                   "1 if the latest look at Slurm and the leaders has succeeded"},
        at = {"elastic_exporter_look_timestamp_seconds", METRICS_GAUGE, "seconds",
              "When the latest look that succeeded ended"},
        looks = {"elastic_exporter_looks_total", METRICS_COUNTER, NULL, "Looks so far"},
        failures = {"elastic_exporter_failed_looks_total", METRICS_COUNTER, NULL,
                    "Looks that failed"};
    struct metrics_writer writer = {.out = out, .format = METRICS_PROMETHEUS};

    metrics_sample(&writer, &success, NULL, has_succeeded);
    metrics_sample(&writer, &at, NULL, e->at);
    metrics_sample(&writer, &looks, NULL, e->looks);
    metrics_sample(&writer, &failures, NULL, e->failures);
    metrics_end(&writer);
}

/* What the latest look has printed, if it has succeeded, and what is said of the looks. */
static void set_page(struct exporter *e, const char *printed, size_t size)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    if (e->page != NULL)
        MHD_destroy_response(e->page); /* when the last client has it */
    e->page = NULL;
    if (out == NULL)
        return;
    if (printed != NULL)
        fwrite(printed, 1, size, out);
    put_own(out, e, printed != NULL);
    if (fclose(out) == 0)
        e->page = MHD_create_response_from_buffer(length, text, MHD_RESPMEM_MUST_FREE);
    if (e->page == NULL)
        free(text);
    else
        MHD_add_response_header(e->page, "Content-Type", metrics_content_type(METRICS_PROMETHEUS));
}

static struct MHD_Response *plain(const char *text)
{
    return MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text,
                                           MHD_RESPMEM_PERSISTENT);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **arg)
{
    static int begun;
    const struct exporter *e = cls;
    struct MHD_Response *response;
    unsigned status = MHD_HTTP_OK;
    enum MHD_Result result;

    (void)version;
    (void)data;
    if (*arg == NULL) {
        *arg = &begun; /* the headers; the library wants to be asked once more */
        return MHD_YES;
    }
    if (*size > 0) {
        *size = 0; /* a body is of no interest */
        return MHD_YES;
    }
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        status = MHD_HTTP_METHOD_NOT_ALLOWED;
        response = plain("only GET\n");
    } else if (strcmp(url, "/metrics") == 0) {
        response = e->page;
    } else if (strcmp(url, "/healthz") == 0) {
        response = plain("");
    } else {
        status = MHD_HTTP_NOT_FOUND;
        response = plain("there are /metrics and /healthz\n");
    }
    if (response == NULL)
        return MHD_NO;
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, "Allow", "GET");
    result = MHD_queue_response(connection, status, response);
    if (response != e->page)
        MHD_destroy_response(response);
    return result;
}

/* ---- the library in the loop ----------------------------------------------------------------- */

static void on_due(uv_timer_t *timer)
{
    struct exporter *e = timer->data;
    MHD_UNSIGNED_LONG_LONG ms;

    MHD_run(e->daemon);
    if (MHD_get_timeout(e->daemon, &ms) == MHD_YES)
        uv_timer_start(&e->due, on_due, ms, 0);
    else
        uv_timer_stop(&e->due);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct exporter *e = poll->data;

    (void)status;
    (void)events;
    on_due(&e->due);
}

/* ---- clients --------------------------------------------------------------------------------- */

/* Any user of this machine can connect, and of others too with --address. So each has a share of
 * the connections only, and each of them some seconds: Prometheus finds a place. */

static void run_soon(struct exporter *e)
{
    uv_timer_start(&e->due, on_due, 0, 0);
}

static void forget_client(struct exporter *e, struct client *client)
{
    TAILQ_REMOVE(&e->clients, client, entry);
    e->client_count--;
    free(client);
}

static struct client *client_at(struct exporter *e, int fd)
{
    struct client *client;

    TAILQ_FOREACH (client, &e->clients, entry)
        if (client->fd == fd)
            return client;
    return NULL;
}

static int connect_fd(struct MHD_Connection *connection)
{
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct exporter *e = cls;
    struct client *client = client_at(e, connect_fd(connection));

    (void)context;
    if (client == NULL)
        return;
    client->known = true;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED)
        forget_client(e, client);
}

/* Another request may follow. */
static void on_completed(void *cls, struct MHD_Connection *connection, void **arg,
                         enum MHD_RequestTerminationCode why)
{
    struct exporter *e = cls;
    struct client *client = client_at(e, connect_fd(connection));

    (void)arg;
    (void)why;
    if (client != NULL && client->late != 0)
        client->late = uv_now(&e->loop) + CLIENT_MS;
}

static bool has_share(struct exporter *e, const struct caller *caller)
{
    struct client *client;
    int places = 0;

    TAILQ_FOREACH (client, &e->clients, entry)
        places += caller_is_same(&client->caller, caller);
    return caller_may_have(caller, places);
}

static void let_in(struct exporter *e, int fd, const struct sockaddr *address, socklen_t size)
{
    struct client *client = calloc(1, sizeof(*client));
    struct caller caller = tcp_caller(fd);

    if (client == NULL || !has_share(e, &caller)) {
        free(client);
        close(fd);
        return;
    }
    *client = (struct client){
        .fd = fd, .caller = caller, .late = uv_now(&e->loop) + CLIENT_MS, .known = false};
    TAILQ_INSERT_TAIL(&e->clients, client, entry);
    e->client_count++;
    /* In the end it closes the descriptor, in any case. */
    if (MHD_add_connection(e->daemon, fd, address, size) != MHD_YES &&
        (client = client_at(e, fd)) != NULL && !client->known)
        forget_client(e, client);
    run_soon(e);
}

static void on_door(uv_poll_t *poll, int status, int events)
{
    struct exporter *e = poll->data;

    (void)status;
    (void)events;
    for (int i = 0; i < ACCEPTS_PER_TURN && e->client_count < CONNECTIONS; i++) {
        struct sockaddr_storage address = {0};
        socklen_t size = sizeof(address);
        int fd = accept4(e->fd, (struct sockaddr *)&address, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd < 0 && errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
            uv_poll_stop(poll); /* there is no descriptor; the sweep opens it again */
        if (fd < 0)
            return;
        let_in(e, fd, (struct sockaddr *)&address, size);
    }
    if (e->client_count == CONNECTIONS)
        uv_poll_stop(poll);
}

static void leave_look(struct exporter *e);

static void on_sweep(uv_timer_t *timer)
{
    struct exporter *e = timer->data;
    struct client *client;

    if (e->look != NULL && e->look_late != 0 && uv_now(&e->loop) >= e->look_late)
        leave_look(e);

    TAILQ_FOREACH (client, &e->clients, entry)
        if (client->late != 0 && uv_now(&e->loop) >= client->late) {
            shutdown(client->fd, SHUT_RDWR);
            client->late = 0;
        }
    uv_poll_start(&e->door, UV_READABLE, on_door);
}

/* ---- a look ---------------------------------------------------------------------------------- */

static void has_failed(struct exporter *e)
{
    e->looks++;
    e->failures++;
    set_page(e, NULL, 0);
}

/* It was to be killed, and is not gone: what it waits for in the kernel does not answer. It is
 * waited for, and none begins meanwhile: they would become many. */
static void leave_look(struct exporter *e)
{
    e->look_late = 0;
    log_error("a look cannot be ended; there is none until it is gone");
    has_failed(e);
}

static void look_over(char *text, size_t size, int status, void *arg)
{
    struct exporter *e = arg;
    struct timeval now;
    bool left = e->look != NULL && e->look_late == 0;

    e->look = NULL;
    if (text == NULL || status != 0 || left) {
        free(text);
        if (!left)
            has_failed(e);
        return;
    }
    e->looks++;
    gettimeofday(&now, NULL);
    e->at = (double)now.tv_sec + (double)now.tv_usec / 1e6;
    set_page(e, text, size);
    free(text);
}

static void on_tick(uv_timer_t *timer)
{
    struct exporter *e = timer->data;
    char jobs[32], timeout[32];
    char *args[] = {"selastic", "exporter", "--once", jobs, timeout, NULL};
    const struct look_options options = {.program = e->selastic,
                                         .args = args,
                                         .limit_ms = e->timeout * 1000 + LATE_MS,
                                         .most = TEXT_MAX,
                                         .done = look_over,
                                         .arg = e};

    if (e->look != NULL)
        return; /* the one before is not over */
    snprintf(jobs, sizeof(jobs), "--jobs=%d", e->jobs);
    snprintf(timeout, sizeof(timeout), "--timeout=%d", e->timeout);
    e->look_late = uv_now(&e->loop) + (uint64_t)options.limit_ms + LATE_MS;
    e->look = look_begin(&e->loop, &options);
    if (e->look == NULL)
        look_over(NULL, 0, -1, e);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void on_left(uv_timer_t *timer)
{
    struct exporter *e = timer->data;

    e->left = true;
    uv_stop(&e->loop);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct exporter *e = handle->data;

    (void)number;
    if (e->look != NULL)
        look_cancel(e->look);
    e->look = NULL;
    uv_poll_stop(&e->poll);
    uv_poll_stop(&e->door);
    MHD_stop_daemon(e->daemon);
    close(e->fd);
    uv_close((uv_handle_t *)&e->poll, NULL);
    uv_close((uv_handle_t *)&e->door, NULL);
    uv_close((uv_handle_t *)&e->due, NULL);
    uv_close((uv_handle_t *)&e->tick, NULL);
    /* A look that cannot be ended does not hold the end. */
    uv_timer_start(&e->sweep, on_left, LATE_MS, 0);
    uv_unref((uv_handle_t *)&e->sweep);
    uv_close((uv_handle_t *)&e->term, NULL);
    uv_close((uv_handle_t *)&e->interrupt, NULL);
}

static int listen_at(struct exporter *e, const char *address, struct error *err)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)e->port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)e->port)};
    bool is_v4 = inet_pton(AF_INET, address, &v4.sin_addr) == 1;
    int on = 1;

    if (!is_v4 && inet_pton(AF_INET6, address, &v6.sin6_addr) != 1)
        return error_set(err, "'%s' is no address", error_value(address).text);
    e->fd = socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (e->fd < 0 || setsockopt(e->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        bind(e->fd, is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6,
             is_v4 ? sizeof(v4) : sizeof(v6)) != 0 ||
        listen(e->fd, SOMAXCONN) != 0)
        return error_set(err, "cannot listen at %s, port %d: %s", error_value(address).text,
                         e->port, strerror(errno));
    e->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, on_request, e,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, e, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
        e, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS, MHD_OPTION_END);
    return e->daemon != NULL ? 0 : error_set(err, "libmicrohttpd cannot be started");
}

static int begin(struct exporter *e, const char *address, struct error *err)
{
    signal(SIGPIPE, SIG_IGN);
    TAILQ_INIT(&e->clients);
    if (listen_at(e, address, err) != 0)
        return -1;
    set_page(e, NULL, 0);
    uv_loop_init(&e->loop);
    uv_poll_init(&e->loop, &e->poll,
                 MHD_get_daemon_info(e->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd);
    uv_poll_init(&e->loop, &e->door, e->fd);
    uv_timer_init(&e->loop, &e->due);
    uv_timer_init(&e->loop, &e->tick);
    uv_timer_init(&e->loop, &e->sweep);
    uv_signal_init(&e->loop, &e->term);
    uv_signal_init(&e->loop, &e->interrupt);
    e->poll.data = e->door.data = e->due.data = e->tick.data = e->sweep.data = e->term.data =
        e->interrupt.data = e;
    uv_poll_start(&e->poll, UV_READABLE, on_poll);
    uv_poll_start(&e->door, UV_READABLE, on_door);
    uv_timer_start(&e->tick, on_tick, 0, (uint64_t)e->interval * 1000);
    uv_timer_start(&e->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
    uv_signal_start(&e->term, on_signal, SIGTERM);
    uv_signal_start(&e->interrupt, on_signal, SIGINT);
    return 0;
}

static bool read_number(const char *text, int *number)
{
    return number_parse(text, strlen(text), 1, INT32_MAX / 1000, number) == 0;
}

int main(int argc, char **argv)
{
    static struct exporter e;
    struct error err = {""};

    log_init("elastic-exporter");
    if (argc != ARGUMENTS || !read_number(argv[2], &e.port) || e.port > UINT16_MAX ||
        !read_number(argv[4], &e.jobs) || !read_number(argv[5], &e.interval) ||
        !read_number(argv[6], &e.timeout)) {
        log_error("`selastic exporter` starts this program; there is nothing to be done with it by "
                  "hand");
        return 2;
    }
    e.selastic = argv[1];
    if (begin(&e, argv[3], &err) != 0) {
        log_error("%s", err.text);
        return 1;
    }
    printf("http://%s%s%s:%d/metrics\n", strchr(argv[3], ':') != NULL ? "[" : "", argv[3],
           strchr(argv[3], ':') != NULL ? "]" : "", e.port);
    fflush(stdout);
    uv_run(&e.loop, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&e.sweep, NULL);
    uv_run(&e.loop, UV_RUN_NOWAIT);
    if (e.page != NULL)
        MHD_destroy_response(e.page);
    return uv_loop_close(&e.loop) == 0 || e.left ? 0 : 1;
}

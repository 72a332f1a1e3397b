/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elastic-page: a web page of a user's elastic jobs, which only shows.
 *
 * It serves three files (http/page/), and what `selastic list`, `show` and `history --svg` print.
 * These run only while a client waits for news, a few at a time. A client that has seen the latest
 * news waits for the next: a long poll. Only programs of this user come in (door.h). */
#include "config.h"

#include <microhttpd.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include <uv.h>

#include "common/log.h"
#include "http/door.h"
#include "common/capture.h"
#include "http/page_files.h"
#include "lib/api_request.h"
#include "lib/error.h"
#include "lib/number.h"

#define TEXT_MAX       ((size_t)8 << 20) /* bytes that a look may print */
#define CONNECTIONS    64
#define CLIENT_SECONDS 40    /* without a byte from a client; longer than it may wait */
#define WAIT_MS        25000 /* for news */
#define TICK_MS        500
#define LOOK_LIMIT_MS  15000
#define LOOKS          3  /* at once */
#define NEWS           64 /* kinds of news that are known at once */
#define FD_MAX         1023

enum kind { KIND_LIST, KIND_SHOW, KIND_PICTURE };

static const struct {
    const char *type;
    int every_ms; /* between two looks */
} kinds[] = {
    [KIND_LIST] = {"application/json", 5000},
    [KIND_SHOW] = {"application/json", 2000},
    [KIND_PICTURE] = {"image/svg+xml", 5000},
};

/* What one of these commands has printed. */
struct news {
    TAILQ_ENTRY(news) entry;
    struct page *page;
    enum kind kind;
    int job;
    char *text; /* NULL: it failed */
    size_t size;
    int version; /* 0: it has never been looked at */
    uint64_t looked;
    struct look *look; /* NULL: none is under way */
};

/* A request that waits. */
struct waiter {
    TAILQ_ENTRY(waiter) entry;
    struct MHD_Connection *connection;
    struct news *news;
    int after;
    uint64_t fresh; /* what was looked at earlier is old */
    uint64_t late;
    bool due;
};

struct page {
    uv_loop_t loop;
    struct MHD_Daemon *daemon;
    struct door *door;
    uv_poll_t poll;
    uv_timer_t due, tick;
    uv_signal_t term, interrupt;
    TAILQ_HEAD(news_list, news) news; /* the latest used first */
    TAILQ_HEAD(, waiter) waiters;
    int news_count, looks, connections;
    const char *selastic;
};

static void on_due(uv_timer_t *timer);

static void run_soon(struct page *page)
{
    uv_timer_start(&page->due, on_due, 0, 0);
}

/* ---- news ------------------------------------------------------------------------------------ */

static bool is_awaited(const struct news *news)
{
    const struct waiter *waiter;

    TAILQ_FOREACH (waiter, &news->page->waiters, entry)
        if (waiter->news == news)
            return true;
    return false;
}

static void forget(struct news *news)
{
    TAILQ_REMOVE(&news->page->news, news, entry);
    news->page->news_count--;
    free(news->text);
    free(news);
}

/* The oldest that nobody waits for makes room. NULL: there is none. */
static struct news *make_room(struct page *page)
{
    struct news *news;

    if (page->news_count >= NEWS) {
        TAILQ_FOREACH_REVERSE(news, &page->news, news_list, entry)
        if (news->look == NULL && !is_awaited(news))
            break;
        if (news == NULL)
            return NULL;
        forget(news);
    }
    return calloc(1, sizeof(*news));
}

static struct news *find(struct page *page, enum kind kind, int job)
{
    struct news *news;

    TAILQ_FOREACH (news, &page->news, entry)
        if (news->kind == kind && news->job == job)
            break;
    if (news != NULL) {
        TAILQ_REMOVE(&page->news, news, entry);
    } else if ((news = make_room(page)) != NULL) {
        news->page = page;
        news->kind = kind;
        news->job = job;
        page->news_count++;
    }
    if (news != NULL)
        TAILQ_INSERT_HEAD(&page->news, news, entry);
    return news;
}

static bool is_the_same(const struct news *news, const char *text, size_t size)
{
    if (news->version == 0 || (news->text == NULL) != (text == NULL))
        return false;
    return text == NULL || (size == news->size && memcmp(text, news->text, size) == 0);
}

static void looked(char *text, size_t size, int status, void *arg)
{
    struct news *news = arg;
    struct page *page = news->page;

    news->look = NULL;
    news->looked = uv_now(&page->loop);
    page->looks--;
    if (status != 0) {
        free(text);
        text = NULL;
    }
    if (is_the_same(news, text, size)) {
        free(text);
        return;
    }
    free(news->text);
    news->text = text;
    news->size = text != NULL ? size : 0;
    news->version++;
    run_soon(page);
}

static void look(struct news *news)
{
    struct page *page = news->page;
    char job[16];
    char *list[] = {"selastic", "list", "--json", NULL};
    char *show[] = {"selastic", "show", job, "--json", NULL};
    char *picture[] = {"selastic", "history", job, "--svg", "-", NULL};
    const struct look_options options = {.program = page->selastic,
                                         .args = news->kind == KIND_LIST   ? list
                                                 : news->kind == KIND_SHOW ? show
                                                                           : picture,
                                         .limit_ms = LOOK_LIMIT_MS,
                                         .most = TEXT_MAX,
                                         .done = looked,
                                         .arg = news};

    snprintf(job, sizeof(job), "%d", news->job);
    page->looks++;
    news->look = look_begin(&page->loop, &options);
    if (news->look == NULL)
        looked(NULL, 0, -1, news);
}

/* ---- who waits ------------------------------------------------------------------------------- */

static bool has_news(const struct waiter *waiter)
{
    return waiter->news->version > 0 && waiter->news->version != waiter->after &&
           waiter->news->looked >= waiter->fresh;
}

/* The library does not look at a connection that is suspended. */
static bool is_gone(const struct waiter *waiter)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(
        waiter->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct pollfd poll_fd = {.events = POLLRDHUP};

    if (info == NULL)
        return false;
    poll_fd.fd = info->connect_fd;
    return poll(&poll_fd, 1, 0) > 0;
}

static void wake_up(struct page *page)
{
    struct waiter *waiter;

    TAILQ_FOREACH (waiter, &page->waiters, entry)
        if (!waiter->due &&
            (has_news(waiter) || uv_now(&page->loop) >= waiter->late || is_gone(waiter))) {
            waiter->due = true;
            MHD_resume_connection(waiter->connection);
        }
}

static void on_tick(uv_timer_t *timer)
{
    struct page *page = timer->data;
    struct waiter *waiter;

    TAILQ_FOREACH (waiter, &page->waiters, entry) {
        struct news *news = waiter->news;
        bool is_old = news->version == 0 ||
                      uv_now(&page->loop) - news->looked >= (uint64_t)kinds[news->kind].every_ms;

        if (!waiter->due && news->look == NULL && is_old && page->looks < LOOKS)
            look(news);
    }
    wake_up(page);
    on_due(&page->due);
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Nothing from elsewhere, no script in the page itself, and nobody else's page around it. */
static const char page_policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/* A picture has its style in itself. */
static const char picture_policy[] = "default-src 'none'; style-src 'unsafe-inline'; sandbox";

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *type,
                              const char *text, size_t size, int version)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(size, (void *)(uintptr_t)text,
                                                                    MHD_RESPMEM_MUST_COPY);
    enum MHD_Result result;
    char etag[24];

    if (response == NULL)
        return MHD_NO;
    snprintf(etag, sizeof(etag), "\"%d\"", version);
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "Content-Security-Policy",
                            strcmp(type, "image/svg+xml") == 0 ? picture_policy : page_policy);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
    MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
    MHD_add_response_header(response, "Cache-Control", "no-store");
    if (version > 0)
        MHD_add_response_header(response, "ETag", etag);
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, "Allow", "GET");
    if (status == MHD_HTTP_FORBIDDEN)
        MHD_add_response_header(response, "Connection", "close");
    result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *why)
{
    return answer(connection, status, "text/plain", why, strlen(why), 0);
}

static enum MHD_Result answer_news(struct MHD_Connection *connection, const struct news *news)
{
    static const char nothing[] = "selastic has no answer\n";

    if (news->text == NULL)
        return answer(connection, MHD_HTTP_BAD_GATEWAY, "text/plain", nothing, strlen(nothing),
                      news->version);
    return answer(connection, MHD_HTTP_OK, kinds[news->kind].type, news->text, news->size,
                  news->version);
}

/* ---- requests -------------------------------------------------------------------------------- */

static int parameter(struct MHD_Connection *connection, const char *name)
{
    const char *text = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);
    int number = 0;

    if (text != NULL && number_parse(text, strlen(text), 0, INT32_MAX, &number) != 0)
        number = 0;
    return number;
}

static enum MHD_Result wait_for(struct page *page, struct MHD_Connection *connection,
                                enum kind kind, int job, void **arg)
{
    struct waiter *waiter = calloc(1, sizeof(*waiter));
    struct news *news = find(page, kind, job);

    if (waiter == NULL || news == NULL) {
        free(waiter);
        return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "too many jobs are looked at\n");
    }
    *waiter = (struct waiter){.connection = connection,
                              .news = news,
                              .after = parameter(connection, "after"),
                              .fresh = uv_now(&page->loop) - (uint64_t)kinds[kind].every_ms,
                              .late = uv_now(&page->loop) + WAIT_MS};
    *arg = waiter;
    TAILQ_INSERT_TAIL(&page->waiters, waiter, entry);
    MHD_suspend_connection(connection);
    uv_timer_start(&page->tick, on_tick, 0, TICK_MS);
    return MHD_YES;
}

/* Has another web page made the browser ask? It cannot read the answer, but it could keep all
 * connections busy. Not each request has Origin; curl has neither. */
static bool is_of_another_page(struct MHD_Connection *connection)
{
    const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
    const char *origin = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Origin");
    const char *site = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Sec-Fetch-Site");

    return api_request_is_foreign(host, origin) ||
           (site != NULL && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0);
}

/* "/jobs/12" or "/jobs/12/picture". */
static bool read_job(const char *url, enum kind *kind, int *job)
{
    static const char begin[] = "/jobs/";
    const char *number = url + strlen(begin), *rest;

    if (strncmp(url, begin, strlen(begin)) != 0)
        return false;
    rest = number + strcspn(number, "/");
    *kind = *rest == '\0' ? KIND_SHOW : KIND_PICTURE;
    return number_parse(number, (size_t)(rest - number), 1, INT32_MAX, job) == 0 &&
           (*rest == '\0' || strcmp(rest, "/picture") == 0);
}

static enum MHD_Result serve(struct page *page, struct MHD_Connection *connection, const char *url,
                             void **arg)
{
    enum kind kind;
    int job;

    for (size_t i = 0; i < sizeof(page_files) / sizeof(page_files[0]); i++)
        if (strcmp(url, page_files[i].path) == 0)
            return answer(connection, MHD_HTTP_OK, page_files[i].type,
                          (const char *)page_files[i].data, page_files[i].size, 0);
    /* The page itself may be a link elsewhere. */
    if (is_of_another_page(connection))
        return refuse(connection, MHD_HTTP_FORBIDDEN, "another web page may not ask\n");
    if (strcmp(url, "/jobs") == 0)
        return wait_for(page, connection, KIND_LIST, 0, arg);
    if (read_job(url, &kind, &job))
        return wait_for(page, connection, kind, job, arg);
    return refuse(connection, MHD_HTTP_NOT_FOUND, "there is no such page\n");
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **arg)
{
    static int begun;
    const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
    const struct waiter *waiter = *arg;

    (void)version;
    (void)data;
    if (*arg == NULL) {
        *arg = &begun; /* the headers; the library wants to be asked once more */
        return MHD_YES;
    }
    if (*arg != &begun)
        return answer_news(connection, waiter->news);
    if (*size > 0) {
        *size = 0; /* a body is of no interest */
        return MHD_YES;
    }
    if (strcmp(method, "GET") != 0)
        return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET\n");
    /* A foreign page may have a name server say that its name is 127.0.0.1. */
    if (host == NULL || !api_request_is_loopback(host))
        return refuse(connection, MHD_HTTP_FORBIDDEN, "header Host: not this machine\n");
    return serve(cls, connection, url, arg);
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **arg,
                         enum MHD_RequestTerminationCode code)
{
    struct page *page = cls;
    struct waiter *waiter;

    (void)connection;
    (void)code;
    TAILQ_FOREACH (waiter, &page->waiters, entry)
        if (waiter == *arg)
            break;
    if (waiter == NULL)
        return;
    TAILQ_REMOVE(&page->waiters, waiter, entry);
    free(waiter);
    if (TAILQ_EMPTY(&page->waiters))
        uv_timer_stop(&page->tick);
}

/* ---- the library in the loop ----------------------------------------------------------------- */

static bool is_full(void *arg)
{
    return ((struct page *)arg)->connections >= CONNECTIONS;
}

static void add(void *arg, int fd, const struct sockaddr *address, socklen_t size)
{
    struct page *page = arg;

    if (MHD_add_connection(page->daemon, fd, address, size) != MHD_YES)
        log_debug("a client cannot be let in");
    run_soon(page);
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **arg,
                          enum MHD_ConnectionNotificationCode code)
{
    struct page *page = cls;
    const struct door_room room = {.full = is_full, .add = add, .arg = page};

    (void)connection;
    (void)arg;
    page->connections += code == MHD_CONNECTION_NOTIFY_STARTED ? 1 : -1;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED)
        door_serve(page->door, &room);
}

static void on_due(uv_timer_t *timer)
{
    struct page *page = timer->data;
    MHD_UNSIGNED_LONG_LONG ms;

    wake_up(page);
    MHD_run(page->daemon);
    if (MHD_get_timeout(page->daemon, &ms) == MHD_YES)
        uv_timer_start(&page->due, on_due, ms, 0);
    else
        uv_timer_stop(&page->due);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct page *page = poll->data;

    (void)status;
    (void)events;
    on_due(&page->due);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void on_signal(uv_signal_t *handle, int number)
{
    struct page *page = handle->data;

    (void)number;
    uv_stop(&page->loop);
}

static int begin(struct page *page, int fd, struct error *err)
{
    const struct door_room room = {.full = is_full, .add = add, .arg = page};

    TAILQ_INIT(&page->news);
    TAILQ_INIT(&page->waiters);
    signal(SIGPIPE, SIG_IGN);
    uv_loop_init(&page->loop);
    page->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
        on_request, page, MHD_OPTION_NOTIFY_COMPLETED, on_completed, page,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, page, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)CLIENT_SECONDS,
        MHD_OPTION_END);
    if (page->daemon == NULL)
        return error_set(err, "libmicrohttpd cannot be started");
    uv_poll_init(&page->loop, &page->poll,
                 MHD_get_daemon_info(page->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd);
    uv_timer_init(&page->loop, &page->due);
    uv_timer_init(&page->loop, &page->tick);
    uv_signal_init(&page->loop, &page->term);
    uv_signal_init(&page->loop, &page->interrupt);
    page->poll.data = page->due.data = page->tick.data = page->term.data = page->interrupt.data =
        page;
    uv_poll_start(&page->poll, UV_READABLE, on_poll);
    uv_signal_start(&page->term, on_signal, SIGTERM);
    uv_signal_start(&page->interrupt, on_signal, SIGINT);
    page->door = door_open(&page->loop, fd, err);
    if (page->door == NULL)
        return -1;
    door_serve(page->door, &room);
    return 0;
}

int main(int argc, char **argv)
{
    static struct page page;
    struct error err = {""};
    int fd;

    log_init("elastic-page");
    if (argc != 3 || number_parse(argv[2], strlen(argv[2]), 3, FD_MAX, &fd) != 0) {
        log_error("`selastic proxy` starts this program; there is nothing to be done with it by "
                  "hand");
        return 2;
    }
    page.selastic = argv[1];
    if (begin(&page, fd, &err) != 0) {
        log_error("%s", err.text);
        return 1;
    }
    uv_run(&page.loop, UV_RUN_DEFAULT);
    return 0; /* looks that are under way end by themselves: nobody reads what they print */
}

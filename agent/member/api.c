/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The HTTP interface of the job on this node (api.h). */
#include "agent/member/api.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/port.h"
#include "agent/run_dir.h"
#include "common/link.h"
#include "common/log.h"
#include "lib/json_get.h"

#define SOCKET_NAME     "api"
#define PAUSE_FIRST_MS  100 /* before a server is started again; twice as long each time */
#define PAUSE_MAX_MS    10000
#define PING_MS         2000
#define PINGS_LOST      5     /* that a server may leave without an answer */
#define STEADY_MS       60000 /* a server that has lived so long is not one of a row */
#define EXIT_CANNOT_RUN 127   /* of a program that misses a library */
#define EXIT_USAGE      2     /* another release has been installed meanwhile */
#define FIRST_FD        3     /* of the server: the link, and the sockets */
#define FDS             6
#define NUMBER_SIZE     16

struct api {
    uv_loop_t *loop;
    struct api_options options;
    int local, tcp; /* listening sockets, until nobody can serve them; -1: there is none */
    char *path, *url;
    char *address; /* of the leader; NULL: not known */
    int port;
    struct api_server *server; /* NULL: there is none */
    uint64_t started;
    int pause_ms;
    uv_timer_t pause, ping;
    bool destroyed;
    int pieces; /* servers that have not ended, and the timers */
    void (*gone)(void *arg);
    void *gone_arg;
};

/* It outlives its place in struct api until it is reaped and its link is closed. */
struct api_server {
    struct api *api;
    uv_process_t process;
    struct link *link;
    int pings; /* since its last answer */
    bool ended, linked;
};

static void start(struct api *api);

/* ---- its end --------------------------------------------------------------------------------- */

static void close_socket(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void piece_gone(struct api *api)
{
    if (--api->pieces > 0 || !api->destroyed)
        return;
    api->gone(api->gone_arg);
    free(api->path);
    free(api->url);
    free(api->address);
    free(api);
}

static void free_if_over(struct api_server *server)
{
    struct api *api = server->api;

    if (!server->ended || server->linked)
        return;
    free(server);
    piece_gone(api);
}

static void on_pause(uv_timer_t *timer)
{
    start(timer->data);
}

static void start_again(struct api *api)
{
    if (uv_now(api->loop) - api->started >= STEADY_MS)
        api->pause_ms = PAUSE_FIRST_MS;
    uv_timer_start(&api->pause, on_pause, (uint64_t)api->pause_ms, 0);
    api->pause_ms = 2 * api->pause_ms < PAUSE_MAX_MS ? 2 * api->pause_ms : PAUSE_MAX_MS;
}

/* Clients are refused from now on, in place of waiting for ever. The port stays bound, as far as
 * that can be: no other user is to listen where clients go. */
static void give_up(struct api *api, const char *why)
{
    log_error("%s: tasks have no HTTP interface from now on: %s", api->options.node, why);
    close_socket(&api->local);
    shutdown(api->tcp, SHUT_RDWR);
    unlink(api->path);
}

static void on_process_closed(uv_handle_t *handle)
{
    struct api_server *server = handle->data;

    server->ended = true;
    free_if_over(server);
}

static void on_process_exit(uv_process_t *process, int64_t code, int signal)
{
    struct api_server *server = process->data;
    struct api *api = server->api;
    char why[80];

    snprintf(why, sizeof(why), signal != 0 ? "signal %d" : "status %d",
             signal != 0 ? signal : (int)code);
    if (api->server == server) {
        api->server = NULL;
        if (server->link != NULL)
            link_close(server->link, why);
        if (signal == 0 && (code == EXIT_CANNOT_RUN || code == EXIT_USAGE)) {
            give_up(api, "elasticrun-http cannot be run");
        } else {
            log_info("%s: elasticrun-http has ended by itself (%s), and is started again",
                     api->options.node, why);
            start_again(api);
        }
    }
    uv_close((uv_handle_t *)process, on_process_closed);
}

static void on_closed(struct link *link, const char *why, void *arg)
{
    struct api_server *server = arg;

    (void)link;
    (void)why;
    server->link = NULL;
    server->linked = false;
    /* on_process_exit goes on. */
    if (server->api->server == server)
        uv_process_kill(&server->process, SIGKILL);
    free_if_over(server);
}

/* ---- does it answer? ------------------------------------------------------------------------- */

/* Pings are counted, not seconds: an agent that was stopped itself does not blame the server. */
static void on_ping(uv_timer_t *timer)
{
    const struct api *api = timer->data;
    struct api_server *server = api->server;
    json_object *msg;

    if (server == NULL || server->link == NULL)
        return;
    if (server->pings++ >= PINGS_LOST) {
        log_info("%s: elasticrun-http does not answer, and is ended", api->options.node);
        uv_process_kill(&server->process, SIGKILL); /* on_process_exit goes on */
        return;
    }
    msg = json_object_new_object();
    json_object_object_add(msg, "t", json_object_new_string("ping"));
    link_send(server->link, msg);
}

static void on_message(struct link *link, json_object *msg, void *arg)
{
    struct api_server *server = arg;
    const char *type = json_get_string(msg, "t");

    (void)link;
    if (type != NULL && strcmp(type, "pong") == 0)
        server->pings = 0;
}

/* ---- its beginning --------------------------------------------------------------------------- */

static void send_leader(struct api *api)
{
    json_object *msg;

    if (api->address == NULL || api->server == NULL || api->server->link == NULL)
        return;
    msg = json_object_new_object();
    json_object_object_add(msg, "t", json_object_new_string("leader"));
    json_object_object_add(msg, "address", json_object_new_string(api->address));
    json_object_object_add(msg, "port", json_object_new_int(api->port));
    link_send(api->server->link, msg);
}

static int spawn(struct api_server *server, int theirs)
{
    const struct api *api = server->api;
    char job[NUMBER_SIZE], restarts[NUMBER_SIZE], uid[NUMBER_SIZE];
    const char *args[] = {"elasticrun-http",
                          "--agent=3",
                          "--door=4",
                          "--door=5",
                          "--job",
                          job,
                          "--restarts",
                          restarts,
                          "--uid",
                          uid,
                          api->options.state_dir != NULL ? "--state-dir" : NULL,
                          api->options.state_dir,
                          NULL};
    uv_stdio_container_t stdio[FDS] = {
        {.flags = UV_IGNORE},
        {.flags = UV_INHERIT_FD, .data.fd = STDOUT_FILENO},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
        {.flags = UV_INHERIT_FD, .data.fd = theirs},
        {.flags = UV_INHERIT_FD, .data.fd = api->local},
        {.flags = UV_INHERIT_FD, .data.fd = api->tcp},
    };
    uv_process_options_t options = {
        .exit_cb = on_process_exit,
        .file = api->options.program,
        .args = (char **)args,
        .stdio_count = FDS,
        .stdio = stdio,
    };

    snprintf(job, sizeof(job), "%u", api->options.job);
    snprintf(restarts, sizeof(restarts), "%u", api->options.restarts);
    snprintf(uid, sizeof(uid), "%u", getuid());
    return uv_spawn(api->loop, &server->process, &options);
}

static void start(struct api *api)
{
    static const struct link_handlers handlers = {.message = on_message, .closed = on_closed};
    struct api_server *server = calloc(1, sizeof(*server));
    struct error err = {""};
    int ends[2], rc;

    api->started = uv_now(api->loop);
    if (server == NULL || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        free(server);
        start_again(api);
        return;
    }
    server->api = api;
    server->process.data = server;
    api->pieces++;
    rc = spawn(server, ends[1]);
    close(ends[1]);
    if (rc != 0) {
        close(ends[0]);
        uv_close((uv_handle_t *)&server->process, on_process_closed);
        give_up(api, uv_strerror(rc));
        return;
    }
    api->server = server;
    server->link = link_adopt(api->loop, ends[0], true, &handlers, server, &err);
    server->linked = server->link != NULL;
    if (server->link == NULL)
        uv_process_kill(&server->process, SIGKILL); /* on_process_exit goes on */
    send_leader(api);
}

void api_leader(struct api *api, const char *address, int port)
{
    free(api->address);
    api->address = address != NULL ? strdup(address) : NULL;
    api->port = port;
    send_leader(api);
}

const char *api_url(const struct api *api)
{
    return api->url;
}

const char *api_socket(const struct api *api)
{
    return api->path;
}

/* ---- life ------------------------------------------------------------------------------------ */

static int open_sockets(struct api *api, struct error *err)
{
    int port;

    if (asprintf(&api->path, "%s/" SOCKET_NAME, api->options.run_dir) < 0) {
        api->path = NULL;
        return error_set(err, "out of memory");
    }
    api->local = run_dir_socket(api->options.run_dir, SOCKET_NAME, err);
    if (api->local < 0)
        return -1;
    if (listen(api->local, SOMAXCONN) != 0)
        return error_set(err, "%s: cannot listen", error_path(api->path).text);
    api->tcp = port_listen(&port, err);
    if (api->tcp < 0)
        return -1;
    if (asprintf(&api->url, "http://127.0.0.1:%d", port) >= 0)
        return 0;
    api->url = NULL;
    return error_set(err, "out of memory");
}

static void on_timer_closed(uv_handle_t *handle)
{
    piece_gone(handle->data);
}

static void nobody(void *arg)
{
    (void)arg;
}

struct api *api_create(uv_loop_t *loop, const struct api_options *options, struct error *err)
{
    struct api *api = calloc(1, sizeof(*api));
    uint64_t ping_ms = options->ping_ms > 0 ? (uint64_t)options->ping_ms : PING_MS;

    if (api == NULL) {
        error_set(err, "out of memory");
        return NULL;
    }
    api->loop = loop;
    api->options = *options;
    api->local = api->tcp = -1;
    api->pause_ms = PAUSE_FIRST_MS;
    uv_timer_init(loop, &api->pause);
    uv_timer_init(loop, &api->ping);
    api->pause.data = api->ping.data = api;
    api->pieces = 2;
    if (open_sockets(api, err) != 0) {
        api_destroy(api, nobody, NULL);
        return NULL;
    }
    start(api);
    uv_timer_start(&api->ping, on_ping, ping_ms, ping_ms);
    return api;
}

void api_destroy(struct api *api, void (*gone)(void *arg), void *arg)
{
    struct api_server *server = api->server;

    api->destroyed = true;
    api->gone = gone;
    api->gone_arg = arg;
    api->server = NULL;
    close_socket(&api->local);
    close_socket(&api->tcp);
    if (server != NULL && server->link != NULL)
        link_close(server->link, "the end");
    if (server != NULL)
        uv_process_kill(&server->process, SIGKILL);
    uv_close((uv_handle_t *)&api->pause, on_timer_closed);
    uv_close((uv_handle_t *)&api->ping, on_timer_closed);
}

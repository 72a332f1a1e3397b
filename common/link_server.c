/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The leader's side: its port, from the first that is free to the end.
 *
 * link_accept.c lets connections in, link_judge.c looks who they are. */
#include "common/link_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <sodium.h>

#include "common/log.h"

#define BACKLOG 1024

/* ---- the published port ---------------------------------------------------------------------- */

/* The server may be gone when the thread is done. */
struct publish_job {
    uv_work_t req;
    char *state_dir, base[24];
    int port;
    struct error err;
    bool needed, failed;
};

static void publish_work(uv_work_t *req)
{
    struct publish_job *job = req->data;

    job->failed = link_port_write(job->state_dir, job->base, job->port, &job->err) != 0;
}

static void publish_done(uv_work_t *req, int status)
{
    struct publish_job *job = req->data;

    if (status == 0 && job->failed && job->needed)
        log_error("%s", job->err.text);
    else if (status == 0 && job->failed)
        log_debug("%s", job->err.text);
    free(job->state_dir);
    free(job);
}

/* Members and selastic find a candidate without the file too, after a while. */
static void publish(struct link_server *server)
{
    struct publish_job *job;

    if (server->state_dir == NULL)
        return;
    job = calloc(1, sizeof(*job));
    if (job == NULL || (job->state_dir = strdup(server->state_dir)) == NULL) {
        free(job);
        return;
    }
    job->req.data = job;
    job->port = server->port;
    job->needed = server->anywhere;
    memcpy(job->base, server->base, sizeof(job->base));
    if (uv_queue_work(server->loop, &job->req, publish_work, publish_done) != 0)
        publish_done(&job->req, UV_ECANCELED);
}

/* ---- start and end --------------------------------------------------------------------------- */

static int listen_any(int family, const struct sockaddr *address, socklen_t len)
{
    int on = 1, off = 0;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (bind(fd, address, len) != 0 || listen(fd, BACKLOG) != 0) {
        int saved = errno;

        close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

/* A listening socket for IPv6 and IPv4, or for IPv4 alone where the host has no IPv6; -1 with
 * errno. */
static int listen_on(int port)
{
    struct sockaddr_in6 any6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in any4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = listen_any(AF_INET6, (struct sockaddr *)&any6, sizeof(any6));

    if (fd < 0 && errno != EADDRINUSE && errno != EACCES)
        fd = listen_any(AF_INET, (struct sockaddr *)&any4, sizeof(any4));
    return fd;
}

/* The socket of the server gets a port that the kernel chooses. */
static int listen_on_any(struct link_server *server, struct error *err)
{
    struct sockaddr_storage bound;
    socklen_t len = sizeof(bound);

    server->fd = listen_on(0);
    if (server->fd < 0 || getsockname(server->fd, (struct sockaddr *)&bound, &len) != 0)
        return error_set(err, "no port to listen on: %s", strerror(errno));
    /* At the same place in both kinds of address. */
    server->port = ntohs(((struct sockaddr_in *)&bound)->sin_port);
    server->anywhere = true;
    if (server->options.successor)
        return 0; /* the leader tells the others where it listens */
    return link_port_write(server->state_dir, server->base, server->port, err);
}

static int listen_on_candidate(struct link_server *server, struct error *err)
{
    const struct link_server_options *options = &server->options;
    int code = 0;

    for (int k = 0; k < LINK_CANDIDATES; k++) {
        server->port = link_candidate_port(options->job_id, options->restarts,
                                           options->successor ? LINK_CANDIDATES - 1 - k : k,
                                           options->port_first, options->port_last);
        server->fd = listen_on(server->port);
        if (server->fd >= 0)
            return 0;
        code = errno;
    }
    if (server->state_dir != NULL)
        return listen_on_any(server, err);
    return error_set(err,
                     "no port to listen on: all %d candidates of job %s within %d-%d fail, the "
                     "last one (%d): %s",
                     LINK_CANDIDATES, server->base, options->port_first, options->port_last,
                     server->port, strerror(code));
}

static struct link_server *server_free(struct link_server *server)
{
    if (server != NULL && server->fd >= 0)
        close(server->fd);
    if (server != NULL) {
        free(server->munge_socket);
        free(server->state_dir);
    }
    free(server);
    return NULL;
}

struct link_server *link_server_create(uv_loop_t *loop, const struct link_server_options *options,
                                       const struct link_handlers *handlers, void *arg,
                                       struct error *err)
{
    struct link_server *server = calloc(1, sizeof(*server));

    if (server == NULL || sodium_init() < 0) {
        error_set(err, "the leader's port: out of memory or no random numbers");
        free(server);
        return NULL;
    }
    server->fd = -1;
    server->loop = loop;
    server->options = *options;
    server->options.munge_socket = server->options.state_dir = NULL;
    server->handlers = *handlers;
    server->arg = arg;
    TAILQ_INIT(&server->pending);
    TAILQ_INIT(&server->open);
    TAILQ_INIT(&server->turns);
    link_base(server->base, sizeof(server->base), options->job_id, options->restarts);
    if ((options->munge_socket != NULL &&
         (server->munge_socket = strdup(options->munge_socket)) == NULL) ||
        (options->state_dir != NULL && (server->state_dir = strdup(options->state_dir)) == NULL)) {
        error_set(err, "the leader's port: out of memory");
        return server_free(server);
    }
    if (listen_on_candidate(server, err) != 0)
        return server_free(server);
    if (uv_poll_init(loop, &server->poll, server->fd) != 0) {
        error_set(err, "the leader's port: the event loop cannot watch the socket");
        return server_free(server);
    }
    uv_timer_init(loop, &server->pause);
    server->handles = 2;
    server->poll.data = server;
    server->pause.data = server;
    link_server_accept(server);
    if (!options->successor && !server->anywhere)
        publish(server);
    return server;
}

int link_server_port(const struct link_server *server)
{
    return server->port;
}

void link_server_lead(struct link_server *server, const struct link_handlers *handlers, void *arg)
{
    struct link *link;

    if (server->options.successor)
        publish(server);
    server->options.successor = false;
    server->handlers = *handlers;
    server->arg = arg;
    TAILQ_FOREACH (link, &server->pending, entry) {
        link->handlers = *handlers;
        link->arg = arg;
    }
    TAILQ_FOREACH (link, &server->open, entry) {
        link->handlers = *handlers;
        link->arg = arg;
    }
}

void link_server_free_if_done(struct link_server *server)
{
    if (!server->closing || server->handles > 0 || server->links > 0 || server->jobs > 0)
        return;
    free(server->munge_socket);
    free(server->state_dir);
    free(server);
}

static void handle_closed(uv_handle_t *handle)
{
    struct link_server *server = handle->data;

    server->handles--;
    link_server_free_if_done(server);
}

static void poll_closed(uv_handle_t *handle)
{
    struct link_server *server = handle->data;

    close(server->fd);
    server->fd = -1;
    handle_closed(handle);
}

void link_server_destroy(struct link_server *server)
{
    struct link *link, *next;

    if (server == NULL || server->closing)
        return;
    server->closing = true;
    uv_close((uv_handle_t *)&server->poll, poll_closed);
    uv_close((uv_handle_t *)&server->pause, handle_closed);
    for (link = TAILQ_FIRST(&server->pending); link != NULL; link = next) {
        next = TAILQ_NEXT(link, entry);
        link_end(link, "the leader ends");
    }
    for (link = TAILQ_FIRST(&server->open); link != NULL; link = next) {
        next = TAILQ_NEXT(link, entry);
        link_close(link, "the leader ends");
    }
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The leader's side: who gets a place before it has proved anything.
 *
 * Anybody on the network may connect, so a peer that has proved nothing gets little: a small frame,
 * a few seconds, one of PENDING_MAX places. When all places are taken, the connection that has
 * waited longest is closed. But no connection is closed within PATIENCE_MS: else a thousand agents
 * that come at once would push each other out. A connection that has said nothing is closed sooner:
 * while it waited in the kernel's queue for a place, as all do then, it had the time to send its
 * hello. So ten thousand peers that connect again and again do not fill that queue. Until a place
 * is free no connection is accepted; the kernel keeps new ones in its queue.
 *
 * No user of this node and no other host gets more than its share of the places (lib/callers.h).
 * What it has beyond that is accepted and closed at once: in the kernel's queue it would stand
 * before members of the job.
 *
 * The socket is polled and accepted by hand, not through uv_listen: libuv has no way to stop
 * listening for a moment when descriptors run out. */
#include "common/link_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "common/tcp_caller.h"

#define PENDING_MAX        64
#define PATIENCE_MS        100
#define SILENT_PATIENCE_MS 20
#define ACCEPTS_PER_TURN   16
#define REFUSALS_PER_TURN  128
/* Whose a connection is may take long to find: without sock_diag, tables of all connections are
 * read. What else the leader has to do comes in between. */
#define TURN_NS 5000000

/* ---- places ---------------------------------------------------------------------------------- */

static void resume(struct link_server *server);

static void pause_over(uv_timer_t *timer)
{
    resume(timer->data);
}

static void pause_accepting(struct link_server *server, uint64_t ms)
{
    server->paused = true;
    uv_poll_stop(&server->poll);
    uv_timer_start(&server->pause, pause_over, ms, 0);
}

void link_server_opened(struct link *link)
{
    struct link_server *server = link->server;

    TAILQ_REMOVE(&server->pending, link, entry);
    server->pending_count--;
    TAILQ_INSERT_TAIL(&server->open, link, entry);
    resume(server);
}

void link_server_leave(struct link *link)
{
    struct link_server *server = link->server;

    if (link->authenticated) {
        TAILQ_REMOVE(&server->open, link, entry);
        return;
    }
    TAILQ_REMOVE(&server->pending, link, entry);
    server->pending_count--;
    resume(server);
}

void link_server_forget(struct link *link)
{
    link->server->links--;
    link_server_free_if_done(link->server);
}

static bool is_overdue(const struct link *link, uint64_t now)
{
    uint64_t patience = link->heard ? PATIENCE_MS : SILENT_PATIENCE_MS;

    return link->state != LINK_AUTH && now - link->since >= patience;
}

/* Take away the place of a link that has had its time; of this caller's links if there is one.
 * False: none has had it. */
static bool end_overdue(struct link_server *server, const struct caller *caller)
{
    uint64_t now = uv_now(server->loop);
    struct link *link;

    TAILQ_FOREACH (link, &server->pending, entry) {
        if (is_overdue(link, now) && (caller == NULL || caller_is_same(&link->caller, caller))) {
            if (link->state == LINK_CLOSING)
                link_end(link, link->why);
            else
                link_fail(link, "silent while others waited for its place");
            return true;
        }
    }
    return false;
}

/* Make a place free if none is. False: not now. */
static bool have_place(struct link_server *server)
{
    return server->pending_count < PENDING_MAX || end_overdue(server, NULL);
}

static bool is_within_share(struct link_server *server, const struct caller *caller)
{
    struct link *link;
    int places = 0;

    TAILQ_FOREACH (link, &server->pending, entry)
        places += caller_is_same(&link->caller, caller);
    return caller_may_have(caller, places) || (places > 0 && end_overdue(server, caller));
}

/* ---- accepting ------------------------------------------------------------------------------- */

/* With a reset: the port need not remember the connection. */
static void drop(int fd)
{
    const struct linger hard = {.l_onoff = 1};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    close(fd);
}

static void let_in(struct link_server *server, int fd, const struct caller *caller)
{
    struct link *link = link_new(server->loop, &server->handlers, server->arg);

    if (link == NULL) {
        close(fd);
        return;
    }
    link->server = server;
    link->caller = *caller;
    server->links++;
    server->pending_count++;
    TAILQ_INSERT_TAIL(&server->pending, link, entry);
    link_enter(link, LINK_HELLO);
    snprintf(link->address, sizeof(link->address), "an unknown address");
    if (link_reset_frames(link) != 0 || link_make_stream(link) != 0) {
        close(fd);
        link_end(link, "out of memory");
        return;
    }
    if (uv_tcp_open(link->tcp, fd) != 0) {
        close(fd);
        link_end(link, "not a usable socket");
        return;
    }
    link_describe_peer(link);
    uv_tcp_nodelay(link->tcp, 1);
    link_set_timer(link, LINK_HANDSHAKE_MS);
    if (link_start_reading(link) != 0)
        link_end(link, "cannot read from the connection");
}

/* Most errors of accept concern the connection that was to be accepted, and it is gone: go on.
 * When the process or the system is short of something, trying again at once would only burn
 * time: wait. The rest is no reason to give up a running job either. */
static void accept_failed(struct link_server *server, int code)
{
    uint64_t now = uv_now(server->loop);
    uint64_t wait = 1000;

    switch (code) {
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
    case EPERM: /* a firewall's rule */
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENONET:
    case ENOPROTOOPT:
    case EOPNOTSUPP:
        return;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
        wait = 100;
        break;
    default:
        break;
    }
    if (server->logged == 0 || now - server->logged >= LINK_LOG_EVERY_MS) {
        log_error("port %d: cannot accept a connection: %s; trying again", server->port,
                  strerror(code));
        server->logged = now;
    }
    pause_accepting(server, wait);
}

static void accept_some(uv_poll_t *poll, int status, int events)
{
    struct link_server *server = poll->data;
    uint64_t began = uv_hrtime();
    int accepts = 0, refusals = 0;

    (void)events;
    if (status < 0) {
        accept_failed(server, -status);
        return;
    }
    while (accepts < ACCEPTS_PER_TURN && refusals < REFUSALS_PER_TURN && !server->paused &&
           uv_hrtime() - began < TURN_NS) {
        struct caller caller;
        int fd;

        if (!have_place(server)) {
            pause_accepting(server, SILENT_PATIENCE_MS);
            return;
        }
        fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && errno == EAGAIN)
            return;
        if (fd < 0) {
            accept_failed(server, errno);
            accepts++;
            continue;
        }
        caller = tcp_caller(fd);
        if (is_within_share(server, &caller)) {
            let_in(server, fd, &caller);
            accepts++;
        } else {
            drop(fd);
            refusals++;
        }
    }
}

static void resume(struct link_server *server)
{
    if (!server->paused || server->closing)
        return;
    server->paused = false;
    uv_timer_stop(&server->pause);
    link_server_accept(server);
}

void link_server_accept(struct link_server *server)
{
    uv_poll_start(&server->poll, UV_READABLE, accept_some);
}

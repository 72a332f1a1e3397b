/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The leader's side: listening, letting in, and refusing.
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
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <sodium.h>

#include "common/log.h"
#include "common/release_own.h"
#include "common/tcp_caller.h"

#define PENDING_MAX        64
#define PATIENCE_MS        100
#define SILENT_PATIENCE_MS 20
#define BACKLOG            1024
#define ACCEPTS_PER_TURN   16
#define REFUSALS_PER_TURN  128
/* More would not be faster, and if munged hangs it must not take all of libuv's worker threads
 * with it. */
#define JOBS_MAX     2
#define LOG_EVERY_MS 10000

/* ---- proof and accept, in a worker thread ---------------------------------------------------- */

static bool may_control(struct auth_job *job)
{
    bool found = false;

    if (job->peer_uid == 0 || job->peer_uid == job->slurm_user)
        return true;
    job->guest = true;
    for (int i = 0; i < ADMITTED_MAX; i++)
        if (job->admitted.list[i].until != 0 && job->admitted.list[i].uid == job->peer_uid) {
            found = true;
            job->guest = job->guest && job->admitted.list[i].guest;
        }
    return found;
}

static void judge(struct auth_job *job)
{
    struct error *err = &job->err;
    bool control = strcmp(job->theirs.role, LINK_ROLE_CONTROL) == 0;

    job->failed = true;
    if (credential_check(job->munge_socket, job->received, &job->theirs, &job->peer_uid, err) != 0)
        return;
    if (job->peer_uid != job->own_uid && !(control && may_control(job))) {
        job->stranger = control;
        error_set(err, "uid %u may not take part as %s in a job of uid %u", job->peer_uid,
                  job->theirs.role, job->own_uid);
        return;
    }
    randombytes_buf(job->mine.key, sizeof(job->mine.key));
    if (credential_make(job->munge_socket, job->peer_uid, &job->mine, &job->made, err) != 0)
        return;
    session_key(&job->theirs, &job->mine, job->key);
    job->failed = false;
}

static json_object *handshake_new(const char *type, const char *name, const char *value)
{
    json_object *msg = json_object_new_object();

    json_object_object_add(msg, "t", json_object_new_string(type));
    json_object_object_add(msg, name, json_object_new_string(value));
    return msg;
}

/* The peer is told, so that its program can tell its user. */
static void refuse(struct link *link, const char *why)
{
    if (link_transmit(link, handshake_new("refuse", "reason", why)) != 0)
        link_end(link, why);
    else
        link_close(link, why);
}

static void judged(struct link *link, struct auth_job *job)
{
    struct link_server *server = link->server;

    if (job->failed) {
        if (job->stranger && server->handlers.stranger != NULL)
            server->handlers.stranger(job->peer_uid, server->arg);
        link_server_note(link, job->err.text);
        refuse(link, job->err.text);
        return;
    }
    if (link_transmit(link, handshake_new("accept", "cred", job->made)) != 0) {
        link_end(link, "cannot answer");
        return;
    }
    link->guest = job->guest;
    link_opened(link, job->key, job->peer_uid);
}

void link_server_dequeue(struct link *link)
{
    TAILQ_REMOVE(&link->server->turns, link, turn);
    link->job_queued = false;
}

static void run_jobs(struct link_server *server)
{
    struct link *link;

    while (server->jobs < JOBS_MAX && (link = TAILQ_FIRST(&server->turns)) != NULL) {
        link_server_dequeue(link);
        if (auth_job_run(link->job) == 0) {
            server->jobs++;
        } else {
            struct auth_job *job = link->job;

            link->job = NULL;
            auth_job_free(job);
            link_end(link, "cannot start a worker thread");
        }
    }
}

static void free_if_done(struct link_server *server)
{
    if (!server->closing || server->handles > 0 || server->links > 0 || server->jobs > 0)
        return;
    free(server->munge_socket);
    free(server->state_dir);
    free(server);
}

void link_server_job_ended(struct link_server *server)
{
    server->jobs--;
    run_jobs(server);
    free_if_done(server);
}

/* ---- the handshake --------------------------------------------------------------------------- */

static void received_hello(struct link *link, json_object *msg)
{
    struct link_server *server = link->server;
    const char *role = link_field(msg, "role"), *base = link_field(msg, "base");
    const char *release = link_field(msg, "release");
    json_object *version = NULL;
    char nonce[LINK_NONCE_HEX], why[200];

    json_object_object_get_ex(msg, "v", &version);
    if (role == NULL || base == NULL ||
        hex_to_bytes(link_field(msg, "nonce"), link->peer_nonce) != 0) {
        link_fail(link, "sent an incomplete hello");
    } else if (json_object_get_int(version) != LINK_VERSION) {
        snprintf(why, sizeof(why),
                 "release %.31s has version %d of the handshake, release %s here has %d: install "
                 "the same release of slurm-elastic on all nodes",
                 release != NULL ? error_value(release).text : "(not said)",
                 json_object_get_int(version), release_own()->name, LINK_VERSION);
        link_server_note(link, why);
        refuse(link, why);
    } else if (strcmp(base, server->base) != 0) {
        /* nothing to log: two jobs may have the same candidate, and members try one after the
         * other */
        snprintf(why, sizeof(why), "this is the leader of job %s", server->base);
        refuse(link, why);
    } else if (strcmp(role, LINK_ROLE_AGENT) != 0 && strcmp(role, LINK_ROLE_CONTROL) != 0 &&
               strcmp(role, LINK_ROLE_VOTER) != 0) {
        refuse(link, "the role is none of " LINK_ROLE_AGENT ", " LINK_ROLE_CONTROL
                     " and " LINK_ROLE_VOTER);
    } else if (server->options.successor && strcmp(role, LINK_ROLE_VOTER) != 0) {
        /* Agents that look for the leader go on to the next candidate. */
        refuse(link, "does not lead the job");
    } else {
        snprintf(link->role, sizeof(link->role), "%s", role);
        randombytes_buf(link->nonce, sizeof(link->nonce));
        sodium_bin2hex(nonce, sizeof(nonce), link->nonce, sizeof(link->nonce));
        link_enter(link, LINK_PROOF);
        if (link_transmit(link, handshake_new("challenge", "nonce", nonce)) != 0)
            link_end(link, "cannot answer");
    }
}

/* Those whose time is not over. */
static struct admitted admitted_now(const struct link_server *server)
{
    struct admitted admitted = server->admitted;

    for (int i = 0; i < ADMITTED_MAX; i++)
        if (admitted.list[i].until <= uv_now(server->loop))
            admitted.list[i].until = 0;
    return admitted;
}

void link_server_admit(struct link_server *server, uid_t uid, bool guest, uint64_t ms)
{
    struct admitted *admitted = &server->admitted;

    admitted->list[admitted->next].uid = uid;
    admitted->list[admitted->next].guest = guest;
    admitted->list[admitted->next].until = uv_now(server->loop) + ms;
    admitted->next = (admitted->next + 1) % ADMITTED_MAX;
}

static void received_proof(struct link *link, json_object *msg)
{
    struct link_server *server = link->server;
    const char *cred = link_field(msg, "cred");
    struct auth_job *job;

    if (cred == NULL) {
        link_fail(link, "sent an incomplete proof");
        return;
    }
    job = auth_job_new(link, server->munge_socket, judge, judged);
    if (job == NULL || (job->received = strdup(cred)) == NULL) {
        link_fail(link, "out of memory");
        return;
    }
    job->server = server;
    job->own_uid = geteuid();
    job->slurm_user = server->options.slurm_user;
    job->admitted = admitted_now(server);
    snprintf(job->theirs.role, sizeof(job->theirs.role), "%s", link->role);
    memcpy(job->theirs.nonce, link->nonce, sizeof(link->nonce));
    snprintf(job->mine.role, sizeof(job->mine.role), "leader");
    memcpy(job->mine.nonce, link->peer_nonce, sizeof(link->peer_nonce));
    memcpy(job->theirs.base, server->base, sizeof(server->base));
    memcpy(job->mine.base, server->base, sizeof(server->base));
    job->theirs.port = job->mine.port = server->port;
    link_enter(link, LINK_AUTH);
    link->job_queued = true;
    TAILQ_INSERT_TAIL(&server->turns, link, turn);
    run_jobs(server);
}

void link_server_received(struct link *link, json_object *msg)
{
    const char *type = link_field(msg, "t");

    if (type != NULL && strcmp(type, "hello") == 0 && link->state == LINK_HELLO)
        received_hello(link, msg);
    else if (type != NULL && strcmp(type, "proof") == 0 && link->state == LINK_PROOF)
        received_proof(link, msg);
    else
        link_fail(link, "does not keep to the handshake");
}

/* A connection without a word, as port scanners make, does not interest the job's user. */
void link_server_note(const struct link *link, const char *why)
{
    struct link_server *server = link->server;
    uint64_t now = uv_now(server->loop);

    log_debug("connection from %s: %s", link->address, why);
    if (!link->heard)
        return;
    if (server->logged != 0 && now - server->logged < LOG_EVERY_MS) {
        server->unlogged++;
        return;
    }
    log_info("connection from %s not accepted: %s", link->address, why);
    if (server->unlogged > 0)
        log_info("before it %d others were not accepted", server->unlogged);
    server->logged = now;
    server->unlogged = 0;
}

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
    free_if_done(link->server);
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
    if (server->logged == 0 || now - server->logged >= LOG_EVERY_MS) {
        log_error("port %d: cannot accept a connection: %s; trying again", server->port,
                  strerror(code));
        server->logged = now;
    }
    pause_accepting(server, wait);
}

static void accept_some(uv_poll_t *poll, int status, int events)
{
    struct link_server *server = poll->data;

    (void)events;
    if (status < 0) {
        accept_failed(server, -status);
        return;
    }
    for (int accepts = 0, refusals = 0;
         accepts < ACCEPTS_PER_TURN && refusals < REFUSALS_PER_TURN && !server->paused;) {
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
    uv_poll_start(&server->poll, UV_READABLE, accept_some);
}

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
    uv_poll_start(&server->poll, UV_READABLE, accept_some);
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

static void handle_closed(uv_handle_t *handle)
{
    struct link_server *server = handle->data;

    server->handles--;
    free_if_done(server);
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

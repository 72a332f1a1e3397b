/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One connection: frames in and out of a libuv stream, its end, the threads that ask munged.
 *
 * A link has two handles, the stream and a timer, and is freed when both are closed. The timer
 * means, by state: the deadline of the handshake, what a search does next, the time to write the
 * rest while closing, or when a guest is read again.
 *
 * A client's link begins as a search without a stream. Its attempts are links too, which nobody
 * else knows (link_search.c). The attempt that succeeds hands its stream over to the search.
 *
 * munged may hang. Questions to it run in a worker thread, on a job that may outlive the link: a
 * link that ends takes its name off the job. */
#include "common/link_private.h"

#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "common/log.h"

#define MESSAGE_DEPTH 32
/* A peer that does not read must not fill our memory. */
#define QUEUE_MAX         (64u * 1024 * 1024)
#define KEEPALIVE_SECONDS 30

struct write {
    uv_write_t req;
    void *data;
};

void link_base(char *base, size_t size, uint32_t job_id, uint32_t restarts)
{
    snprintf(base, size, "%u.%u", job_id, restarts);
}

/* ---- worker threads -------------------------------------------------------------------------- */

static void job_work(uv_work_t *req)
{
    struct auth_job *job = req->data;

    job->work(job);
}

void auth_job_free(struct auth_job *job)
{
    free(job->munge_socket);
    free(job->received);
    free(job->made);
    sodium_memzero(job, sizeof(*job));
    free(job);
}

static void job_done(uv_work_t *req, int status)
{
    struct auth_job *job = req->data;
    struct link_server *server = job->server;
    struct link *link = job->link, *search = NULL;

    if (link != NULL) {
        search = link->attempt != NULL ? link->attempt->search : NULL;
        link->job = NULL;
        if (status != 0)
            link_fail(link, "the handshake was interrupted");
        else
            job->done(link, job);
    }
    auth_job_free(job);
    if (server != NULL)
        link_server_job_ended(server);
    if (search != NULL)
        link_search_run_jobs(search);
}

struct auth_job *auth_job_new(struct link *link, const char *munge_socket,
                              void (*work)(struct auth_job *),
                              void (*done)(struct link *, struct auth_job *))
{
    struct auth_job *job = calloc(1, sizeof(*job));

    if (job == NULL ||
        (munge_socket != NULL && (job->munge_socket = strdup(munge_socket)) == NULL)) {
        free(job);
        return NULL;
    }
    job->req.data = job;
    job->link = link;
    job->work = work;
    job->done = done;
    link->job = job;
    return job;
}

int auth_job_run(struct auth_job *job)
{
    return uv_queue_work(job->link->loop, &job->req, job_work, job_done);
}

static void abandon_job(struct link *link)
{
    struct auth_job *job = link->job;

    link->job = NULL;
    if (job == NULL)
        return;
    job->link = NULL;
    if (link->job_queued) {
        if (link->server != NULL)
            link_server_dequeue(link);
        link->job_queued = false;
        auth_job_free(job);
    } else {
        /* Fails when the job runs already: job_done frees it either way. */
        uv_cancel((uv_req_t *)&job->req);
    }
}

/* ---- life and end ---------------------------------------------------------------------------- */

static void read_on(struct link *link);

static void timer_fired(uv_timer_t *timer)
{
    struct link *link = timer->data;

    if (link->state == LINK_CLOSING)
        link_end(link, link->why);
    else if (link->state == LINK_OPEN)
        read_on(link);
    else if (link->server != NULL)
        link_fail(link, "no complete handshake within %d s", LINK_HANDSHAKE_MS / 1000);
    else if (link->attempt != NULL)
        link_fail(link, "silent");
    else
        link_search_timer(link);
}

struct link *link_new(uv_loop_t *loop, const struct link_handlers *handlers, void *arg)
{
    struct link *link = calloc(1, sizeof(*link));

    if (link == NULL)
        return NULL;
    link->loop = loop;
    link->handlers = *handlers;
    link->arg = arg;
    link->timer.data = link;
    link->shutdown.data = link;
    uv_timer_init(loop, &link->timer);
    link->timer_live = true;
    link_enter(link, LINK_SEARCHING);
    return link;
}

int link_reset_frames(struct link *link)
{
    frame_reader_destroy(link->reader);
    sodium_memzero(&link->writer, sizeof(link->writer));
    link->writer.direction = link->server != NULL ? FRAME_FROM_LEADER : FRAME_TO_LEADER;
    link->reader = frame_reader_create(link->server != NULL ? FRAME_TO_LEADER : FRAME_FROM_LEADER);
    return link->reader != NULL ? 0 : -1;
}

int link_make_stream(struct link *link)
{
    uv_tcp_t *tcp = malloc(sizeof(*tcp));

    if (tcp == NULL || uv_tcp_init(link->loop, tcp) != 0) {
        free(tcp);
        return -1;
    }
    tcp->data = link;
    link->tcp = tcp;
    return 0;
}

void link_enter(struct link *link, enum link_state state)
{
    link->state = state;
    link->since = uv_now(link->loop);
}

/* The loop's clock stands still during a callback, which may have taken long. */
void link_set_timer(struct link *link, uint64_t ms)
{
    uv_update_time(link->loop);
    uv_timer_start(&link->timer, timer_fired, ms, 0);
}

static void release(struct link *link)
{
    struct link *search;

    if (link->tcp != NULL || link->timer_live || link_search_has_attempts(link))
        return;
    /* Another handler may own the server since this link was in its list. */
    if (link->server != NULL && link->announced)
        link->server->handlers.closed(link, link->why,
                                      link->own_arg ? link->arg : link->server->arg);
    else if ((link->announced || link->dialer != NULL) && link->handlers.closed != NULL)
        link->handlers.closed(link, link->why, link->arg);
    if (link->server != NULL)
        link_server_forget(link);
    search = link_attempt_destroy(link);
    frame_reader_destroy(link->reader);
    dialer_destroy(link->dialer);
    free(link->buffer);
    sodium_memzero(link, sizeof(*link));
    free(link);
    if (search != NULL && search->state == LINK_CLOSED)
        release(search);
}

static void timer_closed(uv_handle_t *handle)
{
    struct link *link = handle->data;

    link->timer_live = false;
    release(link);
}

static void tcp_closed(uv_handle_t *handle)
{
    struct link *link = handle->data;

    link->tcp = NULL;
    free(handle);
    release(link);
}

void link_end(struct link *link, const char *why)
{
    if (link->state == LINK_CLOSED)
        return;
    if (why != link->why)
        snprintf(link->why, sizeof(link->why), "%s", why);
    if (link->server != NULL)
        link_server_leave(link);
    if (link->dialer != NULL)
        link_search_end(link);
    link_enter(link, LINK_CLOSED);
    abandon_job(link);
    if (link->tcp != NULL)
        uv_close((uv_handle_t *)link->tcp, tcp_closed);
    uv_close((uv_handle_t *)&link->timer, timer_closed);
}

static void fail_text(struct link *link, const char *what)
{
    char why[LINK_WHY_MAX];

    snprintf(why, sizeof(why), "%s: %s", link->address, what);
    switch (link->state) {
    case LINK_CLOSED:
        return;
    case LINK_CLOSING:
        link_end(link, link->why); /* the end was wanted: its reason stands */
        return;
    case LINK_OPEN:
        log_debug("link with %s", why);
        link_end(link, why);
        return;
    default:
        break;
    }
    if (link->server != NULL)
        link_server_note(link, what);
    if (link->attempt != NULL)
        link_search_failed(link, why);
    link_end(link, why);
}

void link_fail(struct link *link, const char *fmt, ...)
{
    char what[LINK_FAILURE_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    fail_text(link, what);
}

static void shut_down(uv_shutdown_t *req, int status)
{
    struct link *link = req->data;

    if (status < 0 && link->state == LINK_CLOSING)
        link_end(link, link->why);
}

/* Closing a socket with unread bytes makes the kernel reset the connection, and the peer may lose
 * what we wrote last. So we only shut our side down, and read on until the peer has closed its
 * own. */
void link_close(struct link *link, const char *why)
{
    if (link->state == LINK_CLOSING || link->state == LINK_CLOSED)
        return;
    snprintf(link->why, sizeof(link->why), "%s", why);
    abandon_job(link);
    if (link->tcp == NULL || (link->dialer != NULL && link->state != LINK_OPEN) ||
        uv_is_closing((uv_handle_t *)link->tcp) ||
        uv_shutdown(&link->shutdown, (uv_stream_t *)link->tcp, shut_down) != 0 ||
        link_start_reading(link) != 0) {
        link_end(link, link->why);
        return;
    }
    link_enter(link, LINK_CLOSING);
    link_set_timer(link, LINK_LINGER_MS);
}

/* ---- out ------------------------------------------------------------------------------------- */

static void written(uv_write_t *req, int status)
{
    struct write *write = (struct write *)req;
    struct link *link = req->handle->data;

    free(write->data);
    free(write);
    if (status < 0 && status != UV_ECANCELED)
        link_fail(link, "cannot write: %s", uv_strerror(status));
}

static int write_frame(struct link *link, void *frame, size_t len)
{
    struct write *write = malloc(sizeof(*write));
    uv_buf_t buf = uv_buf_init(frame, (unsigned int)len);

    if (write == NULL) {
        free(frame);
        return -1;
    }
    write->data = frame;
    if (uv_write(&write->req, (uv_stream_t *)link->tcp, &buf, 1, written) != 0) {
        free(frame);
        free(write);
        return -1;
    }
    return 0;
}

int link_transmit(struct link *link, json_object *msg)
{
    size_t len = 0, frame_len = 0;
    const char *text = json_object_to_json_string_length(
        msg, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &len);
    void *frame = text != NULL ? frame_encode(&link->writer, text, len, &frame_len) : NULL;

    json_object_put(msg);
    if (frame == NULL) {
        log_error("a message of %zu bytes cannot be sent: out of memory, or more than %u bytes",
                  len, frame_writer_most(&link->writer));
        return -1;
    }
    return write_frame(link, frame, frame_len);
}

int link_send(struct link *link, json_object *msg)
{
    if (link->state != LINK_OPEN) {
        json_object_put(msg);
        return -1;
    }
    if (link_queued(link) > QUEUE_MAX) {
        json_object_put(msg);
        link_fail(link, "does not read: more than %u MiB wait for it", QUEUE_MAX / 1024 / 1024);
        return -1;
    }
    return link_transmit(link, msg);
}

/* ---- in -------------------------------------------------------------------------------------- */

static bool expects_frames(const struct link *link)
{
    switch (link->state) {
    case LINK_CHALLENGE:
    case LINK_ACCEPT:
    case LINK_HELLO:
    case LINK_PROOF:
    case LINK_OPEN:
        return true;
    default:
        return false;
    }
}

static void received(struct link *link, const char *payload, size_t len)
{
    json_object *msg = json_parse_exact(payload, len, MESSAGE_DEPTH);

    if (!json_object_is_type(msg, json_type_object))
        link_fail(link, "sent something that is not a JSON object");
    else if (link->state == LINK_OPEN)
        link->handlers.message(link, msg, link->arg);
    else if (link->server != NULL)
        link_server_received(link, msg);
    else
        link_client_received(link, msg);
    json_object_put(msg);
}

/* A guest that says more than it may is not read for a while: the rest waits in its own socket.
 * Nobody else is held up: agents are the job's own, and whoever else controls it may end it. */
static bool is_too_fast(struct link *link)
{
    double wait;

    if (!link->guest || link->state != LINK_OPEN)
        return false;
    wait = guest_pace_wait(&link->server->pace, link->peer_uid, (double)uv_now(link->loop) / 1000);
    if (wait <= 0)
        return false;
    uv_read_stop((uv_stream_t *)link->tcp);
    link_set_timer(link, (uint64_t)(wait * 1000) + 1);
    return true;
}

/* Deliver the frames that are complete, until the state says that no frame is wanted now. */
static void consume(struct link *link)
{
    struct error err = {0};

    while (expects_frames(link) && !is_too_fast(link)) {
        const char *payload = NULL;
        size_t len = 0;
        int got = frame_reader_next(link->reader, &payload, &len, &err);

        if (got < 0)
            link_fail(link, "%s", err.text);
        if (got <= 0)
            return;
        if (link->guest)
            guest_pace_take(&link->server->pace, link->peer_uid, (double)uv_now(link->loop) / 1000);
        received(link, payload, len);
    }
    if (link->state == LINK_AUTH)
        uv_read_stop((uv_stream_t *)link->tcp);
}

static void alloc_cb(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct link *link = handle->data;

    (void)suggested;
    /* Libuv reads into the buffer at once, and the callback is done with it before the next read:
     * one buffer for all links of a server, or all attempts of a search, is enough. */
    *buf = uv_buf_init(link->server != NULL    ? link->server->buffer
                       : link->attempt != NULL ? link->attempt->search->dialer->buffer
                       : link->dialer != NULL  ? link->dialer->buffer
                                               : link->buffer,
                       LINK_READ_BYTES);
}

static void read_cb(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct link *link = stream->data;
    struct error err = {0};

    if (count == 0)
        return;
    link->heard = link->heard || count > 0;
    link->peer_closed = count == UV_EOF;
    if (count == UV_EOF)
        link_fail(link, "closed the connection");
    else if (count < 0)
        link_fail(link, "lost the connection: %s", uv_strerror((int)count));
    else if (!expects_frames(link))
        return; /* closing */
    else if (frame_reader_feed(link->reader, buf->base, (size_t)count, &err) != 0)
        link_fail(link, "%s", err.text);
    else
        consume(link);
}

int link_start_reading(struct link *link)
{
    int result = uv_read_start((uv_stream_t *)link->tcp, alloc_cb, read_cb);

    return result == UV_EALREADY ? 0 : result;
}

static void read_on(struct link *link)
{
    if (link_start_reading(link) != 0)
        link_end(link, "cannot read from the connection");
    else
        consume(link);
}

void link_opened(struct link *link, const uint8_t key[LINK_KEY_BYTES], uid_t peer_uid)
{
    frame_writer_set_key(&link->writer, key);
    frame_reader_set_key(link->reader, key);
    if (link->guest)
        frame_reader_set_most(link->reader, FRAME_GUEST_MAX);
    link->peer_uid = peer_uid;
    link_enter(link, LINK_OPEN);
    link->authenticated = true;
    uv_timer_stop(&link->timer);
    uv_tcp_keepalive(link->tcp, 1, KEEPALIVE_SECONDS);
    if (link->server != NULL)
        link_server_opened(link);
    else
        link_describe_peer(link);
    if (link_start_reading(link) != 0) {
        link_end(link, "cannot read from the connection");
        return;
    }
    link->announced = true;
    link->handlers.open(link, link->arg);
    consume(link);
}

struct link *link_adopt(uv_loop_t *loop, int fd, bool first, const struct link_handlers *handlers,
                        void *arg, struct error *err)
{
    struct link *link = link_new(loop, handlers, arg);
    int rc = link != NULL && link_make_stream(link) == 0 ? uv_tcp_open(link->tcp, fd) : UV_ENOMEM;

    if (rc != 0) {
        error_set(err, "socket of a process of ours: %s", uv_strerror(rc));
        close(fd);
        /* Nobody knows the link: closed is not called. */
        if (link != NULL)
            link_end(link, "could not be opened");
        return NULL;
    }
    link->writer.direction = first ? FRAME_FROM_LEADER : FRAME_TO_LEADER;
    link->writer.plain_max = FRAME_KEYED_MAX;
    link->reader = frame_reader_create(first ? FRAME_TO_LEADER : FRAME_FROM_LEADER);
    link->buffer = malloc(LINK_READ_BYTES);
    if (link->reader == NULL || link->buffer == NULL || link_start_reading(link) != 0) {
        error_set(err, "out of memory");
        link_end(link, "out of memory");
        return NULL;
    }
    frame_reader_set_most(link->reader, FRAME_KEYED_MAX);
    snprintf(link->address, sizeof(link->address), "socket pair");
    link->peer_uid = getuid();
    link->authenticated = link->announced = true;
    link_enter(link, LINK_OPEN);
    return link;
}

const char *link_field(json_object *msg, const char *name)
{
    json_object *value = NULL;

    if (!json_object_object_get_ex(msg, name, &value) ||
        !json_object_is_type(value, json_type_string))
        return NULL;
    return json_object_get_string(value);
}

/* ---- what the user of a link may ask --------------------------------------------------------- */

void link_describe_peer(struct link *link)
{
    struct sockaddr_storage peer = {0};
    int len = sizeof(peer);
    char *text = link->address;

    if (uv_tcp_getpeername(link->tcp, (struct sockaddr *)&peer, &len) != 0 ||
        getnameinfo((struct sockaddr *)&peer, (socklen_t)len, text, LINK_ADDRESS_MAX, NULL, 0,
                    NI_NUMERICHOST) != 0) {
        snprintf(text, LINK_ADDRESS_MAX, "an unknown address");
        return;
    }
    if (strncmp(text, "::ffff:", 7) == 0 &&
        strchr(text, '.') != NULL) /* IPv4 at a socket for both */
        memmove(text, text + 7, strlen(text + 7) + 1);
}

void link_set_arg(struct link *link, void *arg)
{
    link->own_arg = true;
    link->arg = arg;
}

const char *link_role(const struct link *link)
{
    return link->role;
}

uid_t link_peer_uid(const struct link *link)
{
    return link->peer_uid;
}

bool link_is_guest(const struct link *link)
{
    return link->guest;
}

const char *link_peer_address(const struct link *link)
{
    return link->address;
}

bool link_peer_closed(const struct link *link)
{
    return link->peer_closed;
}

size_t link_queued(const struct link *link)
{
    return link->tcp != NULL ? uv_stream_get_write_queue_size((const uv_stream_t *)link->tcp) : 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The node's end of the store on which the processes of a world meet (store_server.h).
 *
 * Clients are processes of the job's user, and nothing that they say is trusted. A client that
 * sends something else than requests, or leaves too much unread, is dropped. A client that asks for
 * too much at once is refused. While too much is on its way to the leader, no more is read. So the
 * other clients, and the agent's connection to the leader, are not harmed. */
#include "agent/member/store_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/run_dir.h"
#include "common/log.h"
#include "lib/frame.h"
#include "lib/json_get.h"
#include "lib/json_text.h"

#define SOCKET_NAME "store"
#define BACKLOG     128
/* connections: of workers, their data loaders, and other processes that they have started. */
#define PER_WORKER     64
#define FRAME_MAX      (3u << 20)         /* two values of 1 MiB in base64, with their key */
#define ASKED_MAX      1024               /* requests of a client without an answer */
#define WAITING_MAX    ((size_t)1 << 20)  /* bytes of the requests that may wait */
#define UNSENT_MAX     ((size_t)8 << 20)  /* bytes of requests on their way to the leader */
#define UNREAD_MAX     ((size_t)16 << 20) /* bytes of answers that a client has not read */
#define INPUT_SIZE     65536
#define QUESTION_LISTS 1024

struct client {
    struct store_server *server;
    uv_pipe_t pipe;
    struct frame_reader *in;
    int asked;
    size_t waiting; /* bytes of requests that may wait */
    bool paused;    /* nothing is read now */
    struct client *next;
};

/* Handed to the leader. */
struct question {
    int64_t number; /* ours */
    int64_t theirs;
    struct client *client;
    size_t waiting, unsent; /* bytes for which it counts */
    struct question *next;
};

struct store_server {
    uv_loop_t *loop;
    uv_pipe_t listener;
    char *path;
    int clients_max, client_count;
    struct client *clients;
    struct question *questions[QUESTION_LISTS];
    int64_t last_number;
    size_t unsent;
    bool dropped; /* a client has been dropped, and it has been reported */
    int (*send)(json_object *msg, void *arg);
    void *arg;
    int pieces; /* handles that are not closed */
    void (*gone)(void *arg);
    void *gone_arg;
    char input[INPUT_SIZE]; /* libuv hands the buffer back before it asks for another */
};

/* ---- clients come and go --------------------------------------------------------------------- */

static void piece_gone(struct store_server *server)
{
    if (--server->pieces > 0 || server->gone == NULL)
        return;
    server->gone(server->gone_arg);
    free(server->path);
    free(server);
}

static void on_client_closed(uv_handle_t *handle)
{
    struct client *client = handle->data;
    struct store_server *server = client->server;

    frame_reader_destroy(client->in);
    free(client);
    piece_gone(server);
}

static void forget_question(struct question **at)
{
    struct question *q = *at;

    *at = q->next;
    q->client->asked--;
    q->client->waiting -= q->waiting;
    q->client->server->unsent -= q->unsent;
    free(q);
}

/* The leader need not answer requests of that client. */
static void withdraw_questions(const struct client *client)
{
    struct store_server *server = client->server;

    for (int i = 0; i < QUESTION_LISTS && client->asked > 0; i++)
        for (struct question **at = &server->questions[i]; *at != NULL;) {
            json_object *msg;

            if ((*at)->client != client) {
                at = &(*at)->next;
                continue;
            }
            msg = json_object_new_object();
            json_object_object_add(msg, "t", json_object_new_string("unstore"));
            json_object_object_add(msg, "id", json_object_new_int64((*at)->number));
            forget_question(at);
            server->send(msg, server->arg);
        }
}

/* The first time it is reported to the user: something is wrong with the program. Later times tell
 * nothing new. */
static void say_dropped(struct store_server *server, const char *why)
{
    if (why == NULL)
        return;
    if (server->dropped)
        log_debug("a client of the store is dropped: %s", why);
    else
        log_info("a client of the store is dropped: %s", why);
    server->dropped = true;
}

static void drop(struct client *client, const char *why)
{
    struct client **at = &client->server->clients;

    if (uv_is_closing((uv_handle_t *)&client->pipe))
        return;
    say_dropped(client->server, why);
    while (*at != client)
        at = &(*at)->next;
    *at = client->next;
    client->server->client_count--;
    withdraw_questions(client);
    uv_close((uv_handle_t *)&client->pipe, on_client_closed);
}

/* ---- answers --------------------------------------------------------------------------------- */

struct write {
    uv_write_t request;
    uint32_t length; /* in its form on the wire */
    json_object *msg;
};

static void on_written(uv_write_t *request, int status)
{
    struct write *write = request->data;

    (void)status; /* reading notices the end */
    json_object_put(write->msg);
    free(write);
}

/* msg is taken over. */
static void reply(struct client *client, int64_t id, json_object *msg)
{
    uv_stream_t *stream = (uv_stream_t *)&client->pipe;
    struct write *write = calloc(1, sizeof(*write));
    uv_buf_t parts[2];
    const char *text;
    size_t len = 0;

    json_object_object_add(msg, "id", json_object_new_int64(id));
    text = json_object_to_json_string_length(
        msg, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &len);
    if (write == NULL || text == NULL ||
        uv_stream_get_write_queue_size(stream) + len > UNREAD_MAX) {
        json_object_put(msg);
        free(write);
        drop(client, "it does not read what it is answered");
        return;
    }
    write->request.data = write;
    write->msg = msg; /* owner of the text */
    write->length = htonl((uint32_t)len);
    parts[0] = uv_buf_init((char *)&write->length, sizeof(write->length));
    parts[1] = uv_buf_init((char *)(uintptr_t)text, (unsigned)len);
    if (uv_write(&write->request, stream, parts, 2, on_written) != 0) {
        on_written(&write->request, 0);
        drop(client, NULL);
    }
}

static void reply_error(struct client *client, int64_t id, const char *error, const char *reason)
{
    json_object *msg = json_object_new_object();

    json_object_object_add(msg, "error", json_object_new_string(error));
    if (reason != NULL)
        json_object_object_add(msg, "reason", json_object_new_string(reason));
    reply(client, id, msg);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* The part of a request that goes to the leader; the rest stays here. */
static json_object *request_message(json_object *asked, bool waits)
{
    static const char *const names[] = {"gen",     "attempt", "op",       "key",   "keys",
                                        "timeout", "value",   "expected", "amount"};
    json_object *msg = json_object_new_object(), *value;

    json_object_object_add(msg, "t", json_object_new_string("store"));
    for (size_t i = 0; i < (waits ? 6 : sizeof(names) / sizeof(names[0])); i++)
        if (json_object_object_get_ex(asked, names[i], &value))
            json_object_object_add(msg, names[i], json_object_get(value));
    return msg;
}

static struct question *add_question(struct client *client, int64_t theirs)
{
    struct store_server *server = client->server;
    struct question *q = calloc(1, sizeof(*q)), **list;

    if (q == NULL)
        return NULL;
    q->number = ++server->last_number;
    q->theirs = theirs;
    q->client = client;
    client->asked++;
    list = &server->questions[q->number % QUESTION_LISTS];
    q->next = *list;
    *list = q;
    return q;
}

static struct question **find_question(struct store_server *server, int64_t number)
{
    struct question **at = &server->questions[number % QUESTION_LISTS];

    while (*at != NULL && (*at)->number != number)
        at = &(*at)->next;
    return at;
}

static void forward(struct client *client, json_object *asked, int64_t id, bool waits, size_t len)
{
    struct store_server *server = client->server;
    struct question *q = add_question(client, id);
    json_object *msg;

    if (q == NULL) {
        reply_error(client, id, "memory", NULL);
        return;
    }
    q->waiting = waits ? len : 0;
    q->unsent = waits ? 0 : len;
    client->waiting += q->waiting;
    server->unsent += q->unsent;
    msg = request_message(asked, waits);
    json_object_object_add(msg, "id", json_object_new_int64(q->number));
    if (server->send(msg, server->arg) != 0) {
        forget_question(find_question(server, server->last_number));
        reply_error(client, id, "lost", NULL);
    }
}

/* Handle one frame. */
static void handle_request(struct client *client, const char *text, size_t len)
{
    struct error err = {""};
    json_object *asked = json_text_parse(text, len, &err);
    const char *op = json_get_string(asked, "op");
    int64_t id;
    bool waits;

    if (asked == NULL || op == NULL || !json_get_int(asked, "id", 0, INT64_MAX, &id)) {
        json_object_put(asked);
        drop(client, "what it sends is no request");
        return;
    }
    waits = strcmp(op, "get") == 0 || strcmp(op, "wait") == 0;
    if (client->asked >= ASKED_MAX || (waits && client->waiting + len > WAITING_MAX))
        reply_error(client, id, "full", "too many requests of one process at once");
    else
        forward(client, asked, id, waits, len);
    json_object_put(asked);
}

static bool is_stopped(const struct client *client)
{
    return uv_is_closing((const uv_handle_t *)&client->pipe) || client->paused;
}

/* Take the frames that have come, as far as requests may go on. */
static void take_frames(struct client *client)
{
    struct error err = {""};
    const char *text;
    size_t len;
    int rc = 0;

    while (!is_stopped(client)) {
        if (client->server->unsent >= UNSENT_MAX) {
            client->paused = true;
            uv_read_stop((uv_stream_t *)&client->pipe);
            return;
        }
        rc = frame_reader_next(client->in, &text, &len, &err);
        if (rc <= 0)
            break;
        handle_request(client, text, len);
    }
    if (rc < 0)
        drop(client, err.text);
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct client *client = handle->data;

    (void)suggested;
    *buf = uv_buf_init(client->server->input, INPUT_SIZE);
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct client *client = stream->data;
    struct error err = {""};

    if (count < 0)
        drop(client, NULL);
    else if (count > 0 && frame_reader_feed(client->in, buf->base, (size_t)count, &err) != 0)
        drop(client, err.text);
    else
        take_frames(client);
}

/* There is room again on the way to the leader. */
static void resume_clients(struct store_server *server)
{
    for (struct client *client = server->clients, *next; client != NULL; client = next) {
        next = client->next;
        if (!client->paused || server->unsent >= UNSENT_MAX)
            continue;
        client->paused = false;
        take_frames(client); /* may drop this client, never another */
        if (!is_stopped(client))
            uv_read_start((uv_stream_t *)&client->pipe, on_room, on_read);
    }
}

/* ---- connections ----------------------------------------------------------------------------- */

/* Only the job's user, not even root: the contents of the store belong to the user's program. */
static bool is_ours(uv_pipe_t *pipe)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    uv_os_fd_t fd;

    return uv_fileno((uv_handle_t *)pipe, &fd) == 0 &&
           getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == getuid();
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct store_server *server = listener->data;
    struct client *client = status == 0 ? calloc(1, sizeof(*client)) : NULL;

    if (client == NULL)
        return;
    client->server = server;
    uv_pipe_init(server->loop, &client->pipe, 0);
    client->pipe.data = client;
    server->pieces++;
    server->client_count++;
    client->next = server->clients;
    server->clients = client;
    client->in = frame_reader_create(FRAME_TO_LEADER);
    if (client->in != NULL)
        frame_reader_set_most(client->in, FRAME_MAX);
    if (uv_accept(listener, (uv_stream_t *)&client->pipe) != 0 || client->in == NULL)
        drop(client, NULL);
    else if (!is_ours(&client->pipe))
        drop(client, "it is another user's");
    else if (server->client_count > server->clients_max)
        drop(client, "there are too many");
    else
        uv_read_start((uv_stream_t *)&client->pipe, on_room, on_read);
}

bool store_server_on_message(struct store_server *server, json_object *msg)
{
    const char *type = json_get_string(msg, "t");
    struct question **at;
    struct client *client;
    int64_t number, theirs;

    if (type == NULL || strcmp(type, "stored") != 0)
        return false;
    /* The client that asked has gone. */
    if (!json_get_int(msg, "id", 0, INT64_MAX, &number) ||
        *(at = find_question(server, number)) == NULL)
        return true;
    client = (*at)->client;
    theirs = (*at)->theirs;
    forget_question(at);
    json_object_object_del(msg, "t");
    reply(client, theirs, json_object_get(msg));
    resume_clients(server);
    return true;
}

void store_server_lost(struct store_server *server)
{
    for (int i = 0; i < QUESTION_LISTS; i++)
        while (server->questions[i] != NULL) {
            struct client *client = server->questions[i]->client;
            int64_t theirs = server->questions[i]->theirs;

            forget_question(&server->questions[i]);
            reply_error(client, theirs, "lost", NULL);
        }
    resume_clients(server);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int open_listener(struct store_server *server, const char *dir, struct error *err)
{
    int fd = run_dir_socket(dir, SOCKET_NAME, err), rc;

    if (fd < 0)
        return -1;
    rc = uv_pipe_open(&server->listener, fd);
    if (rc != 0)
        close(fd);
    if (rc == 0)
        rc = uv_listen((uv_stream_t *)&server->listener, BACKLOG, on_connection);
    return rc == 0 ? 0 : error_set(err, "%s: %s", error_path(server->path).text, uv_strerror(rc));
}

/* Half of the descriptors that this process may have. */
static int most_clients(int workers)
{
    struct rlimit limit;
    int most = workers * PER_WORKER;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 2 < (rlim_t)most)
        most = (int)(limit.rlim_cur / 2);
    return most;
}

static void on_listener_closed(uv_handle_t *handle)
{
    piece_gone(handle->data);
}

static void nobody(void *arg)
{
    (void)arg;
}

struct store_server *store_server_create(uv_loop_t *loop, const char *run_dir, int workers,
                                         int (*send)(json_object *msg, void *arg), void *arg,
                                         struct error *err)
{
    struct store_server *server = calloc(1, sizeof(*server));

    if (server == NULL || asprintf(&server->path, "%s/" SOCKET_NAME, run_dir) < 0) {
        free(server);
        error_set(err, "out of memory");
        return NULL;
    }
    server->loop = loop;
    server->clients_max = most_clients(workers);
    server->send = send;
    server->arg = arg;
    uv_pipe_init(loop, &server->listener, 0);
    server->listener.data = server;
    server->pieces = 1;
    if (open_listener(server, run_dir, err) == 0)
        return server;
    store_server_destroy(server, nobody, NULL);
    return NULL;
}

const char *store_server_path(const struct store_server *server)
{
    return server->path;
}

void store_server_destroy(struct store_server *server, void (*gone)(void *arg), void *arg)
{
    server->gone = gone;
    server->gone_arg = arg;
    while (server->clients != NULL)
        drop(server->clients, NULL);
    uv_close((uv_handle_t *)&server->listener, on_listener_closed);
}

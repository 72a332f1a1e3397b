/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fuzz target: a connection from its first byte on, as the leader and as a client meet it:
 * frames, handshake, credential, messages.
 *
 * The input is a list of records: what to do, the length of what follows (2 bytes, big-endian),
 * and that. The first byte of all chooses the side that is tested. Neither munged nor a network
 * nor a thread takes part: munge's and some of libuv's functions are replaced, so that each run
 * is the same. In payloads, '@' stands for the nonce that the tested side has chosen. */
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include <munge.h>
#include <sodium.h>

#include "tests/fuzz/fuzz.h"

#include "common/link_private.h"

/* The peer knows the key of the connection, as it has made half of it. */
static uint8_t agreed[LINK_KEY_BYTES];

static void agree(const struct credential *client, const struct credential *leader,
                  uint8_t key[LINK_KEY_BYTES])
{
    session_key(client, leader, key);
    memcpy(agreed, key, sizeof(agreed));
}

/* For what is static there. */
#define session_key agree
#include "common/link_accept.c"
#include "common/link_client.c"
#include "common/link_judge.c"
#include "common/link_search.c"
#include "common/link_server.c"

/* ---- what is replaced ------------------------------------------------------------------------ */

struct munge_ctx {
    int unused;
};

static struct munge_ctx the_context;

munge_ctx_t munge_ctx_create(void)
{
    return &the_context;
}

void munge_ctx_destroy(munge_ctx_t ctx)
{
    (void)ctx;
}

const char *munge_ctx_strerror(munge_ctx_t ctx)
{
    (void)ctx;
    return NULL;
}

munge_err_t munge_ctx_set(munge_ctx_t ctx, int opt, ...)
{
    (void)ctx;
    (void)opt;
    return EMUNGE_SUCCESS;
}

munge_err_t munge_ctx_get(munge_ctx_t ctx, int opt, ...)
{
    (void)ctx;
    (void)opt;
    return EMUNGE_SUCCESS;
}

munge_err_t munge_encode(char **cred, munge_ctx_t ctx, const void *data, int len)
{
    (void)ctx;
    return asprintf(cred, "MUNGE:%.*s", len, (const char *)data) < 0 ? EMUNGE_NO_MEMORY
                                                                     : EMUNGE_SUCCESS;
}

/* A credential is its content behind MUNGE: (of oneself) or OTHER: (of another user). */
munge_err_t munge_decode(const char *cred, munge_ctx_t ctx, void **data, int *len, uid_t *uid,
                         gid_t *gid)
{
    (void)ctx;
    (void)gid;
    if (strncmp(cred, "MUNGE:", 6) != 0 && strncmp(cred, "OTHER:", 6) != 0)
        return EMUNGE_BAD_CRED;
    *uid = cred[0] == 'M' ? geteuid() : 12345;
    *data = strdup(cred + 6);
    *len = (int)strlen(cred + 6);
    return *data != NULL ? EMUNGE_SUCCESS : EMUNGE_NO_MEMORY;
}

static uv_work_t *queued[4];
static uv_after_work_cb queued_done[4];

int uv_queue_work(uv_loop_t *loop, uv_work_t *req, uv_work_cb work, uv_after_work_cb done)
{
    size_t i = 0;

    while (i < 4 && queued[i] != NULL)
        i++;
    MUST(i < 4);
    req->loop = loop;
    queued[i] = req;
    queued_done[i] = done;
    work(req);
    return 0;
}

int uv_cancel(uv_req_t *req)
{
    (void)req;
    return UV_EBUSY;
}

int uv_timer_start(uv_timer_t *timer, uv_timer_cb fired, uint64_t timeout, uint64_t repeat)
{
    (void)timer;
    (void)fired;
    (void)timeout;
    (void)repeat;
    return 0;
}

/* ---- the tested side ------------------------------------------------------------------------- */

struct scene {
    uv_loop_t loop;
    struct link_server *server;
    struct link *link; /* NULL once it is gone */
    int fd;            /* the peer's end */
    struct frame_writer writer;
    int opened, messages;
};

static struct scene *scene;

static void on_open(struct link *link, void *arg)
{
    (void)arg;
    MUST(link == scene->link);
    scene->opened++;
}

static void on_message(struct link *link, json_object *msg, void *arg)
{
    (void)arg;
    MUST(scene->opened == 1 && json_object_is_type(msg, json_type_object));
    scene->messages++;
    link_send(link, json_object_get(msg));
}

static void on_closed(struct link *link, const char *why, void *arg)
{
    (void)arg;
    MUST(link == scene->link && why != NULL && why[0] != '\0');
    scene->link = NULL;
}

static const struct link_handlers all_handlers = {
    .open = on_open, .message = on_message, .closed = on_closed};

static void start_server(int fd)
{
    static const struct caller own = {.kind = CALLER_OWN};
    struct link_server *server = calloc(1, sizeof(*server));

    MUST(server != NULL);
    server->loop = &scene->loop;
    server->handlers = all_handlers;
    server->fd = -1;
    server->options.slurm_user = 54321;
    server->port = 23000;
    link_base(server->base, sizeof(server->base), 12, 0);
    TAILQ_INIT(&server->pending);
    TAILQ_INIT(&server->open);
    TAILQ_INIT(&server->turns);
    scene->server = server;
    let_in(server, fd, &own);
    scene->link = TAILQ_FIRST(&server->pending);
}

/* A search with one attempt, which is connected already. */
static void start_client(int fd)
{
    static const struct link_client_options options = {
        .role = LINK_ROLE_CONTROL, .job_id = 12, .address = "127.0.0.1", .port = 23000};
    struct link *search = link_new(&scene->loop, &all_handlers, NULL);
    struct link *attempt = link_new(&scene->loop, &all_handlers, NULL);

    MUST(search != NULL && attempt != NULL);
    search->dialer = dialer_create(&scene->loop, &options);
    attempt->attempt = calloc(1, sizeof(*attempt->attempt));
    MUST(search->dialer != NULL && attempt->attempt != NULL);
    search->dialer->options.leader_uid = geteuid();
    attempt->attempt->search = search;
    attempt->attempt->port = 23000;
    TAILQ_INSERT_TAIL(&search->dialer->attempts, attempt, entry);
    snprintf(attempt->address, sizeof(attempt->address), "the peer");
    MUST(link_reset_frames(attempt) == 0 && link_make_stream(attempt) == 0);
    MUST(uv_tcp_open(attempt->tcp, fd) == 0);
    link_enter(attempt, LINK_CHALLENGE);
    MUST(link_transmit(attempt, hello_new(attempt)) == 0 && link_start_reading(attempt) == 0);
    scene->link = search;
}

/* The link whose handshake this is; NULL: it is over. */
static const struct link *tested(void)
{
    if (scene->link == NULL || scene->link->dialer == NULL || scene->link->state == LINK_OPEN)
        return scene->link;
    return TAILQ_FIRST(&scene->link->dialer->attempts);
}

/* Whether the link is still one that reads: it is freed by the loop only. */
static bool lives(void)
{
    if (scene->link != NULL && scene->server != NULL && scene->server->links == 0)
        scene->link = NULL;
    return scene->link != NULL && scene->link->state != LINK_CLOSED;
}

static void run_loop(void)
{
    for (int i = 0; i < 4; i++) {
        char answer[4096];

        for (int k = 0; k < 4; k++) {
            uv_work_t *req = queued[k];

            queued[k] = NULL;
            if (req != NULL)
                queued_done[k](req, 0);
        }
        if (lives() || uv_loop_alive(&scene->loop))
            uv_run(&scene->loop, UV_RUN_NOWAIT);
        while (recv(scene->fd, answer, sizeof(answer), MSG_DONTWAIT) > 0)
            continue;
    }
}

/* ---- the peer, as the input says ------------------------------------------------------------- */

static void peer_write(const void *data, size_t len)
{
    if (len > 0 && len < 65536 && send(scene->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        run_loop();
}

static void peer_frame(const char *payload, size_t len)
{
    size_t out = 0;
    void *frame = frame_encode(&scene->writer, payload, len, &out);

    if (frame != NULL)
        peer_write(frame, out);
    free(frame);
}

/* The payload with '@' replaced. */
static void peer_payload(const uint8_t *data, size_t len)
{
    char nonce[LINK_NONCE_HEX] = "", *text = malloc(len * LINK_NONCE_HEX + 1);
    size_t at = 0;

    MUST(text != NULL);
    if (lives() && tested() != NULL)
        sodium_bin2hex(nonce, sizeof(nonce), tested()->nonce, LINK_NONCE_BYTES);
    for (size_t i = 0; i < len; i++) {
        if (data[i] == '@')
            at += (size_t)sprintf(text + at, "%s", nonce);
        else
            text[at++] = (char)data[i];
    }
    peer_frame(text, at);
    free(text);
}

static void peer_record(uint8_t what, const uint8_t *data, size_t len)
{
    switch (what) {
    case 'r': /* bytes as they are */
        peer_write(data, len);
        break;
    case 'k': /* from here on, frames are keyed: rightly so once the link is open */
        frame_writer_set_key(&scene->writer, agreed);
        break;
    case 'e':
        shutdown(scene->fd, SHUT_WR);
        run_loop();
        break;
    default: /* a frame */
        peer_payload(data, len);
        break;
    }
}

static void close_handle(uv_handle_t *handle, void *arg)
{
    (void)arg;
    MUST(uv_is_closing(handle));
}

static void end_scene(void)
{
    close(scene->fd);
    if (scene->server == NULL && lives() && scene->link->state != LINK_OPEN)
        link_end(scene->link, "time is up");
    for (int i = 0; i < 100 && uv_loop_alive(&scene->loop); i++) {
        scene->fd = -1;
        run_loop();
    }
    run_loop();
    if (scene->server != NULL) {
        MUST(scene->server->links == 0 && scene->server->pending_count == 0);
        MUST(scene->server->jobs == 0 && TAILQ_EMPTY(&scene->server->turns));
    }
    uv_walk(&scene->loop, close_handle, NULL);
    MUST(uv_loop_close(&scene->loop) == 0);
    free(scene->server);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct scene here = {.writer.direction = FRAME_TO_LEADER};
    int ends[2];

    if (size == 0)
        return 0;
    scene = &here;
    memset(agreed, 0, sizeof(agreed));
    MUST(sodium_init() >= 0 && uv_loop_init(&here.loop) == 0);
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    here.fd = ends[0];
    if (data[0] == 'c') {
        here.writer.direction = FRAME_FROM_LEADER;
        start_client(ends[1]);
    } else {
        start_server(ends[1]);
    }
    run_loop();
    data++;
    size--;
    while (size >= 3) {
        size_t len = (size_t)data[1] << 8 | data[2];

        len = len < size - 3 ? len : size - 3;
        peer_record(data[0], data + 3, len);
        data += 3 + len;
        size -= 3 + len;
    }
    end_scene();
    scene = NULL;
    return 0;
}

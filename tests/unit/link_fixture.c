/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the tests of link need: a munged, peers that count, a scene, raw sockets. */
#include "tests/unit/link_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <munge.h>
#include <netinet/in.h>
#include <sodium.h>

#include "common/log.h"
#include "tests/unit/own_network.h"
#include "tests/unit/support.h"

/* --- munged ----------------------------------------------------------------------------------- */

static char dir[64];
static char socket_path[96];
static pid_t munged_pid = -1;

const char *munged_dir(void)
{
    return dir;
}

static bool write_key(void)
{
    char path[96];
    uint8_t key[128];
    int fd;
    bool written;

    snprintf(path, sizeof(path), "%s/key", dir);
    randombytes_buf(key, sizeof(key));
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    written = write(fd, key, sizeof(key)) == (ssize_t)sizeof(key);
    return close(fd) == 0 && written;
}

static void exec_munged(void)
{
    char key[96], log[96], pid[96], seed[96], sock[128];
    const char *const names[] = {"munged", "/usr/sbin/munged", "/sbin/munged"};
    int null = open("/dev/null", O_RDWR);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(key, sizeof(key), "--key-file=%s/key", dir);
    snprintf(log, sizeof(log), "--log-file=%s/log", dir);
    snprintf(pid, sizeof(pid), "--pid-file=%s/pid", dir);
    snprintf(seed, sizeof(seed), "--seed-file=%s/seed", dir);
    snprintf(sock, sizeof(sock), "--socket=%s", socket_path);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        execlp(names[i], "munged", "--foreground", "--force", key, log, pid, seed, sock,
               "--num-threads=4", NULL);
    _exit(127);
}

/* munged is ready when it answers. */
static bool munged_answers(void)
{
    munge_ctx_t ctx = munge_ctx_create();
    char *cred = NULL;
    bool ready = munge_ctx_set(ctx, MUNGE_OPT_SOCKET, socket_path) == EMUNGE_SUCCESS &&
                 munge_encode(&cred, ctx, NULL, 0) == EMUNGE_SUCCESS;

    free(cred);
    munge_ctx_destroy(ctx);
    return ready;
}

const char *munged_start(const char **reason)
{
    *reason = "munged is not installed";
    if (sodium_init() < 0)
        return NULL;
    snprintf(dir, sizeof(dir), "/tmp/elastic-test-munge-XXXXXX");
    if (!mkdtemp(dir) || chmod(dir, 0755) != 0 || !write_key()) {
        *reason = "no directory for munged's files in /tmp";
        return NULL;
    }
    snprintf(socket_path, sizeof(socket_path), "%s/socket", dir);
    munged_pid = fork();
    if (munged_pid == 0)
        exec_munged();
    for (int i = 0; i < 200; i++) {
        int status;

        if (waitpid(munged_pid, &status, WNOHANG) == munged_pid) {
            munged_pid = -1;
            if (WIFEXITED(status) && WEXITSTATUS(status) != 127)
                *reason = "munged does not start with a key of its own";
            munged_stop();
            return NULL;
        }
        if (access(socket_path, F_OK) == 0 && munged_answers())
            return socket_path;
        poll(NULL, 0, 50);
    }
    *reason = "munged does not answer";
    munged_stop();
    return NULL;
}

void munged_signal(int signal)
{
    kill(munged_pid, signal);
}

void munged_stop(void)
{
    const char *const files[] = {"key", "log", "pid", "seed", "socket", "socket.lock"};
    char path[128];

    if (munged_pid > 0) {
        kill(munged_pid, SIGTERM);
        kill(munged_pid, SIGCONT); /* a test may have failed before it did */
        waitpid(munged_pid, NULL, 0);
    }
    munged_pid = -1;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
        unlink(path);
    }
    rmdir(dir);
}

/* --- Peers ------------------------------------------------------------------------------------ */

static void peer_open(struct link *link, void *arg)
{
    struct peer *peer = arg;

    peer->opened++;
    peer->guests += link_is_guest(link);
    peer->link = link;
}

static void check_order(struct peer *peer, json_object *msg)
{
    json_object *number = NULL;

    if (!json_object_object_get_ex(msg, "n", &number))
        return;
    if (json_object_get_int64(number) != peer->expected)
        peer->disordered++;
    peer->expected++;
}

static void peer_message(struct link *link, json_object *msg, void *arg)
{
    struct peer *peer = arg;
    json_object *type = NULL;

    peer->messages++;
    check_order(peer, msg);
    json_object_put(peer->last);
    peer->last = json_object_get(msg);
    if (peer->echo)
        link_send(link, json_object_get(msg));
    if (peer->close_on && json_object_object_get_ex(msg, "t", &type) &&
        strcmp(json_object_get_string(type), peer->close_on) == 0)
        link_close(link, "closed on demand");
}

static void peer_closed(struct link *link, const char *why, void *arg)
{
    struct peer *peer = arg;

    peer->closed++;
    snprintf(peer->why, sizeof(peer->why), "%s", why);
    if (peer->link == link)
        peer->link = NULL;
}

static void peer_stranger(uid_t uid, void *arg)
{
    struct peer *peer = arg;

    peer->strangers++;
    if (peer->admits != NULL)
        link_server_admit(peer->admits, uid, peer->admits_guests, 60000);
}

const struct link_handlers peer_handlers = {
    .open = peer_open, .message = peer_message, .closed = peer_closed, .stranger = peer_stranger};

void peer_clear(struct peer *peer)
{
    json_object_put(peer->last);
    memset(peer, 0, sizeof(*peer));
}

/* --- The loop --------------------------------------------------------------------------------- */

static void timed_out(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
}

bool run_until(uv_loop_t *loop, bool (*done)(void *arg), void *arg)
{
    uv_timer_t *timer = malloc(sizeof(*timer));
    bool expired = false;

    uv_timer_init(loop, timer);
    timer->data = &expired;
    uv_update_time(loop);
    uv_timer_start(timer, timed_out, PATIENCE_MS, 0);
    while (!expired && !done(arg))
        uv_run(loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)timer, (uv_close_cb)free);
    return done(arg);
}

struct goal {
    const int *count;
    int wanted;
};

static bool reached(void *arg)
{
    const struct goal *goal = arg;

    return *goal->count >= goal->wanted;
}

static bool run_until_count(uv_loop_t *loop, const int *count, int wanted)
{
    struct goal goal = {count, wanted};

    return run_until(loop, reached, &goal);
}

bool run_until_opened(uv_loop_t *loop, struct peer *peer, int count)
{
    return run_until_count(loop, &peer->opened, count);
}

bool run_until_closed(uv_loop_t *loop, struct peer *peer, int count)
{
    return run_until_count(loop, &peer->closed, count);
}

bool run_until_messages(uv_loop_t *loop, struct peer *peer, int count)
{
    return run_until_count(loop, &peer->messages, count);
}

bool run_empty(uv_loop_t *loop)
{
    uv_timer_t timer;
    bool expired = false;

    uv_timer_init(loop, &timer);
    timer.data = &expired;
    uv_update_time(loop);
    uv_timer_start(&timer, timed_out, PATIENCE_MS, 0);
    uv_unref((uv_handle_t *)&timer); /* it does not count as something to do */
    while (!expired && uv_run(loop, UV_RUN_ONCE) != 0)
        ;
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(loop, UV_RUN_NOWAIT);
    return uv_loop_close(loop) == 0;
}

/* --- The scene -------------------------------------------------------------------------------- */

const char *munge_socket;
int port_first, port_last;

struct link_server *serve(uv_loop_t *loop, uint32_t job, struct peer *peer)
{
    struct link_server_options options = {.job_id = job,
                                          .munge_socket = munge_socket,
                                          .slurm_user = OTHER_UID,
                                          .port_first = port_first,
                                          .port_last = port_last};
    struct error err = {0};
    struct link_server *server = link_server_create(loop, &options, &peer_handlers, peer, &err);

    if (!server)
        fail_msg("%s", err.text);
    return server;
}

struct link_client_options client_options(int port)
{
    return (struct link_client_options){.role = LINK_ROLE_AGENT,
                                        .job_id = JOB,
                                        .leader_uid = geteuid(),
                                        .munge_socket = munge_socket,
                                        .address = "127.0.0.1",
                                        .port = port,
                                        .port_first = port_first,
                                        .port_last = port_last,
                                        .timeout_ms = PATIENCE_MS};
}

struct link *dial(uv_loop_t *loop, const struct link_client_options *options, struct peer *peer)
{
    struct error err = {0};
    struct link *link = link_connect(loop, options, &peer_handlers, peer, &err);

    if (!link)
        fail_msg("%s", err.text);
    return link;
}

void assert_no_leader(uv_loop_t *loop, const struct link_client_options *options, const char *why)
{
    struct link_client_options more = *options;
    struct peer peer = {0};

    for (; more.timeout_ms < PATIENCE_MS; more.timeout_ms *= 2) {
        uint64_t start = uv_hrtime();

        peer_clear(&peer);
        dial(loop, &more, &peer);
        assert_true(run_until_closed(loop, &peer, 1));
        assert_in_range((uv_hrtime() - start) / 1000000, (unsigned)more.timeout_ms - 20,
                        PATIENCE_MS);
        assert_int_equal(peer.opened, 0);
        if (strstr(peer.why, why) != NULL)
            return;
    }
    fail_msg("\"%s\" does not hold \"%s\"", peer.why, why);
}

int scene_setup(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    struct link_client_options options;

    *state = scene;
    uv_loop_init(&scene->loop);
    scene->server = serve(&scene->loop, JOB, &scene->leader);
    scene->port = link_server_port(scene->server);
    options = client_options(scene->port);
    scene->good_link = dial(&scene->loop, &options, &scene->good);
    scene->leader.echo = true;
    return run_until_opened(&scene->loop, &scene->good, 1) &&
                   run_until_opened(&scene->loop, &scene->leader, 1)
               ? 0
               : -1;
}

/* The good client still gets its echo; then everything ends, and nothing is left in the loop. */
int scene_teardown(void **state)
{
    struct scene *scene = *state;
    bool answered = true, empty, counted;

    if (scene->good.link) {
        int before = scene->good.messages;

        link_send(scene->good_link, json_object_new_object());
        answered = run_until_messages(&scene->loop, &scene->good, before + 1);
    }
    link_server_destroy(scene->server);
    empty = run_empty(&scene->loop);
    counted = scene->good.closed == 1 && scene->leader.closed == scene->leader.opened;
    if (!answered)
        print_error("after the test the good client is not answered\n");
    if (!empty)
        print_error("after the test the loop is not empty\n");
    if (!counted)
        print_error("after the test not each link was closed once\n");
    peer_clear(&scene->leader);
    peer_clear(&scene->good);
    if (empty)
        free(scene); /* else something may still use it */
    return answered && empty && counted ? 0 : -1;
}

json_object *numbered(int64_t number, const char *pad)
{
    json_object *msg = json_object_new_object();

    json_object_object_add(msg, "t", json_object_new_string("test"));
    json_object_object_add(msg, "n", json_object_new_int64(number));
    if (pad)
        json_object_object_add(msg, "pad", json_object_new_string(pad));
    return msg;
}

void port_path(char path[64], const char *state_dir, uint32_t job)
{
    snprintf(path, 64, "%s/leader/%u.0.port", state_dir, job);
}

struct published {
    const char *path;
    int port;
};

/* A loop that sleeps would not see what is not its own: our sockets, a file. */
static void tick(uv_timer_t *timer)
{
    (void)timer;
}

static bool names_port(void *arg)
{
    const struct published *published = arg;
    FILE *file = fopen(published->path, "re");
    int port = 0, got = file != NULL ? fscanf(file, "%d", &port) : 0;

    if (file != NULL)
        fclose(file);
    return got == 1 && port == published->port;
}

bool run_until_published(uv_loop_t *loop, const char *state_dir, uint32_t job, int port)
{
    uv_timer_t *timer = malloc(sizeof(*timer));
    char path[64];
    bool result;

    port_path(path, state_dir, job);
    uv_timer_init(loop, timer);
    uv_timer_start(timer, tick, 1, 1);
    result = run_until(loop, names_port, &(struct published){path, port});
    uv_close((uv_handle_t *)timer, (uv_close_cb)free);
    return result;
}

void remove_published(const char *state_dir, uint32_t job)
{
    char path[64];

    port_path(path, state_dir, job);
    assert_int_equal(unlink(path), 0);
    snprintf(path, sizeof(path), "%s/leader", state_dir);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(state_dir), 0);
}

/* --- Raw sockets ------------------------------------------------------------------------------ */

struct raw *raw_around(uv_loop_t *loop, int fd, enum frame_direction from)
{
    struct raw *raw = calloc(1, sizeof(*raw));

    assert_non_null(raw);
    raw->loop = loop;
    raw->fd = fd;
    raw->reader = frame_reader_create(from);
    raw->writer.direction = from == FRAME_FROM_LEADER ? FRAME_TO_LEADER : FRAME_FROM_LEADER;
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    return raw;
}

struct raw *raw_connect(uv_loop_t *loop, int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct raw *raw;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    raw = raw_around(loop, fd, FRAME_FROM_LEADER);
    raw->proof.port = port;
    return raw;
}

void raw_close(struct raw *raw)
{
    close(raw->fd);
    frame_reader_destroy(raw->reader);
    free(raw->cred);
    free(raw);
}

void raw_write(struct raw *raw, const void *data, size_t len)
{
    const char *at = data;

    while (len > 0) {
        ssize_t sent = send(raw->fd, at, len, MSG_NOSIGNAL);

        if (sent < 0 && errno != EAGAIN)
            return; /* the leader has ended it: what the test looks at is the end */
        if (sent < 0) {
            uv_run(raw->loop, UV_RUN_NOWAIT);
            continue;
        }
        at += sent;
        len -= (size_t)sent;
    }
}

void raw_send(struct raw *raw, const char *text)
{
    size_t len = 0;
    void *frame = frame_encode(&raw->writer, text, strlen(text), &len);

    assert_non_null(frame);
    raw_write(raw, frame, len);
    free(frame);
}

struct arrival {
    struct raw *raw;
    bool ended;
    ssize_t count;
    char data[65536];
};

static bool arrived(void *arg)
{
    struct arrival *arrival = arg;

    if (arrival->ended || arrival->count > 0)
        return true;
    arrival->count = recv(arrival->raw->fd, arrival->data, sizeof(arrival->data), 0);
    if (arrival->count == 0 || (arrival->count < 0 && errno != EAGAIN))
        arrival->ended = true;
    return arrival->ended || arrival->count > 0;
}

static void wait_for_arrival(struct arrival *arrival)
{
    uv_timer_t *timer = malloc(sizeof(*timer));

    uv_timer_init(arrival->raw->loop, timer);
    uv_timer_start(timer, tick, 1, 1);
    run_until(arrival->raw->loop, arrived, arrival);
    uv_close((uv_handle_t *)timer, (uv_close_cb)free);
}

json_object *raw_receive(struct raw *raw)
{
    struct error err = {0};
    const char *payload = NULL;
    size_t len = 0;
    int got;

    while ((got = frame_reader_next(raw->reader, &payload, &len, &err)) == 0) {
        struct arrival arrival = {.raw = raw};

        wait_for_arrival(&arrival);
        if (arrival.ended || arrival.count <= 0 ||
            frame_reader_feed(raw->reader, arrival.data, (size_t)arrival.count, &err) != 0)
            return NULL;
    }
    return got < 0 ? NULL : json_tokener_parse(payload);
}

bool raw_ended(struct raw *raw)
{
    struct arrival arrival = {.raw = raw};

    do {
        arrival.count = 0;
        wait_for_arrival(&arrival);
    } while (!arrival.ended && arrival.count > 0);
    return arrival.ended;
}

void raw_hello(struct raw *raw, const char *role)
{
    uint8_t nonce[LINK_NONCE_BYTES];
    char text[256];
    json_object *msg, *value = NULL;

    randombytes_buf(nonce, sizeof(nonce));
    sodium_bin2hex(raw->nonce, sizeof(raw->nonce), nonce, sizeof(nonce));
    snprintf(text, sizeof(text),
             "{\"t\":\"hello\",\"v\":2,\"role\":\"%s\",\"base\":\"%u.0\",\"nonce\":\"%s\"}", role,
             JOB, raw->nonce);
    raw_send(raw, text);
    msg = raw_receive(raw);
    assert_non_null(msg);
    assert_true(json_object_object_get_ex(msg, "nonce", &value));
    assert_int_equal(hex_to_bytes(json_object_get_string(value), raw->challenge), 0);
    json_object_put(msg);
}

void raw_fill_proof(struct raw *raw, const char *role)
{
    snprintf(raw->proof.role, sizeof(raw->proof.role), "%s", role);
    snprintf(raw->proof.base, sizeof(raw->proof.base), "%u.0", JOB);
    memcpy(raw->proof.nonce, raw->challenge, sizeof(raw->challenge));
    randombytes_buf(raw->proof.key, sizeof(raw->proof.key));
}

static void become_keyed(struct raw *raw, const char *cred)
{
    struct credential theirs = {.role = "leader", .port = raw->proof.port};
    struct error err = {0};
    uid_t uid;

    snprintf(theirs.base, sizeof(theirs.base), "%u.0", JOB);
    hex_to_bytes(raw->nonce, theirs.nonce);
    assert_int_equal(credential_check(munge_socket, cred, &theirs, &uid, &err), 0);
    assert_int_equal(uid, geteuid());
    session_key(&raw->proof, &theirs, raw->key);
    frame_reader_set_key(raw->reader, raw->key);
    frame_writer_set_key(&raw->writer, raw->key);
}

void raw_send_proof(struct raw *raw)
{
    struct error err = {0};
    char *text = NULL;

    if (!raw->cred && credential_make(munge_socket, geteuid(), &raw->proof, &raw->cred, &err) != 0)
        fail_msg("%s", err.text);
    assert_true(asprintf(&text, "{\"t\":\"proof\",\"cred\":\"%s\"}", raw->cred) > 0);
    raw_send(raw, text);
    free(text);
}

bool raw_accepted(struct raw *raw)
{
    json_object *msg = raw_receive(raw), *cred = NULL;
    bool accepted = msg && json_object_object_get_ex(msg, "cred", &cred);

    if (accepted)
        become_keyed(raw, json_object_get_string(cred));
    json_object_put(msg);
    return accepted;
}

bool raw_prove(struct raw *raw)
{
    raw_send_proof(raw);
    return raw_accepted(raw);
}

struct raw *raw_open(uv_loop_t *loop, int port)
{
    struct raw *raw = raw_connect(loop, port);

    raw_hello(raw, LINK_ROLE_AGENT);
    raw_fill_proof(raw, LINK_ROLE_AGENT);
    assert_true(raw_prove(raw));
    return raw;
}

struct raw *scene_challenged(struct scene *scene, const char *role)
{
    struct raw *raw = raw_connect(&scene->loop, scene->port);

    raw_hello(raw, role);
    raw_fill_proof(raw, role);
    return raw;
}

/* --- A false leader --------------------------------------------------------------------------- */

static int try_to_listen(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, 16) == 0)
        return fd;
    close(fd);
    return -1;
}

int listen_at(int port)
{
    int fd = try_to_listen(port);

    assert_true(fd >= 0);
    return fd;
}

struct impostor {
    int listener;
    struct raw *raw;
};

static bool called(void *arg)
{
    struct impostor *impostor = arg;
    int fd = impostor->raw ? -1 : accept(impostor->listener, NULL, NULL);

    if (fd >= 0)
        impostor->raw = raw_around(NULL, fd, FRAME_TO_LEADER);
    return impostor->raw;
}

struct raw *raw_take_call(uv_loop_t *loop, int listener)
{
    struct impostor impostor = {.listener = listener};
    uv_timer_t *timer = malloc(sizeof(*timer));

    uv_timer_init(loop, timer);
    uv_timer_start(timer, tick, 1, 1);
    assert_true(run_until(loop, called, &impostor));
    uv_close((uv_handle_t *)timer, (uv_close_cb)free);
    assert_non_null(impostor.raw);
    impostor.raw->loop = loop;
    return impostor.raw;
}

void raw_read_hello(struct raw *raw)
{
    json_object *msg = raw_receive(raw), *value = NULL;

    assert_non_null(msg);
    assert_true(json_object_object_get_ex(msg, "nonce", &value));
    snprintf(raw->nonce, sizeof(raw->nonce), "%s", json_object_get_string(value));
    json_object_put(msg);
}

void raw_send_challenge(struct raw *raw)
{
    char text[128];

    snprintf(text, sizeof(text), "{\"t\":\"challenge\",\"nonce\":\"%064d\"}", 7);
    raw_send(raw, text);
}

/* --- The program ------------------------------------------------------------------------------ */

/* The time limit of a test ends it by SIGTERM: leave nothing behind then either. */
static void interrupted(int signal)
{
    munged_stop();
    _exit(128 + signal);
}

/* Jobs of system tests have ports of that size, too, where the network is not our own. */
static bool all_are_free(void)
{
    int port = port_first, fd = 0;

    while (fd >= 0 && port <= port_last) {
        fd = try_to_listen(port++);
        close(fd);
    }
    return fd >= 0;
}

/* A hundred ports that no other test has, which runs at the same time: who has them, has the socket
 * of that name until it ends. */
static void take_ports(void)
{
    for (int i = 0; i < 40; i++) {
        struct sockaddr_un name = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        port_first = 28000 + (getpid() + i) % 40 * 100;
        port_last = port_first + 99;
        /* A name that begins with NUL is no file. */
        snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "elastic-test-ports-%d", port_first);
        if (bind(fd, (struct sockaddr *)&name, sizeof(name)) == 0 && all_are_free())
            return;
        close(fd);
    }
    printf("1..0 # SKIP other tests have all ports\n");
    exit(0);
}

void scene_begin(int argc, char **argv)
{
    const char *reason = NULL;

    log_init("test");
    own_network();
    take_ports();
    signal(SIGTERM, interrupted);
    signal(SIGINT, interrupted);
    signal(SIGPIPE, SIG_IGN);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    munge_socket = munged_start(&reason);
    if (munge_socket)
        return;
    printf("1..0 # SKIP %s\n", reason);
    exit(0);
}

int scene_end(int failed)
{
    munged_stop();
    return failed;
}

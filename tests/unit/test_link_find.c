/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a client finds its leader among strangers and impostors, or says that it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>
#include <netinet/in.h>

#include "tests/unit/link_fixture.h"

/* --- Finding the leader ----------------------------------------------------------------------- */

static int candidate(int k)
{
    return link_candidate_port(JOB + 1, 0, k, port_first, port_last);
}

/* The first candidate belongs to the leader of another job, the second to one who listens and
 * says nothing. */
static void test_strangers_at_the_candidates(void **state)
{
    struct scene *scene = *state;
    struct link_server_options foreign = {.job_id = 99,
                                          .munge_socket = munge_socket,
                                          .port_first = candidate(0),
                                          .port_last = candidate(0)};
    struct link_client_options options = client_options(0);
    struct peer other = {0}, leader = {0}, peer = {0};
    struct link_server *stranger, *own;
    int silent;

    stranger = link_server_create(&scene->loop, &foreign, &peer_handlers, &other, NULL);
    assert_non_null(stranger);
    silent = listen_at(candidate(1));
    own = serve(&scene->loop, JOB + 1, &leader);
    assert_int_equal(link_server_port(own), candidate(2));
    options.job_id = JOB + 1;
    dial(&scene->loop, &options, &peer);
    assert_true(run_until_opened(&scene->loop, &peer, 1));
    assert_true(run_until_opened(&scene->loop, &leader, 1));
    assert_int_equal(other.opened, 0);
    link_server_destroy(stranger);
    link_server_destroy(own);
    assert_true(run_until_closed(&scene->loop, &peer, 1));
    assert_true(run_until_closed(&scene->loop, &leader, 1));
    assert_string_equal(leader.why, "the leader ends");
    close(silent);
    peer_clear(&peer);
    peer_clear(&leader);
}

/* Another user has taken all candidates, and says nothing there. */
static void test_all_candidates_taken(void **state)
{
    struct scene *scene = *state;
    char dir[] = "/tmp/elastic-test-link-XXXXXX";
    struct link_server_options options = {.job_id = JOB + 1,
                                          .munge_socket = munge_socket,
                                          .port_first = port_first,
                                          .port_last = port_last};
    struct link_client_options client = client_options(0);
    struct peer leader = {0}, peer = {0};
    struct error err = {""};
    struct link_server *server;
    int squatters[LINK_CANDIDATES], port;

    assert_non_null(mkdtemp(dir));
    for (int k = 0; k < LINK_CANDIDATES; k++)
        squatters[k] = listen_at(candidate(k));
    assert_null(link_server_create(&scene->loop, &options, &peer_handlers, &leader, &err));
    assert_non_null(strstr(err.text, "all 16 candidates of job 4712.0"));
    options.state_dir = dir;
    server = link_server_create(&scene->loop, &options, &peer_handlers, &leader, &err);
    if (server == NULL)
        fail_msg("%s", err.text);
    port = link_server_port(server);
    assert_true(port < port_first || port > port_last);
    client.job_id = JOB + 1;
    client.state_dir = dir;
    dial(&scene->loop, &client, &peer);
    assert_true(run_until_opened(&scene->loop, &peer, 1));
    link_server_destroy(server);
    assert_true(run_until_closed(&scene->loop, &peer, 1));
    for (int k = 0; k < LINK_CANDIDATES; k++)
        close(squatters[k]);

    /* The file stays, and is wrong: the leader is at a candidate again. */
    server = link_server_create(&scene->loop, &options, &peer_handlers, &leader, &err);
    assert_int_equal(link_server_port(server), candidate(0));
    dial(&scene->loop, &client, &peer);
    assert_true(run_until_opened(&scene->loop, &peer, 2));
    assert_true(run_until_published(&scene->loop, dir, JOB + 1, candidate(0)));
    link_server_destroy(server);
    assert_true(run_until_closed(&scene->loop, &peer, 2));
    assert_true(run_until_closed(&scene->loop, &leader, 2));
    remove_published(dir, JOB + 1);
    peer_clear(&leader);
    peer_clear(&peer);
}

/* Its port is published when it leads, and not before. */
static void test_successor_where_all_are_taken(void **state)
{
    struct scene *scene = *state;
    char dir[] = "/tmp/elastic-test-link-XXXXXX", path[64];
    struct link_server_options options = {.job_id = JOB + 1,
                                          .munge_socket = munge_socket,
                                          .port_first = candidate(0),
                                          .port_last = candidate(0),
                                          .state_dir = dir,
                                          .successor = true};
    struct link_client_options client = client_options(0);
    struct peer leader = {0}, peer = {0};
    struct error err = {""};
    struct link_server *server;
    int squatter = listen_at(candidate(0));

    assert_non_null(mkdtemp(dir));
    port_path(path, dir, JOB + 1);
    server = link_server_create(&scene->loop, &options, &peer_handlers, &leader, &err);
    assert_non_null(server);
    assert_int_equal(access(path, F_OK), -1);
    link_server_lead(server, &peer_handlers, &leader);
    client.job_id = JOB + 1;
    client.port_first = client.port_last = candidate(0);
    client.state_dir = dir;
    dial(&scene->loop, &client, &peer);
    assert_true(run_until_opened(&scene->loop, &peer, 1));
    link_server_destroy(server);
    assert_true(run_until_closed(&scene->loop, &peer, 1));
    assert_true(run_until_closed(&scene->loop, &leader, 1));
    close(squatter);
    remove_published(dir, JOB + 1);
    peer_clear(&leader);
    peer_clear(&peer);
}

/* Where it finds a candidate, too. */
static void test_successor_publishes_when_it_leads(void **state)
{
    struct scene *scene = *state;
    char dir[] = "/tmp/elastic-test-link-XXXXXX", path[64];
    struct link_server_options options = {.job_id = JOB + 1,
                                          .munge_socket = munge_socket,
                                          .port_first = port_first,
                                          .port_last = port_last,
                                          .state_dir = dir,
                                          .successor = true};
    struct peer leader = {0};
    struct error err = {""};
    struct link_server *server;

    assert_non_null(mkdtemp(dir));
    port_path(path, dir, JOB + 1);
    server = link_server_create(&scene->loop, &options, &peer_handlers, &leader, &err);
    assert_non_null(server);
    uv_run(&scene->loop, UV_RUN_NOWAIT);
    assert_int_equal(access(path, F_OK), -1);
    link_server_lead(server, &peer_handlers, &leader);
    assert_true(run_until_published(&scene->loop, dir, JOB + 1, candidate(LINK_CANDIDATES - 1)));
    link_server_destroy(server);
    remove_published(dir, JOB + 1);
    peer_clear(&leader);
}

/* --- Some of the candidates are taken --------------------------------------------------------- */

/* One who listens at a candidate, and begins a handshake without an end. */
struct squatter {
    uv_tcp_t listener;
    uv_tcp_t calls[16];
    int count;
};

static void squatter_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    static char buffer[4096];

    (void)handle;
    (void)suggested;
    *buf = uv_buf_init(buffer, sizeof(buffer));
}

static void squatter_read(uv_stream_t *call, ssize_t count, const uv_buf_t *buf)
{
    (void)buf;
    if (count < 0 && !uv_is_closing((uv_handle_t *)call))
        uv_close((uv_handle_t *)call, NULL);
}

static void squatter_called(uv_stream_t *listener, int status)
{
    struct squatter *squatter = listener->data;
    uv_tcp_t *call = &squatter->calls[squatter->count];
    struct frame_writer writer = {.direction = FRAME_FROM_LEADER};
    char text[160];
    size_t len = 0;
    void *frame;
    uv_buf_t buf;

    assert_int_equal(status, 0);
    assert_true(squatter->count < 16);
    squatter->count++;
    uv_tcp_init(listener->loop, call);
    assert_int_equal(uv_accept(listener, (uv_stream_t *)call), 0);
    snprintf(text, sizeof(text), "{\"t\":\"challenge\",\"nonce\":\"%064d\"}", 7);
    frame = frame_encode(&writer, text, strlen(text), &len);
    buf = uv_buf_init(frame, (unsigned)len);
    assert_int_equal(uv_try_write((uv_stream_t *)call, &buf, 1), (int)len);
    free(frame);
    uv_read_start((uv_stream_t *)call, squatter_alloc, squatter_read);
}

static void squatter_start(struct squatter *squatter, uv_loop_t *loop, int port)
{
    struct sockaddr_in any;

    squatter->count = 0;
    uv_ip4_addr("127.0.0.1", port, &any);
    uv_tcp_init(loop, &squatter->listener);
    squatter->listener.data = squatter;
    assert_int_equal(uv_tcp_bind(&squatter->listener, (struct sockaddr *)&any, 0), 0);
    assert_int_equal(uv_listen((uv_stream_t *)&squatter->listener, 16, squatter_called), 0);
}

static void squatter_stop(struct squatter *squatter)
{
    for (int i = 0; i < squatter->count; i++)
        if (!uv_is_closing((uv_handle_t *)&squatter->calls[i]))
            uv_close((uv_handle_t *)&squatter->calls[i], NULL);
    uv_close((uv_handle_t *)&squatter->listener, NULL);
    uv_run(squatter->listener.loop, UV_RUN_NOWAIT);
}

/* The leader of JOB + 1 at its candidate k. */
static struct link_server *serve_at(struct scene *scene, int k, const char *dir,
                                    struct peer *leader)
{
    struct link_server_options options = {.job_id = JOB + 1,
                                          .munge_socket = munge_socket,
                                          .port_first = port_first,
                                          .port_last = port_last,
                                          .state_dir = dir};
    struct link_server *server = link_server_create(&scene->loop, &options, &peer_handlers, leader,
                                                    NULL);

    assert_non_null(server);
    assert_int_equal(link_server_port(server), candidate(k));
    return server;
}

/* The client gets to it within its patience. */
static void expect_found(struct scene *scene, struct link_server *server, const char *dir,
                         struct peer *leader)
{
    struct link_client_options options = client_options(0);
    struct peer peer = {0};

    options.job_id = JOB + 1;
    options.state_dir = dir;
    dial(&scene->loop, &options, &peer);
    assert_true(run_until_opened(&scene->loop, &peer, 1));
    assert_true(run_until_opened(&scene->loop, leader, 1));
    link_server_destroy(server);
    assert_true(run_until_closed(&scene->loop, &peer, 1));
    assert_true(run_until_closed(&scene->loop, leader, 1));
    assert_string_equal(leader->why, "the leader ends");
    peer_clear(&peer);
    peer_clear(leader);
}

/* All but the last, by one who says nothing. One after the other they would take 30 s. */
static void test_silent_squatters(void **state)
{
    struct scene *scene = *state;
    struct peer leader = {0};
    int squatters[LINK_CANDIDATES - 1];

    for (int k = 0; k < LINK_CANDIDATES - 1; k++)
        squatters[k] = listen_at(candidate(k));
    expect_found(scene, serve_at(scene, LINK_CANDIDATES - 1, NULL, &leader), NULL, &leader);
    for (int k = 0; k < LINK_CANDIDATES - 1; k++)
        close(squatters[k]);
}

/* One after the other they would take 20 s, since the leader may take its time with a proof. */
static void test_squatters_that_begin_a_handshake(void **state)
{
    struct scene *scene = *state;
    struct squatter squatters[4];
    struct peer leader = {0};

    for (int k = 0; k < 4; k++)
        squatter_start(&squatters[k], &scene->loop, candidate(k));
    expect_found(scene, serve_at(scene, 4, NULL, &leader), NULL, &leader);
    for (int k = 0; k < 4; k++)
        squatter_stop(&squatters[k]);
}

/* The leader says at which of its candidates it is: most squatters are never called. */
static void test_published_candidate(void **state)
{
    struct scene *scene = *state;
    char dir[] = "/tmp/elastic-test-link-XXXXXX";
    struct squatter squatters[LINK_CANDIDATES - 1];
    struct peer leader = {0};
    struct link_server *server;

    assert_non_null(mkdtemp(dir));
    for (int k = 0; k < LINK_CANDIDATES - 1; k++)
        squatter_start(&squatters[k], &scene->loop, candidate(k));
    server = serve_at(scene, LINK_CANDIDATES - 1, dir, &leader);
    assert_true(run_until_published(&scene->loop, dir, JOB + 1, candidate(LINK_CANDIDATES - 1)));
    expect_found(scene, server, dir, &leader);
    assert_int_equal(squatters[0].count, 1);
    assert_int_equal(squatters[LINK_CANDIDATES - 2].count, 0);
    for (int k = 0; k < LINK_CANDIDATES - 1; k++)
        squatter_stop(&squatters[k]);
    remove_published(dir, JOB + 1);
}

/* The file names a port where another program is by now. */
static void test_outdated_file(void **state)
{
    struct scene *scene = *state;
    char dir[] = "/tmp/elastic-test-link-XXXXXX", path[64];
    int first = listen_at(candidate(0)), outdated = listen_at(candidate(5));
    struct peer leader = {0};
    FILE *file;

    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/leader", dir);
    assert_int_equal(mkdir(path, 0700), 0);
    port_path(path, dir, JOB + 1);
    file = fopen(path, "we");
    assert_non_null(file);
    fprintf(file, "%d\n", candidate(5));
    fclose(file);
    expect_found(scene, serve_at(scene, 1, NULL, &leader), dir, &leader);
    remove_published(dir, JOB + 1);
    close(first);
    close(outdated);
}

static void test_leader_that_comes_later(void **state)
{
    struct scene *scene = *state;
    struct link_client_options options = client_options(0);
    struct peer leader = {0}, peer = {0};
    struct link_server *server;

    options.job_id = JOB + 1;
    dial(&scene->loop, &options, &peer);
    for (int i = 0; i < 100; i++) /* each candidate has refused at least once */
        uv_run(&scene->loop, UV_RUN_ONCE);
    assert_int_equal(peer.opened + peer.closed, 0);
    server = serve(&scene->loop, JOB + 1, &leader);
    assert_true(run_until_opened(&scene->loop, &peer, 1));
    assert_true(run_until_opened(&scene->loop, &leader, 1));
    link_server_destroy(server);
    assert_true(run_until_closed(&scene->loop, &peer, 1));
    assert_true(run_until_closed(&scene->loop, &leader, 1));
    peer_clear(&peer);
    peer_clear(&leader);
}

static void test_no_leader(void **state)
{
    struct scene *scene = *state;
    struct link_client_options options = client_options(0);

    options.job_id = JOB + 1;
    options.timeout_ms = 400;
    /* Nobody listens, or, where tests run side by side, somebody else. */
    assert_no_leader(&scene->loop, &options, "127.0.0.1:");
    options.timeout_ms = 2000; /* a resolver may take its time to say no */
    options.address = "no-such-host.invalid";
    assert_no_leader(&scene->loop, &options, "no-such-host.invalid: ");
}

static void test_munge_that_is_not_there(void **state)
{
    struct scene *scene = *state;
    struct link_client_options options = client_options(scene->port);

    options.munge_socket = "/nonexistent/munge.socket";
    options.timeout_ms = 300;
    assert_no_leader(&scene->loop, &options, "munge");
}

/* A socket of munge's kind that takes calls and never answers. */
static int hang_at(struct sockaddr_un *address)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address->sun_family = AF_UNIX;
    snprintf(address->sun_path, sizeof(address->sun_path), "%s/hangs", munged_dir());
    assert_int_equal(bind(fd, (struct sockaddr *)address, sizeof(*address)), 0);
    assert_int_equal(listen(fd, 16), 0);
    return fd;
}

static void count_tick(uv_timer_t *timer)
{
    ++*(int *)timer->data;
}

static void test_munge_that_hangs(void **state)
{
    struct scene *scene = *state;
    struct link_client_options options = client_options(scene->port);
    uv_timer_t timer;
    struct sockaddr_un path = {0};
    int fd, ticks = 0;

    fd = hang_at(&path);
    uv_timer_init(&scene->loop, &timer);
    timer.data = &ticks;
    uv_timer_start(&timer, count_tick, 10, 10);
    options.munge_socket = path.sun_path;
    options.timeout_ms = 1000;
    assert_no_leader(&scene->loop, &options, "munge");
    assert_true(ticks >= 5); /* the loop was not blocked; on a busy machine 20 of 100 */
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&scene->loop, UV_RUN_NOWAIT);
    close(fd);
    unlink(path.sun_path);
}

/* --- A false leader --------------------------------------------------------------------------- */

static void read_proof(struct raw *raw, int port)
{
    json_object *msg = raw_receive(raw), *value = NULL;
    struct credential theirs = {.role = "agent", .port = port};
    struct error err = {0};
    char nonce[LINK_NONCE_HEX];
    uid_t uid;

    assert_non_null(msg);
    assert_true(json_object_object_get_ex(msg, "cred", &value));
    snprintf(theirs.base, sizeof(theirs.base), "%u.0", JOB);
    snprintf(nonce, sizeof(nonce), "%064d", 7);
    hex_to_bytes(nonce, theirs.nonce);
    assert_int_equal(
        credential_check(munge_socket, json_object_get_string(value), &theirs, &uid, &err), 0);
    json_object_put(msg);
}

static void send_accept(struct raw *raw, const char *role, const char *nonce)
{
    struct error err = {0};
    char *cred = NULL, *text = NULL;

    snprintf(raw->proof.role, sizeof(raw->proof.role), "%s", role);
    snprintf(raw->proof.base, sizeof(raw->proof.base), "%u.0", JOB);
    hex_to_bytes(nonce, raw->proof.nonce);
    assert_int_equal(credential_make(munge_socket, geteuid(), &raw->proof, &cred, &err), 0);
    assert_true(asprintf(&text, "{\"t\":\"accept\",\"cred\":\"%s\"}", cred) > 0);
    raw_send(raw, text);
    free(cred);
    free(text);
}

/* Each attempt of the client meets another fault; it goes on after each, and reports the most
 * telling one. */
static void test_impostor(void **state)
{
    struct scene *scene = *state;
    char zeros[LINK_NONCE_HEX];
    struct link_client_options options = client_options(0);
    struct peer peer = {0};
    struct link *link;
    struct raw *raw;
    int listener, step;

    snprintf(zeros, sizeof(zeros), "%064d", 0);
    for (options.port = port_first; options.port == scene->port; options.port++)
        ;
    listener = listen_at(options.port);
    link = dial(&scene->loop, &options, &peer);
    for (step = 0; step < 9; step++) {
        raw = raw_take_call(&scene->loop, listener);
        if (step > 0)
            raw_read_hello(raw);
        if (step == 0)
            shutdown(raw->fd, SHUT_RDWR);
        else if (step == 1)
            raw_write(raw, "HTTP/1.0 400 Bad Request\r\n", 26);
        else if (step == 2)
            raw_send(raw, "{\"t\":\"accept\",\"cred\":\"MUNGE:\"}");
        else if (step == 3)
            raw_send(raw, "{\"t\":\"challenge\",\"nonce\":\"00\"}");
        else if (step == 4)
            raw_send(raw, "{\"t\":\"refuse\",\"reason\":\"\\u001b[2J\"}");
        if (step >= 5) {
            raw_send_challenge(raw);
            read_proof(raw, options.port);
            raw->proof.port = options.port;
        }
        if (step == 5)
            send_accept(raw, "leader", zeros); /* not the client's nonce */
        else if (step == 6)
            send_accept(raw, "agent", raw->nonce); /* a credential made for another purpose */
        else if (step == 7)
            raw_send(raw, "{\"t\":\"accept\",\"cred\":\"MUNGE:nonsense:\"}");
        else if (step == 8)
            raw_send(raw, "{\"t\":\"refuse\",\"reason\":\"\\u001b[2J go away\\n\"}");
        assert_true(raw_ended(raw));
        raw_close(raw);
        assert_int_equal(peer.opened, 0);
    }
    link_close(link, "enough of this");
    assert_true(run_until_closed(&scene->loop, &peer, 1));
    assert_string_equal(peer.why, "enough of this");
    close(listener);
    peer_clear(&peer);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        scene_test(test_strangers_at_the_candidates),
        scene_test(test_all_candidates_taken),
        scene_test(test_successor_where_all_are_taken),
        scene_test(test_successor_publishes_when_it_leads),
        scene_test(test_silent_squatters),
        scene_test(test_squatters_that_begin_a_handshake),
        scene_test(test_published_candidate),
        scene_test(test_outdated_file),
        scene_test(test_leader_that_comes_later),
        scene_test(test_no_leader),
        scene_test(test_munge_that_is_not_there),
        scene_test(test_munge_that_hangs),
        scene_test(test_impostor),
    };

    return scene_run(argc, argv, tests);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program between a client and the leader, as any user of the leader's node can start one: it
 * listens on a candidate port that the leader has not taken, and hands on what it gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/link_fixture.h"

#define SECRET "TOKEN=a-secret-of-the-user"

struct relay {
    uv_tcp_t listener;
    uv_tcp_t ends[2]; /* the client's and the leader's */
    uv_connect_t connect;
    int leader_port;
    int calls;
    bool up, closed;
    char *seen; /* all that was said, both ways */
    size_t seen_len;
};

struct piece {
    uv_write_t write;
    char data[4096];
};

static void take(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct piece *piece = malloc(sizeof(*piece));

    (void)handle;
    (void)suggested;
    *buf = uv_buf_init(piece->data, sizeof(piece->data));
}

static void handed_on(uv_write_t *write, int status)
{
    (void)status;
    free(write);
}

static void close_ends(struct relay *relay)
{
    for (int i = 0; relay->up && i < 2; i++)
        if (!uv_is_closing((uv_handle_t *)&relay->ends[i]))
            uv_close((uv_handle_t *)&relay->ends[i], NULL);
}

static void hand_on(uv_stream_t *from, ssize_t count, const uv_buf_t *buf)
{
    struct relay *relay = from->data;
    uv_tcp_t *to = &relay->ends[from == (uv_stream_t *)&relay->ends[0]];
    struct piece *piece = buf->base != NULL
                              ? (struct piece *)(void *)(buf->base - offsetof(struct piece, data))
                              : NULL;
    uv_buf_t part = uv_buf_init(buf->base, count > 0 ? (unsigned)count : 0);

    if (count <= 0) {
        free(piece);
        close_ends(relay);
        return;
    }
    relay->seen = realloc(relay->seen, relay->seen_len + (size_t)count);
    memcpy(relay->seen + relay->seen_len, buf->base, (size_t)count);
    relay->seen_len += (size_t)count;
    if (uv_write(&piece->write, (uv_stream_t *)to, &part, 1, handed_on) != 0)
        free(piece);
}

static void connected(uv_connect_t *connect, int status)
{
    struct relay *relay = connect->data;

    assert_int_equal(status, 0);
    for (int i = 0; i < 2; i++)
        uv_read_start((uv_stream_t *)&relay->ends[i], take, hand_on);
}

static void called(uv_stream_t *listener, int status)
{
    struct relay *relay = listener->data;
    struct sockaddr_in leader;

    assert_int_equal(status, 0);
    if (relay->calls++ > 0)
        return; /* one is enough for a test */
    for (int i = 0; i < 2; i++) {
        uv_tcp_init(listener->loop, &relay->ends[i]);
        relay->ends[i].data = relay;
    }
    relay->up = true;
    relay->connect.data = relay;
    uv_ip4_addr("127.0.0.1", relay->leader_port, &leader);
    assert_int_equal(uv_accept(listener, (uv_stream_t *)&relay->ends[0]), 0);
    assert_int_equal(
        uv_tcp_connect(&relay->connect, &relay->ends[1], (struct sockaddr *)&leader, connected), 0);
}

static void relay_start(struct relay *relay, uv_loop_t *loop, int port)
{
    struct sockaddr_in any;

    uv_ip4_addr("127.0.0.1", port, &any);
    uv_tcp_init(loop, &relay->listener);
    relay->listener.data = relay;
    assert_int_equal(uv_tcp_bind(&relay->listener, (struct sockaddr *)&any, 0), 0);
    assert_int_equal(uv_listen((uv_stream_t *)&relay->listener, 16, called), 0);
}

static void relay_stop(struct relay *relay)
{
    close_ends(relay);
    uv_close((uv_handle_t *)&relay->listener, NULL);
    uv_run(relay->listener.loop, UV_RUN_NOWAIT);
    free(relay->seen);
}

static bool saw(const struct relay *relay, const char *text)
{
    return relay->seen != NULL && memmem(relay->seen, relay->seen_len, text, strlen(text)) != NULL;
}

/* The leader finds its first candidate taken. A client of the relay gets nowhere, and the relay
 * gets nothing but the beginning of a handshake. A client that looks for the leader finds it. */
static void test_relay_on_another_port(void **state)
{
    uv_loop_t loop;
    struct relay relay = {0};
    struct peer leader = {.echo = true}, client = {0};
    struct link_client_options options = client_options(0);
    struct link_server *server;
    json_object *msg = json_object_new_object();

    (void)state;
    uv_loop_init(&loop);
    options.job_id = JOB + 1;
    relay_start(&relay, &loop, link_candidate_port(JOB + 1, 0, 0, port_first, port_last));
    server = serve(&loop, JOB + 1, &leader);
    relay.leader_port = link_server_port(server);
    options.port = link_candidate_port(JOB + 1, 0, 0, port_first, port_last);
    options.once = true;
    dial(&loop, &options, &client);
    assert_true(run_until_closed(&loop, &client, 1));
    assert_int_equal(client.opened, 0);
    assert_true(saw(&relay, "\"proof\""));
    assert_true(saw(&relay, "relays the connection"));
    options.port = 0;
    options.once = false;
    dial(&loop, &options, &client);
    assert_true(run_until_opened(&loop, &client, 1));
    json_object_object_add(msg, "env", json_object_new_string(SECRET));
    link_send(client.link, msg);
    assert_true(run_until_messages(&loop, &client, 1));
    assert_int_equal(leader.opened, 1); /* the client's own connection */
    assert_false(saw(&relay, "\"accept\""));
    assert_false(saw(&relay, SECRET));
    link_server_destroy(server);
    assert_true(run_until_closed(&loop, &client, 2));
    relay_stop(&relay);
    assert_true(run_empty(&loop));
    peer_clear(&leader);
    peer_clear(&client);
}

/* A leader that does not look: the client does. */
static void test_client_looks_at_the_port(void **state)
{
    struct scene *scene = *state;
    struct link_client_options options = client_options(0);
    struct credential mine = {.role = "leader"};
    struct error err = {0};
    struct peer peer = {0};
    char *cred = NULL, text[4200];
    struct raw *raw;
    int listener;

    options.port = port_last == scene->port ? port_first : port_last;
    options.once = true;
    listener = listen_at(options.port);
    dial(&scene->loop, &options, &peer);
    raw = raw_take_call(&scene->loop, listener);
    close(listener);
    raw_read_hello(raw);
    raw_send_challenge(raw);
    json_object_put(raw_receive(raw));
    mine.port = scene->port;
    snprintf(mine.base, sizeof(mine.base), "%u.0", JOB);
    assert_int_equal(hex_to_bytes(raw->nonce, mine.nonce), 0);
    assert_int_equal(credential_make(munge_socket, geteuid(), &mine, &cred, &err), 0);
    snprintf(text, sizeof(text), "{\"t\":\"accept\",\"cred\":\"%s\"}", cred);
    raw_send(raw, text);
    free(cred);
    assert_true(run_until_closed(&scene->loop, &peer, 1));
    assert_int_equal(peer.opened, 0);
    assert_non_null(strstr(peer.why, "relays the connection"));
    raw_close(raw);
    peer_clear(&peer);
}

/* As if the relay could listen on the leader's own port, as a router on the way does. */
static void test_relay_on_the_same_port(void **state)
{
    struct scene *scene = *state;
    struct relay relay = {.leader_port = scene->port};
    int port = port_last == scene->port ? port_first : port_last;
    json_object *msg;
    struct raw *raw;

    relay_start(&relay, &scene->loop, port);
    raw = raw_connect(&scene->loop, port);
    raw_hello(raw, LINK_ROLE_AGENT);
    raw_fill_proof(raw, LINK_ROLE_AGENT);
    raw->proof.port = scene->port;
    assert_true(raw_prove(raw));
    raw_send(raw, "{\"t\":\"x\",\"env\":\"" SECRET "\"}");
    msg = raw_receive(raw); /* the leader's echo */
    assert_non_null(msg);
    assert_non_null(strstr(json_object_to_json_string(msg), SECRET));
    json_object_put(msg);
    assert_true(saw(&relay, "\"accept\""));
    assert_false(saw(&relay, SECRET));
    assert_false(saw(&relay, "\"env\"")); /* without quotes it may be part of a credential */
    raw_close(raw);
    assert_true(run_until_closed(&scene->loop, &scene->leader, 1));
    relay_stop(&relay);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_relay_on_another_port),
        scene_test(test_client_looks_at_the_port),
        scene_test(test_relay_on_the_same_port),
    };

    return scene_run(argc, argv, tests);
}

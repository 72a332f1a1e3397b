/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Authenticated connections: the handshake with a real munged, messages, and the end of a link. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/link_fixture.h"
#include "tests/unit/support.h"

/* --- The handshake ---------------------------------------------------------------------------- */

static void test_handshake(void **state)
{
    struct scene *scene = *state;

    assert_string_equal(link_role(scene->leader.link), "agent");
    assert_int_equal(link_peer_uid(scene->leader.link), geteuid());
    assert_int_equal(link_peer_uid(scene->good_link), geteuid());
    assert_string_equal(link_peer_address(scene->leader.link), "127.0.0.1");
    assert_string_equal(link_peer_address(scene->good_link), "127.0.0.1");
    assert_in_range(scene->port, port_first, port_last);
}

/* The leader's and the agents' children must not hold their connections open. */
static void test_no_descriptor_is_inherited(void **state)
{
    int sockets = 0;

    (void)state;
    for (int fd = 3; fd < 256; fd++) {
        struct stat status;

        if (fstat(fd, &status) != 0 || !S_ISSOCK(status.st_mode))
            continue;
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        sockets++;
    }
    /* The leader's port, both ends of the good client's link, and the name of the ports. */
    assert_true(sockets >= 4);
}

static void test_control_and_name(void **state)
{
    struct scene *scene = *state;
    struct link_client_options options = client_options(0);
    struct peer peer = {0};

    options.role = LINK_ROLE_CONTROL;
    options.address = "localhost";
    dial(&scene->loop, &options, &peer);
    assert_true(run_until_opened(&scene->loop, &peer, 1));
    assert_true(run_until_opened(&scene->loop, &scene->leader, 2));
    assert_string_equal(link_role(scene->leader.link), "control");
    link_close(peer.link, "enough");
    assert_true(run_until_closed(&scene->loop, &peer, 1));
    assert_string_equal(peer.why, "enough");
    assert_true(run_until_closed(&scene->loop, &scene->leader, 1));
    assert_non_null(strstr(scene->leader.why, "closed the connection"));
    peer_clear(&peer);
}

static void test_another_incarnation_is_refused(void **state)
{
    struct scene *scene = *state;
    struct link_client_options options = client_options(scene->port);

    options.restarts = 1;
    options.timeout_ms = 300;
    assert_no_leader(&scene->loop, &options, "no leader of job 4711.1 at 127.0.0.1");
    assert_no_leader(&scene->loop, &options, "refuses: this is the leader of job 4711.0");
}

static void test_leader_of_another_user_is_refused(void **state)
{
    struct scene *scene = *state;
    struct link_client_options options = client_options(scene->port);

    /* The real leader cannot decode what is meant for this one. */
    options.leader_uid = geteuid() + 1;
    options.timeout_ms = 300;
    assert_no_leader(&scene->loop, &options, "Unauthorized credential");
}

/* --- Messages --------------------------------------------------------------------------------- */

static void test_many_messages(void **state)
{
    struct scene *scene = *state;

    for (int i = 0; i < 1000; i++)
        assert_int_equal(link_send(scene->good_link, numbered(i, NULL)), 0);
    assert_true(run_until_messages(&scene->loop, &scene->good, 1000));
    assert_int_equal(scene->leader.messages, 1000);
    assert_int_equal(scene->good.disordered + scene->leader.disordered, 0);
    assert_int_equal(link_queued(scene->good_link), 0);
}

static void test_large_messages(void **state)
{
    struct scene *scene = *state;
    size_t size = 1024 * 1024;
    char *pad = malloc(size + 1);
    json_object *back = NULL;

    memset(pad, 'x', size);
    pad[size] = '\0';
    for (int i = 0; i < 20; i++) {
        assert_int_equal(link_send(scene->good_link, numbered(2 * i, NULL)), 0);
        assert_int_equal(link_send(scene->good_link, numbered(2 * i + 1, pad)), 0);
    }
    assert_true(link_queued(scene->good_link) > size);
    assert_true(run_until_messages(&scene->loop, &scene->good, 40));
    assert_true(json_object_object_get_ex(scene->good.last, "pad", &back));
    assert_string_equal(json_object_get_string(back), pad);
    assert_int_equal(scene->good.disordered + scene->leader.disordered, 0);
    free(pad);
}

static void test_bytes_that_are_not_utf8(void **state)
{
    struct scene *scene = *state;
    json_object *msg = json_object_new_object(), *back = NULL;

    json_object_object_add(msg, "env", json_object_new_string("NAME=\xe9\xff/\"\\\n\x01"));
    assert_int_equal(link_send(scene->good_link, msg), 0);
    assert_true(run_until_messages(&scene->loop, &scene->good, 1));
    assert_true(json_object_object_get_ex(scene->good.last, "env", &back));
    assert_string_equal(json_object_get_string(back), "NAME=\xe9\xff/\"\\\n\x01");
}

static void test_too_large_is_not_sent(void **state)
{
    struct scene *scene = *state;
    size_t size = FRAME_KEYED_MAX + 1;
    char *pad = malloc(size + 1);

    memset(pad, 'x', size);
    pad[size] = '\0';
    assert_int_equal(link_send(scene->good_link, numbered(0, pad)), -1);
    free(pad);
    assert_int_equal(link_send(scene->good_link, numbered(0, NULL)), 0);
    assert_true(run_until_messages(&scene->loop, &scene->good, 1));
}

/* So little is then enough to fill them that a busy machine delivers it within a second, which is
 * all that link_close() promises. */
static void shrink_socket_buffers(void)
{
    const int bytes = 65536;

    for (int fd = 3; fd < 256; fd++) {
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
    }
}

/* All that was sent arrives before the end, also when the peer has sent things that nobody reads
 * any more. */
static void test_close_delivers_what_was_sent(void **state)
{
    const int count = 20;
    struct scene *scene = *state;
    char pad[20001];

    memset(pad, 'x', sizeof(pad) - 1);
    pad[sizeof(pad) - 1] = '\0';
    scene->leader.echo = false;
    shrink_socket_buffers();
    for (int i = 0; i < count; i++) {
        link_send(scene->leader.link, numbered(i, pad));
        link_send(scene->good_link, numbered(i, pad));
    }
    assert_in_range(link_queued(scene->leader.link), 1, SIZE_MAX); /* it has to wait for that */
    link_close(scene->leader.link, "the job has ended");
    assert_int_equal(link_send(scene->leader.link, numbered(0, NULL)), -1);
    assert_true(run_until_closed(&scene->loop, &scene->good, 1));
    assert_int_equal(scene->good.messages, count);
    assert_int_equal(scene->good.disordered, 0);
    assert_true(run_until_closed(&scene->loop, &scene->leader, 1));
    assert_string_equal(scene->leader.why, "the job has ended");
}

static void test_close_in_a_handler(void **state)
{
    struct scene *scene = *state;
    json_object *bye = json_object_new_object();

    scene->leader.close_on = "bye";
    json_object_object_add(bye, "t", json_object_new_string("bye"));
    link_send(scene->good_link, numbered(0, NULL));
    link_send(scene->good_link, bye);
    link_send(scene->good_link, numbered(1, NULL)); /* thrown away */
    assert_true(run_until_closed(&scene->loop, &scene->good, 1));
    assert_true(run_until_closed(&scene->loop, &scene->leader, 1));
    assert_int_equal(scene->leader.messages, 2);
    assert_int_equal(scene->good.messages, 2);
}

/* A peer that never closes its side does not keep the link for longer than a second. */
static void test_close_does_not_wait_for_ever(void **state)
{
    struct scene *scene = *state;
    struct raw *raw;
    uint64_t start;

    raw = raw_open(&scene->loop, scene->port);
    assert_true(run_until_opened(&scene->loop, &scene->leader, 2));
    start = uv_hrtime();
    link_close(scene->leader.link, "enough");
    assert_true(run_until_closed(&scene->loop, &scene->leader, 1));
    assert_in_range((uv_hrtime() - start) / 1000000, 500, PATIENCE_MS);
    raw_close(raw);
}

static void test_a_peer_that_does_not_read(void **state)
{
    struct scene *scene = *state;
    struct raw *raw;
    char *pad = malloc(1000001);
    int count = 0;

    memset(pad, 'x', 1000000);
    pad[1000000] = '\0';
    raw = raw_open(&scene->loop, scene->port);
    assert_true(run_until_opened(&scene->loop, &scene->leader, 2));
    while (count < 200 && link_send(scene->leader.link, numbered(count, pad)) == 0)
        count++;
    free(pad);
    assert_in_range(count, 50, 100);
    assert_true(run_until_closed(&scene->loop, &scene->leader, 1));
    assert_non_null(strstr(scene->leader.why, "does not read"));
    raw_close(raw);
}

/* --- Ends ------------------------------------------------------------------------------------- */

static void test_destroy_with_everything_under_way(void **state)
{
    struct scene *scene = *state;
    struct link_client_options options = client_options(scene->port);
    struct peer peers[20] = {{0}};
    struct link *links[20];
    struct raw *silent, *asked;

    silent = raw_connect(&scene->loop, scene->port);
    asked = scene_challenged(scene, "agent");
    for (int i = 0; i < 20; i++)
        links[i] = dial(&scene->loop, &options, &peers[i]);
    assert_true(run_until_opened(&scene->loop, &scene->leader,
                                 4)); /* some are through, some are with munge */
    for (int i = 0; i < 20; i++) {
        if (i % 2)
            link_close(links[i], "in between");
    }
    link_server_destroy(scene->server);
    link_server_destroy(scene->server); /* once is enough, twice does no harm */
    assert_true(raw_ended(silent));
    assert_true(raw_ended(asked));
    scene->server = NULL;
    assert_true(run_until_closed(&scene->loop, &scene->good, 1));
    raw_close(silent);
    raw_close(asked);
    for (int i = 0; i < 20; i++) {
        if (!peers[i].closed)
            link_close(links[i], "at the end"); /* those that look for the leader again */
    }
    for (int i = 0; i < 20; i++) {
        assert_true(run_until_closed(&scene->loop, &peers[i], 1));
        peer_clear(&peers[i]);
    }
}

static void destroy_server(struct link *link, json_object *msg, void *arg)
{
    struct scene *scene = arg;

    (void)msg;
    link_server_destroy(scene->server);
    scene->server = NULL;
    link_close(link, "too late for another reason");
}

static void note_end(struct link *link, const char *why, void *arg)
{
    struct scene *scene = arg;

    (void)link;
    snprintf(scene->leader.why, sizeof(scene->leader.why), "%s", why);
    scene->leader.closed++;
}

static void ignore_open(struct link *link, void *arg)
{
    (void)link;
    (void)arg;
}

static void test_destroy_in_a_handler(void **state)
{
    struct scene *scene = *state;
    struct link_server_options options = {.job_id = JOB + 1,
                                          .munge_socket = munge_socket,
                                          .port_first = port_first,
                                          .port_last = port_last};
    const struct link_handlers handlers = {
        .open = ignore_open, .message = destroy_server, .closed = note_end};
    struct link_client_options client = client_options(0);
    struct link_server *first = scene->server;
    struct peer peer = {0};

    client.job_id = JOB + 1;
    scene->server = link_server_create(&scene->loop, &options, &handlers, scene, NULL);
    assert_non_null(scene->server);
    dial(&scene->loop, &client, &peer);
    assert_true(run_until_opened(&scene->loop, &peer, 1));
    for (int i = 0; i < 3; i++)
        link_send(peer.link, numbered(i, NULL));
    assert_true(run_until_closed(&scene->loop, &peer, 1));
    assert_true(run_until_closed(&scene->loop, &scene->leader, 1));
    assert_string_equal(scene->leader.why, "the leader ends");
    assert_null(scene->server);
    scene->server = first;
    scene->leader.closed = 0; /* that was not a link of the scene's leader */
    peer_clear(&peer);
}

/* An argument names the tests to run, with * and ?. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        scene_test(test_handshake),
        scene_test(test_no_descriptor_is_inherited),
        scene_test(test_control_and_name),
        scene_test(test_another_incarnation_is_refused),
        scene_test(test_leader_of_another_user_is_refused),
        scene_test(test_many_messages),
        scene_test(test_large_messages),
        scene_test(test_bytes_that_are_not_utf8),
        scene_test(test_too_large_is_not_sent),
        scene_test(test_close_delivers_what_was_sent),
        scene_test(test_close_in_a_handler),
        scene_test(test_close_does_not_wait_for_ever),
        scene_test(test_a_peer_that_does_not_read),
        scene_test(test_destroy_with_everything_under_way),
        scene_test(test_destroy_in_a_handler),
    };

    return scene_run(argc, argv, tests);
}

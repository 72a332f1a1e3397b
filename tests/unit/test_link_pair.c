/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Links over a socket pair, with a process of ours: messages both ways, the end of either side,
 * bytes that are no frames. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/link_fixture.h"

struct pair {
    uv_loop_t loop;
    struct peer ours, theirs;
    struct link *first, *second;
};

static int setup(void **state)
{
    struct pair *pair = calloc(1, sizeof(*pair));
    int ends[2];

    if (pair == NULL || uv_loop_init(&pair->loop) != 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return -1;
    pair->first = link_adopt(&pair->loop, ends[0], true, &peer_handlers, &pair->ours, NULL);
    pair->second = link_adopt(&pair->loop, ends[1], false, &peer_handlers, &pair->theirs, NULL);
    *state = pair;
    return pair->first != NULL && pair->second != NULL ? 0 : -1;
}

static int teardown(void **state)
{
    struct pair *pair = *state;
    bool clean = run_empty(&pair->loop);

    peer_clear(&pair->ours);
    peer_clear(&pair->theirs);
    free(pair);
    return clean ? 0 : -1;
}

static void close_first(struct pair *pair)
{
    link_close(pair->first, "enough");
    assert_true(run_until_closed(&pair->loop, &pair->ours, 1));
    assert_string_equal(pair->ours.why, "enough");
    assert_true(run_until_closed(&pair->loop, &pair->theirs, 1));
}

static void test_messages_both_ways(void **state)
{
    struct pair *pair = *state;

    pair->theirs.echo = true;
    for (int i = 0; i < 500; i++)
        assert_int_equal(link_send(pair->first, numbered(i, NULL)), 0);
    assert_true(run_until_messages(&pair->loop, &pair->ours, 500));
    assert_int_equal(pair->ours.disordered + pair->theirs.disordered, 0);
    assert_int_equal(pair->ours.opened + pair->theirs.opened, 0);
    close_first(pair);
}

static void test_what_was_sent_last_arrives(void **state)
{
    struct pair *pair = *state;
    char *pad = malloc(3000001);

    memset(pad, 'x', 3000000);
    pad[3000000] = '\0';
    assert_int_equal(link_send(pair->first, numbered(0, pad)), 0);
    close_first(pair);
    assert_int_equal(pair->theirs.messages, 1);
    free(pad);
}

/* Four MiB of empty objects would take a GiB of the one who reads them. */
static void test_objects_without_number(void **state)
{
    struct pair *pair = *state;
    json_object *msg = numbered(0, NULL), *list = json_object_new_array();

    for (int i = 0; i < LINK_CONTAINERS_MAX; i++)
        json_object_array_add(list, json_object_new_object());
    json_object_object_add(msg, "list", list);
    assert_int_equal(link_send(pair->first, msg), 0);
    assert_true(run_until_closed(&pair->loop, &pair->theirs, 1));
    assert_int_equal(pair->theirs.messages, 0);
    close_first(pair);
}

/* Those in strings are none. */
static void test_brackets_in_strings(void **state)
{
    struct pair *pair = *state;
    char *pad = malloc(LINK_CONTAINERS_MAX + 2);

    memset(pad, '{', LINK_CONTAINERS_MAX + 1);
    pad[LINK_CONTAINERS_MAX + 1] = '\0';
    pad[3] = '\'';
    pad[5] = '"';
    pad[7] = '\\';
    assert_int_equal(link_send(pair->first, numbered(0, pad)), 0);
    close_first(pair);
    assert_int_equal(pair->theirs.messages, 1);
    free(pad);
}

/* Nobody else has the other end, but it may have gone mad. */
static void test_bytes_that_are_no_frames(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
    } cases[] = {
        {"\xff\xff\xff\xff", 4},
        {"\0\0\0\x01x", 5},
        {"\0\0\0\x24"
         "0123456789abcdef0123456789abcdef{}\"\"",
         40}, /* no such code */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct peer peer = {0};
        uv_loop_t loop;
        int ends[2];

        uv_loop_init(&loop);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        assert_non_null(link_adopt(&loop, ends[0], true, &peer_handlers, &peer, NULL));
        assert_int_equal(write(ends[1], cases[i].bytes, cases[i].len), (ssize_t)cases[i].len);
        assert_true(run_until_closed(&loop, &peer, 1));
        assert_int_equal(peer.messages, 0);
        close(ends[1]);
        assert_true(run_empty(&loop));
        peer_clear(&peer);
    }
}

static void test_not_a_socket(void **state)
{
    struct error err = {""};
    struct peer peer = {0};
    uv_loop_t loop;

    (void)state;
    uv_loop_init(&loop);
    assert_null(link_adopt(&loop, -1, true, &peer_handlers, &peer, &err));
    assert_string_not_equal(err.text, "");
    assert_true(run_empty(&loop));
    assert_int_equal(peer.closed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_messages_both_ways, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_was_sent_last_arrives, setup, teardown),
        cmocka_unit_test_setup_teardown(test_objects_without_number, setup, teardown),
        cmocka_unit_test_setup_teardown(test_brackets_in_strings, setup, teardown),
        cmocka_unit_test(test_bytes_that_are_no_frames),
        cmocka_unit_test(test_not_a_socket),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

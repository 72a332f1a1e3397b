/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pmix/accept.c: whose is the other end of a connection, by real ones over the loopback
 * interface. */
#include "tests/unit/support.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/tcp_sockets.h"

#define NOBODY 65534

static struct sockaddr_in address;

static int listener(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t len = sizeof(address);

    address = (struct sockaddr_in){.sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    return fd;
}

static int connected(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    return -1;
}

/* A child of that user connects, and leaves when hold[1] is closed. */
static pid_t connected_child(uid_t uid, const int hold[2])
{
    pid_t pid = fork();
    char byte;

    if (pid != 0)
        return pid;
    close(hold[1]);
    if (setresuid(uid, uid, uid) != 0 || connected() < 0)
        _exit(1);
    _exit(read(hold[0], &byte, 1) == 0 ? 0 : 1);
}

static void own_connection_is_accepted(void **state)
{
    int listening = listener(), client = connected(), server;
    uid_t uid = (uid_t)-1;

    (void)state;
    assert_true(client >= 0);
    server = accept(listening, NULL, NULL); /* accept.c's */
    assert_true(server >= 0);
    assert_true(fcntl(server, F_GETFD) & FD_CLOEXEC);
    assert_true(tcp_peer_uid(server, &uid));
    assert_int_equal(uid, getuid());
    /* From its other end, too. */
    uid = (uid_t)-1;
    assert_true(tcp_peer_uid(client, &uid));
    assert_int_equal(uid, getuid());
    close(server);
    close(client);
    close(listening);
}

static void address_is_handed_on(void **state)
{
    int listening = listener(), client = connected(), server;
    struct sockaddr_in own, peer = {0};
    socklen_t own_len = sizeof(own), peer_len = sizeof(peer);

    (void)state;
    server = accept(listening, (struct sockaddr *)&peer, &peer_len);
    assert_true(server >= 0);
    assert_int_equal(getsockname(client, (struct sockaddr *)&own, &own_len), 0);
    assert_int_equal(peer.sin_port, own.sin_port);
    close(server);
    close(client);
    close(listening);
}

static void another_users_connection_is_closed(void **state)
{
    int listening = listener(), hold[2], mine, status;
    pid_t child;

    (void)state;
    if (getuid() != 0)
        skip();
    assert_int_equal(pipe(hold), 0);
    child = connected_child(NOBODY, hold);
    assert_true(child > 0);
    errno = 0;
    assert_int_equal(accept(listening, NULL, NULL), -1);
    assert_int_equal(errno, EAGAIN);
    /* The next one is not taken for it. */
    mine = connected();
    assert_true(mine >= 0);
    assert_true(accept(listening, NULL, NULL) >= 0);
    close(hold[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(close(hold[0]), 0);
    close(mine);
    close(listening);
}

/* Root is the user of the test here, and somebody else to the server there: this one is nobody. */
static void the_kernel_names_the_other_user(void **state)
{
    int listening = listener(), hold[2], status, server;
    uid_t uid = (uid_t)-1;
    pid_t child;

    (void)state;
    if (getuid() != 0)
        skip();
    assert_int_equal(pipe(hold), 0);
    child = connected_child(NOBODY, hold);
    assert_true(child > 0);
    server = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
    assert_true(server >= 0);
    assert_true(tcp_peer_uid(server, &uid));
    assert_int_equal(uid, NOBODY);
    close(hold[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    close(hold[0]);
    close(server);
    close(listening);
}

static void nothing_is_told_of_what_is_no_connection(void **state)
{
    int listening = listener(), pair[2];
    uid_t uid;

    (void)state;
    assert_false(tcp_peer_uid(listening, &uid));
    assert_false(tcp_peer_uid(-1, &uid));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_false(tcp_peer_uid(pair[0], &uid));
    close(pair[0]);
    close(pair[1]);
    close(listening);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_connection_is_accepted),
        cmocka_unit_test(address_is_handed_on),
        cmocka_unit_test(another_users_connection_is_closed),
        cmocka_unit_test(the_kernel_names_the_other_user),
        cmocka_unit_test(nothing_is_told_of_what_is_no_connection),
    };

    return cmocka_run_group_tests_name("pmix_accept", tests, NULL, NULL);
}

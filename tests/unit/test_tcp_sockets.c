/* SPDX-License-Identifier: GPL-2.0-or-later */
/* common/tcp_sockets: real sockets, with sock_diag and, as on a kernel that lacks it, by
 * /proc/net/tcp. */
#include "tests/unit/support.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/socket.h>

static bool no_netlink;

static int make_socket(int domain, int type, int protocol)
{
    if (domain == AF_NETLINK && no_netlink) {
        errno = EPROTONOSUPPORT;
        return -1;
    }
    return socket(domain, type, protocol);
}

#define socket(domain, type, protocol) make_socket(domain, type, protocol)
#include "common/tcp_sockets.c"
#undef socket

static int listener(int family, int *port)
{
    struct sockaddr_in6 address = {.sin6_family = (sa_family_t)family}; /* longer than the other */
    socklen_t len = sizeof(address);
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    if (family == AF_INET)
        ((struct sockaddr_in *)&address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else
        address.sin6_addr = in6addr_loopback;
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *port = ntohs(address.sin6_port); /* both have it at the same place */
    return fd;
}

static void listeners_are_seen(void **state)
{
    const int families[] = {AF_INET, AF_INET6};

    no_netlink = *state != NULL;
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        int port, fd = listener(families[i], &port);

        assert_false(tcp_listens(port));
        assert_int_equal(listen(fd, 5), 0);
        assert_true(tcp_listens(port));
        close(fd);
        assert_false(tcp_listens(port));
    }
}

/* More of them than one packet of the kernel's answer holds. */
static void each_of_many_listeners_is_seen(void **state)
{
    enum { COUNT = 300 };
    int ports[COUNT], fds[COUNT];

    no_netlink = *state != NULL;
    for (int i = 0; i < COUNT; i++) {
        fds[i] = listener(AF_INET, &ports[i]);
        assert_int_equal(listen(fds[i], 1), 0);
    }
    for (int i = 0; i < COUNT; i++)
        assert_true(tcp_listens(ports[i]));
    for (int i = 0; i < COUNT; i++)
        close(fds[i]);
}

static void ends_of_a_connection_are_ours(void **state)
{
    int port, listening = listener(AF_INET, &port), client = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    uid_t uid = (uid_t)-1;
    int server;

    no_netlink = *state != NULL;
    assert_int_equal(listen(listening, 5), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&address, sizeof(address)), 0);
    server = accept(listening, NULL, NULL);
    assert_true(server >= 0);
    assert_true(tcp_peer_uid(server, &uid));
    assert_int_equal(uid, getuid());
    uid = (uid_t)-1;
    assert_true(tcp_peer_uid(client, &uid));
    assert_int_equal(uid, getuid());
    assert_false(tcp_peer_uid(listening, &uid));
    assert_false(tcp_peer_uid(-1, &uid));
    close(server);
    close(client);
    close(listening);
}

int main(void)
{
    static char by_table[] = "by /proc/net/tcp";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listeners_are_seen),
        cmocka_unit_test(each_of_many_listeners_is_seen),
        cmocka_unit_test(ends_of_a_connection_are_ours),
        cmocka_unit_test_prestate(listeners_are_seen, by_table),
        cmocka_unit_test_prestate(ends_of_a_connection_are_ours, by_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

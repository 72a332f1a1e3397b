/* SPDX-License-Identifier: GPL-2.0-or-later */
/* common/tcp_sockets: real sockets, with sock_diag and, as on a kernel that lacks it, by
 * /proc/net/tcp. */
#include "tests/unit/support.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

static bool no_netlink;

static int make_socket(int domain, int type, int protocol)
{
    if (domain == AF_NETLINK && no_netlink) {
        errno = EPROTONOSUPPORT;
        return -1;
    }
    return socket(domain, type, protocol);
}

static int tables_read;

static FILE *open_table(const char *path, const char *mode)
{
    tables_read++;
    return fopen(path, mode);
}

/* The connection that a peer has reset since somebody asked who its ends are. */
static struct sockaddr_in6 gone_peer;

static int name_of_peer(int fd, struct sockaddr *address, socklen_t *len)
{
    if (gone_peer.sin6_port == 0)
        return getpeername(fd, address, len);
    memcpy(address, &gone_peer, sizeof(gone_peer));
    return 0;
}

#define socket(domain, type, protocol) make_socket(domain, type, protocol)
#define fopen(path, mode)              open_table(path, mode)
#define getpeername(fd, address, len)  name_of_peer(fd, address, len)
#include "common/tcp_sockets.c"
#undef socket
#undef fopen
#undef getpeername

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

/* At a port at which nobody listens, at other addresses neither, as another test may. */
static int lone_listener(int family, int *port)
{
    for (int i = 0; i < 20; i++) {
        int fd = listener(family, port);

        if (tcp_listener(*port) == TCP_NOBODY)
            return fd;
        close(fd);
    }
    fail_msg("somebody listens at each port");
    return -1;
}

static void listeners_are_seen(void **state)
{
    const int families[] = {AF_INET, AF_INET6};

    no_netlink = *state != NULL;
    for (size_t i = 0; i < COUNT(families); i++) {
        int port, fd = lone_listener(families[i], &port);

        assert_int_equal(listen(fd, 5), 0);
        assert_int_equal(tcp_listener(port), TCP_OURS);
        close(fd);
        assert_int_equal(tcp_listener(port), TCP_NOBODY);
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
        assert_int_equal(tcp_listener(ports[i]), TCP_OURS);
    for (int i = 0; i < COUNT; i++)
        close(fds[i]);
}

static int connect_to(int family, int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 address6 = {
        .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port), .sin6_addr = in6addr_loopback};
    int client = socket(family, SOCK_STREAM, 0);

    assert_true(client >= 0);
    assert_int_equal(family == AF_INET
                         ? connect(client, (struct sockaddr *)&address, sizeof(address))
                         : connect(client, (struct sockaddr *)&address6, sizeof(address6)),
                     0);
    return client;
}

/* Returns a socket that is connected to the listening one, which has not accepted it yet. */
static int connected(int *listening)
{
    int port;

    *listening = listener(AF_INET, &port);
    assert_int_equal(listen(*listening, 5), 0);
    return connect_to(AF_INET, port);
}

static void ends_of_a_connection_are_ours(void **state)
{
    int listening, server, client = connected(&listening);
    uid_t uid = (uid_t)-1;

    no_netlink = *state != NULL;
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

/* Any user can do that many times a second, and make the tables long. */
static void a_connection_that_was_reset_is_not_looked_for_in_tables(void **state)
{
    const struct linger at_once = {.l_onoff = 1};
    struct sockaddr_in6 peer = {.sin6_family = AF_INET6};
    socklen_t len = sizeof(peer);
    int listening, client = connected(&listening), server = accept(listening, NULL, NULL);
    uid_t uid;

    (void)state;
    no_netlink = false;
    assert_true(tcp_peer_uid(server, &uid));
    assert_int_equal(getpeername(server, (struct sockaddr *)&peer, &len), 0);
    setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(client);
    gone_peer = peer;
    tables_read = 0;
    assert_false(tcp_peer_uid(server, &uid));
    gone_peer.sin6_port = 0;
    assert_int_equal(tables_read, 0);
    close(server);
    close(listening);
}

/* As a leader's port: a socket of IPv6 that takes connections of both kinds. */
static void ends_at_a_socket_of_both_kinds_are_ours(void **state)
{
    const int families[] = {AF_INET, AF_INET6};
    struct sockaddr_in6 any = {.sin6_family = AF_INET6};
    socklen_t len = sizeof(any);
    int listening = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

    no_netlink = *state != NULL;
    if (listening < 0 || bind(listening, (struct sockaddr *)&any, len) != 0)
        skip();
    assert_int_equal(getsockname(listening, (struct sockaddr *)&any, &len), 0);
    assert_int_equal(listen(listening, 5), 0);
    for (size_t i = 0; i < COUNT(families); i++) {
        int client = connect_to(families[i], ntohs(any.sin6_port));
        int server = accept(listening, NULL, NULL);
        uid_t uid = (uid_t)-1;

        assert_true(server >= 0);
        assert_true(tcp_peer_uid(server, &uid));
        assert_int_equal(uid, getuid());
        uid = (uid_t)-1;
        assert_true(tcp_peer_uid(client, &uid));
        assert_int_equal(uid, getuid());
        close(client);
        assert_false(tcp_peer_uid(server, &uid));
        close(server);
    }
    close(listening);
}

/* The kernel tells root as the user of a socket that no process has any more. */
static void a_connection_closed_at_once_is_nobodys(void **state)
{
    int listening, server, client = connected(&listening);
    uid_t uid = (uid_t)-1;

    no_netlink = *state != NULL;
    assert_int_equal(send(client, "evil", 4, 0), 4);
    close(client);
    server = accept(listening, NULL, NULL);
    assert_true(server >= 0);
    assert_false(tcp_peer_uid(server, &uid));
    close(server);
    close(listening);
}

/* Another user binds the same port, which is only kept, and listens first. */
static void a_stranger_is_told_from_ourselves(void **state)
{
    struct sockaddr_in6 any = {.sin6_family = AF_INET6};
    socklen_t len = sizeof(any);
    int on = 1, kept, pipes[2];
    pid_t child;
    char ready;

    no_netlink = *state != NULL;
    if (getuid() != 0)
        skip();
    kept = socket(AF_INET6, SOCK_STREAM, 0);
    setsockopt(kept, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    assert_int_equal(bind(kept, (struct sockaddr *)&any, len), 0);
    assert_int_equal(getsockname(kept, (struct sockaddr *)&any, &len), 0);
    assert_int_equal(tcp_listener(ntohs(any.sin6_port)), TCP_NOBODY);
    assert_int_equal(pipe(pipes), 0);
    child = fork();
    if (child == 0) {
        int fd;

        if (setgid(65534) != 0 || setuid(65534) != 0)
            _exit(1);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* the test may fail */
        fd = socket(AF_INET6, SOCK_STREAM, 0);
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        if (bind(fd, (struct sockaddr *)&any, len) == 0 && listen(fd, 5) == 0 &&
            write(pipes[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    close(pipes[1]);
    assert_int_equal(read(pipes[0], &ready, 1), 1);
    assert_int_equal(tcp_listener(ntohs(any.sin6_port)), TCP_STRANGER);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(tcp_listener(ntohs(any.sin6_port)), TCP_NOBODY);
    close(pipes[0]);
    close(kept);
}

static struct sockaddr_in6 loopback(int family, int port)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};

    if (family == AF_INET)
        assert_int_equal(inet_pton(AF_INET6, "::ffff:127.0.0.1", &address.sin6_addr), 1);
    address.sin6_port = htons((uint16_t)port);
    return address;
}

static void who_listens_at_an_address(void **state)
{
    const int families[] = {AF_INET, AF_INET6};

    no_netlink = *state != NULL;
    for (size_t i = 0; i < COUNT(families); i++) {
        int port, fd = lone_listener(families[i], &port);
        struct sockaddr_in6 address = loopback(families[i], port);
        struct sockaddr_in6 other = loopback(families[1 - i], port);

        assert_int_equal(tcp_listener_at(&address), TCP_NOBODY);
        assert_int_equal(listen(fd, 5), 0);
        assert_int_equal(tcp_listener_at(&address), TCP_OURS);
        assert_int_equal(tcp_listener_at(&other), TCP_NOBODY);
        close(fd);
    }
}

/* It gets the connections that come by that device. The kernel names it to nobody who does not ask
 * for the device. */
static void a_listener_on_a_device_is_seen(void **state)
{
    static const char device[] = "lo";
    struct sockaddr_in6 address;
    int port, client, fd = lone_listener(AF_INET, &port);

    no_netlink = *state != NULL;
    address = loopback(AF_INET, port);
    if (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device, sizeof(device)) != 0)
        skip();
    assert_int_equal(listen(fd, 5), 0);
    client = connect_to(AF_INET, port);
    assert_int_equal(tcp_listener_at(&address), TCP_OURS);
    close(client);
    close(fd);
    assert_int_equal(tcp_listener_at(&address), TCP_NOBODY);
}

/* Who listens at other addresses of the port does not get the connections. */
static void a_stranger_elsewhere_does_not_count(void **state)
{
    struct sockaddr_in6 any = {.sin6_family = AF_INET6}, address;
    int port, fd = listener(AF_INET, &port), on = 1, pipes[2];
    pid_t child;
    char ready;

    no_netlink = *state != NULL;
    if (getuid() != 0)
        skip();
    assert_int_equal(listen(fd, 5), 0);
    address = loopback(AF_INET, port);
    any.sin6_port = address.sin6_port;
    assert_int_equal(pipe(pipes), 0);
    child = fork();
    if (child == 0) {
        int strange;

        if (setgid(65534) != 0 || setuid(65534) != 0)
            _exit(1);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* the test may fail */
        strange = socket(AF_INET6, SOCK_STREAM, 0);
        setsockopt(strange, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
        if (bind(strange, (struct sockaddr *)&any, sizeof(any)) == 0 && listen(strange, 5) == 0 &&
            write(pipes[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    close(pipes[1]);
    assert_int_equal(read(pipes[0], &ready, 1), 1);
    assert_int_equal(tcp_listener_at(&address), TCP_OURS);
    close(fd);
    address = loopback(AF_INET6, port);
    assert_int_equal(tcp_listener_at(&address), TCP_STRANGER);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(pipes[0]);
}

static void addresses_of_this_machine(void **state)
{
    static const struct {
        const char *text;
        bool local;
    } table[] = {{"::1", true},          {"::ffff:127.0.0.1", true}, {"::ffff:127.9.9.9", true},
                 {"::", true},           {"::ffff:0.0.0.0", true},   {"::ffff:203.0.113.7", false},
                 {"2001:db8::1", false}, {"::ffff:128.0.0.1", false}};

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct in6_addr address;

        assert_int_equal(inet_pton(AF_INET6, table[i].text, &address), 1);
        assert_int_equal(tcp_is_local(&address), table[i].local);
    }
}

static void a_long_question_is_asked_seldom(void **state)
{
    (void)state;
    assert_int_equal(tcp_pause(0, 5), 5);
    assert_int_equal(tcp_pause(999999, 5), 5);
    assert_int_equal(tcp_pause(1000000, 5), 19);
    assert_int_equal(tcp_pause(100000000, 1000), 1900);
    assert_int_equal(tcp_pause(52000000, 1000), 1000);
}

int main(void)
{
    static char by_table[] = "by /proc/net/tcp";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listeners_are_seen),
        cmocka_unit_test(each_of_many_listeners_is_seen),
        cmocka_unit_test(ends_of_a_connection_are_ours),
        cmocka_unit_test(a_connection_that_was_reset_is_not_looked_for_in_tables),
        cmocka_unit_test(ends_at_a_socket_of_both_kinds_are_ours),
        cmocka_unit_test(a_connection_closed_at_once_is_nobodys),
        cmocka_unit_test(a_stranger_is_told_from_ourselves),
        cmocka_unit_test(who_listens_at_an_address),
        cmocka_unit_test(a_listener_on_a_device_is_seen),
        cmocka_unit_test(a_stranger_elsewhere_does_not_count),
        cmocka_unit_test(addresses_of_this_machine),
        cmocka_unit_test(a_long_question_is_asked_seldom),
        cmocka_unit_test_prestate(listeners_are_seen, by_table),
        cmocka_unit_test_prestate(who_listens_at_an_address, by_table),
        cmocka_unit_test_prestate(ends_of_a_connection_are_ours, by_table),
        cmocka_unit_test_prestate(ends_at_a_socket_of_both_kinds_are_ours, by_table),
        cmocka_unit_test_prestate(a_connection_closed_at_once_is_nobodys, by_table),
        cmocka_unit_test_prestate(a_stranger_is_told_from_ourselves, by_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

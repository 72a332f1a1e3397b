/* SPDX-License-Identifier: GPL-2.0-or-later */
/* agent/port: kept for rank 0, which can listen on it all the same. */
#include <netinet/in.h>
#include <sched.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/port.h"
#include "common/tcp_sockets.h"
#include "tests/unit/own_network.h"
#include "tests/unit/support.h"

static int bind_to(int port, int reuse)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
    if (bind(fd, (struct sockaddr *)&any, sizeof(any)) == 0)
        return fd;
    close(fd);
    return -1;
}

static void test_a_reserved_port_is_for_who_listens(void **state)
{
    struct error err = {""};
    int port = 0, reserved = port_reserve(&port, &err), fd;

    (void)state;
    assert_true(reserved >= 0);
    assert_in_range(port, 1024, 65535);
    assert_int_equal(tcp_listener(port), TCP_NOBODY);
    assert_int_equal(bind_to(port, 0), -1); /* who just takes a free port does not get it */
    fd = bind_to(port, 1);
    assert_true(fd >= 0);
    assert_int_equal(tcp_listener(port), TCP_NOBODY);
    assert_int_equal(listen(fd, 5), 0);
    assert_int_equal(tcp_listener(port), TCP_OURS);
    close(fd);
    assert_int_equal(tcp_listener(port), TCP_NOBODY);
    close(reserved);
}

/* Nobody else gets it, at any address. */
static void test_a_port_of_this_machine(void **state)
{
    struct error err = {""};
    int port = 0, fd = port_listen(&port, &err);
    struct sockaddr_in own;
    socklen_t size = sizeof(own);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &size), 0);
    assert_int_equal(own.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    assert_int_equal(ntohs(own.sin_port), port);
    assert_int_equal(tcp_listener(port), TCP_OURS);
    assert_int_equal(bind_to(port, 1), -1);
    close(fd);
}

static void test_each_gets_its_own(void **state)
{
    struct error err = {""};
    int one = 0, two = 0, first = port_reserve(&one, &err), second = port_reserve(&two, &err);

    (void)state;
    assert_true(first >= 0 && second >= 0);
    assert_int_not_equal(one, two);
    close(first);
    close(second);
}

static void test_ports_outside_the_kernels_range(void **state)
{
    static const struct {
        int low, high, below, above; /* how many ports there are */
    } cases[] = {
        {32768, 60999, 16384, 4536}, {1024, 65535, 0, 0},  {1024, 60999, 0, 4536},
        {32768, 65535, 16384, 0},    {16385, 65534, 1, 1}, {60999, 32768, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int below = cases[i].below, all = below + cases[i].above;

        if (all == 0)
            assert_int_equal(port_outside(cases[i].low, cases[i].high, 7), 0);
        for (int k = 0; k < 2 * all; k++)
            assert_int_equal(port_outside(cases[i].low, cases[i].high, (uint32_t)k),
                             k % all < below ? 16384 + k % all
                                             : cases[i].high + 1 + k % all - below);
    }
}

static void test_reserved_ports_are_outside(void **state)
{
    FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
    struct error err = {""};
    int low, high;

    (void)state;
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d %d", &low, &high), 2);
    fclose(file);
    if (port_outside(low, high, 0) == 0)
        skip();
    for (int i = 0; i < 20; i++) {
        int port = 0, fd = port_reserve(&port, &err);

        assert_true(fd >= 0);
        assert_true(port < low || port > high);
        close(fd);
    }
}

/* A program that does not set SO_REUSEADDR can bind it, at any address and while it is held. */
static void test_a_held_port_can_be_bound(void **state)
{
    struct error err = {""};
    int port = 0, fd = port_hold(&port, &err);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int program = socket(AF_INET, SOCK_STREAM, 0);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(bind(program, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(program, 1), 0);
    close(program);
    close(fd);
}

/* More of them than chance would keep apart. */
static void test_held_ports_differ(void **state)
{
    enum { HELD = 500 };
    static bool seen[65536];
    static int fds[HELD];
    struct error err = {""};
    int port = 0;

    (void)state;
    for (int i = 0; i < HELD; i++) {
        fds[i] = port_hold(&port, &err);
        assert_true(fds[i] >= 0);
        assert_false(seen[port]);
        seen[port] = true;
    }
    for (int i = 0; i < HELD; i++)
        close(fds[i]);
}

/* Also beside others, and where somebody has a port in the middle. */
static void test_blocks(void **state)
{
    enum { BLOCKS = 100, PORTS = 5 };
    static bool seen[65536 + PORTS];
    static int fds[BLOCKS][PORTS];
    struct error err = {""};
    int first = 0;

    (void)state;
    for (int i = 0; i < BLOCKS; i++) {
        assert_int_equal(port_hold_block(PORTS, &first, fds[i], &err), 0);
        assert_true(first + PORTS - 1 <= 65535);
        for (int k = 0; k < PORTS; k++) {
            assert_false(seen[first + k]);
            seen[first + k] = true;
        }
    }
    for (int i = 0; i < BLOCKS; i++)
        for (int k = 0; k < PORTS; k++)
            close(fds[i][k]);
}

enum outcome { HELD, NOT_HELD, CANNOT };

#define FREE_FIRST 65001 /* the kernel's range leaves these ports, to 65535 */

static bool is_alone(void)
{
    FILE *file;

    if (unshare(geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET) != 0)
        return false;
    file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "we");
    return file != NULL && fprintf(file, "1024 %d", FREE_FIRST - 1) > 0 && fclose(file) == 0;
}

/* In a network of its own, where the names of all its ports are taken. */
static enum outcome hold_without_names(void)
{
    struct error err = {""};
    int port = 0, block[3];

    if (!is_alone())
        return CANNOT;
    for (int i = FREE_FIRST; i <= 65535; i++) {
        struct sockaddr_un name = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        int len = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "elastic-port-%d", i);

        len += (int)offsetof(struct sockaddr_un, sun_path) + 1;
        if (bind(fd, (struct sockaddr *)&name, (socklen_t)len) != 0)
            return CANNOT;
    }
    if (port_hold(&port, &err) < 0 || port < FREE_FIRST || bind_to(port, 0) < 0 ||
        port_hold_block(3, &port, block, &err) != 0 || bind_to(port + 2, 0) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return NOT_HELD;
    }
    return HELD;
}

/* Any user can have them all. */
static void test_the_names_of_all_ports_are_taken(void **state)
{
    int status;
    pid_t child = fork();

    (void)state;
    if (child == 0)
        _exit((int)hold_without_names());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == CANNOT)
        skip(); /* it gets no network namespace */
    assert_int_equal(WEXITSTATUS(status), HELD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_reserved_port_is_for_who_listens),
        cmocka_unit_test(test_a_port_of_this_machine),
        cmocka_unit_test(test_each_gets_its_own),
        cmocka_unit_test(test_a_held_port_can_be_bound),
        cmocka_unit_test(test_held_ports_differ),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_the_names_of_all_ports_are_taken),
        cmocka_unit_test(test_ports_outside_the_kernels_range),
        cmocka_unit_test(test_reserved_ports_are_outside),
    };

    own_network();
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* agent/member/replica_ports: when a task ends for a stranger at one of its ports, and when not. */
#include "agent/member/replica_ports.c"

#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/unit/support.h"

#define ADDRESS "192.0.2.1"
#define PORT    4711

/* Who listens at the node's address, and who at any other. */
static enum tcp_listener outside, inside;
static int looked_at = PORT;

enum tcp_listener tcp_listener(int port)
{
    assert_int_equal(port, looked_at);
    if (outside == TCP_STRANGER || inside == TCP_STRANGER)
        return TCP_STRANGER;
    return outside == TCP_OURS || inside == TCP_OURS ? TCP_OURS : TCP_NOBODY;
}

enum tcp_listener tcp_listener_at(const struct sockaddr_in6 *address)
{
    assert_int_equal(ntohs(address->sin6_port), PORT);
    return outside;
}

bool tcp_to_ipv6(struct sockaddr_in6 *address)
{
    (void)address;
    return true;
}

/* What follows when a stranger comes to the node's address, where the task has listened before at
 * these. */
static int stranger_comes(enum tcp_listener at_address, enum tcp_listener elsewhere, bool *withheld)
{
    struct replica_ports *ports = replica_ports_fixed(PORT, NULL);
    bool changed;
    int given_up;

    assert_non_null(ports);
    outside = at_address;
    inside = elsewhere;
    assert_int_equal(replica_ports_look(ports, 0, ADDRESS, PORT, &changed), 0); /* not ready yet */
    assert_int_equal(replica_ports_look(ports, 0, ADDRESS, 0, &changed), 0);
    outside = TCP_STRANGER;
    given_up = replica_ports_look(ports, 0, ADDRESS, 0, &changed);
    *withheld = ports->withheld[0];
    replica_ports_destroy(ports);
    outside = inside = TCP_NOBODY;
    return given_up;
}

static void test_strangers(void **state)
{
    bool withheld;

    (void)state;
    assert_int_equal(stranger_comes(TCP_OURS, TCP_OURS, &withheld), PORT);
    assert_int_equal(stranger_comes(TCP_OURS, TCP_NOBODY, &withheld), PORT);
    /* On loopback nobody asks it at the node's address. */
    assert_int_equal(stranger_comes(TCP_NOBODY, TCP_OURS, &withheld), 0);
    assert_true(withheld);
}

/* A port that another process has bound, and at which nobody listens. */
static void test_bound_only(void **state)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    struct replica_ports *ports;

    (void)state;
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, len) != 0)
        skip();
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    looked_at = ntohs(address.sin6_port);
    ports = replica_ports_fixed(looked_at, NULL);
    assert_non_null(ports);
    assert_int_equal(replica_ports_in_the_way(ports, 0), looked_at);
    outside = TCP_OURS; /* it is a process that the task has left */
    assert_int_equal(replica_ports_in_the_way(ports, 0), 0);
    outside = TCP_STRANGER;
    assert_int_equal(replica_ports_in_the_way(ports, 0), looked_at);
    outside = TCP_NOBODY;
    close(fd);
    assert_int_equal(replica_ports_in_the_way(ports, 0), 0);
    replica_ports_destroy(ports);
    looked_at = PORT;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_strangers),
                                       cmocka_unit_test(test_bound_only)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}

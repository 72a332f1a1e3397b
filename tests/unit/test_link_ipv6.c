/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A leader is found by IPv6 as well. Needs a host that has it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>
#include <netinet/in.h>

#include "tests/unit/link_fixture.h"

static bool host_has_ipv6(void)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool has = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;

    if (fd >= 0)
        close(fd);
    return has;
}

static void test_ipv6(void **state)
{
    struct scene *scene = *state;
    struct link_client_options options = client_options(scene->port);
    struct peer peer = {0};

    options.address = "::1";
    dial(&scene->loop, &options, &peer);
    assert_true(run_until_opened(&scene->loop, &peer, 1));
    assert_true(run_until_opened(&scene->loop, &scene->leader, 2));
    assert_string_equal(link_peer_address(scene->leader.link), "::1");
    assert_string_equal(link_peer_address(peer.link), "::1");
    link_close(peer.link, "enough");
    assert_true(run_until_closed(&scene->loop, &peer, 1));
    assert_true(run_until_closed(&scene->loop, &scene->leader, 1));
    peer_clear(&peer);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        scene_test(test_ipv6),
    };

    if (!host_has_ipv6()) {
        printf("1..0 # SKIP this host has no IPv6\n");
        return 0;
    }
    return scene_run(argc, argv, tests);
}

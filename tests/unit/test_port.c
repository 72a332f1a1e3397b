/* SPDX-License-Identifier: GPL-2.0-or-later */
/* agent/port: kept for rank 0, which can listen on it all the same. */
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/port.h"
#include "common/tcp_sockets.h"
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
    assert_false(tcp_listens(port));
    assert_int_equal(bind_to(port, 0), -1); /* who just takes a free port does not get it */
    fd = bind_to(port, 1);
    assert_true(fd >= 0);
    assert_false(tcp_listens(port));
    assert_int_equal(listen(fd, 5), 0);
    assert_true(tcp_listens(port));
    close(fd);
    assert_false(tcp_listens(port));
    close(reserved);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_reserved_port_is_for_who_listens),
        cmocka_unit_test(test_each_gets_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

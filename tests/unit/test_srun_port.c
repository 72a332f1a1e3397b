/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether srun listens is found out without a connection that srun would complain of. */
#include "tests/unit/support.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/srun_port.h"

static int listen_somewhere(char *port, size_t size)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    snprintf(port, size, "%d", ntohs(address.sin_port));
    return fd;
}

static void test_nobody_sees_the_look(void **state)
{
    char port[8];
    int fd = listen_somewhere(port, sizeof(port));
    struct pollfd seen = {.fd = fd, .events = POLLIN};

    (void)state;
    for (int i = 0; i < 20; i++)
        assert_true(srun_port_answers("127.0.0.1", port));
    assert_int_equal(poll(&seen, 1, 500), 0); /* longer than the kernel holds a packet back */
    close(fd);
    assert_false(srun_port_answers("127.0.0.1", port));
}

static void test_what_is_not_known(void **state)
{
    (void)state;
    assert_true(srun_port_answers(NULL, "1"));
    assert_true(srun_port_answers("127.0.0.1", NULL));
    assert_true(srun_port_answers("no such host", "1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_sees_the_look),
        cmocka_unit_test(test_what_is_not_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whom fit/server_call asks: another user who comes to listen on the port at the last moment gets
 * nothing. What a server answers is in tests/system/fit_roles.bats. */
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/tcp_sockets.h"
#include "fit/server_call.h"
#include "tests/unit/support.h"

static bool is_other;     /* this process is another user's than who listens */
static bool comes_late;   /* … and is not there yet when it is looked for first */
static bool accepts;      /* it does so at once */
static int listener, got; /* got: bytes */

uid_t __real_getuid(void);
uid_t __wrap_getuid(void);
enum tcp_listener __real_tcp_listener_at(const struct sockaddr_in6 *address);
enum tcp_listener __wrap_tcp_listener_at(const struct sockaddr_in6 *address);

uid_t __wrap_getuid(void)
{
    return __real_getuid() + (is_other ? 1 : 0);
}

enum tcp_listener __wrap_tcp_listener_at(const struct sockaddr_in6 *address)
{
    bool late = comes_late;

    comes_late = false;
    return late ? TCP_NOBODY : __real_tcp_listener_at(address);
}

/* Until the connection ends, or was answered. */
static void *serve(void *arg)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    int fd = accept(listener, NULL, NULL);
    char request[4096];

    (void)arg;
    got = (int)recv(fd, request, sizeof(request), 0);
    if (got > 0)
        assert_int_equal(send(fd, answer, strlen(answer), MSG_NOSIGNAL), strlen(answer));
    close(fd);
    return NULL;
}

/* It should have said long ago that it does not ask. */
static bool is_long(void *arg)
{
    return time(NULL) > *(time_t *)arg + 5;
}

static enum fit_call call(struct error *why)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    time_t began = time(NULL);
    struct server_call order = {.path = "/fit", .body = "{}", .unwanted = is_long, .arg = &began};
    enum fit_call judged;
    pthread_t thread = 0;

    got = 0;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &len), 0);
    order.port = ntohs(address.sin_port);
    if (accepts)
        assert_int_equal(pthread_create(&thread, NULL, serve, NULL), 0);
    judged = server_call(&order, why);
    if (!accepts)
        serve(NULL);
    else
        pthread_join(thread, NULL);
    close(listener);
    return judged;
}

static void test_own_server(void **state)
{
    struct error why = {""};

    (void)state;
    is_other = comes_late = false;
    accepts = true;
    assert_int_equal(call(&why), FIT_CALL_DONE);
    assert_true(got > 0);
}

static void test_stranger_at_the_last_moment(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct error why = {""};

        is_other = comes_late = true;
        accepts = i == 1;
        assert_int_equal(call(&why), FIT_CALL_FAILED);
        assert_non_null(strstr(why.text, "another user's program listens on port"));
        assert_true(got <= 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_server),
        cmocka_unit_test(test_stranger_at_the_last_moment),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

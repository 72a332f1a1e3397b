/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/callers: who has called, and how many places a caller may have. */
#include "lib/callers.h"

#include <arpa/inet.h>

#include "tests/unit/support.h"

#define OWN 1000

static struct caller call(const char *own, const char *peer, int64_t uid)
{
    uint8_t own_address[16], peer_address[16];
    uint32_t known = (uint32_t)uid;

    assert_int_equal(inet_pton(AF_INET6, own, own_address), 1);
    assert_int_equal(inet_pton(AF_INET6, peer, peer_address), 1);
    return caller_of(own_address, peer_address, uid < 0 ? NULL : &known, OWN);
}

static void test_kinds(void **state)
{
    (void)state;
    assert_int_equal(call("::ffff:127.0.0.1", "::ffff:127.0.0.1", OWN).kind, CALLER_OWN);
    assert_int_equal(call("::ffff:127.0.0.1", "::ffff:127.0.0.1", 0).kind, CALLER_OWN);
    assert_int_equal(call("::ffff:127.0.0.1", "::ffff:127.0.0.1", 1001).kind, CALLER_USER);
    assert_int_equal(call("::ffff:10.0.0.1", "::ffff:10.0.0.2", -1).kind, CALLER_HOST);
    assert_int_equal(call("fd00::1", "fd00::2", -1).kind, CALLER_HOST);
    /* Of a node with two addresses. */
    assert_int_equal(call("fd00::1", "fd00::2", 1001).kind, CALLER_USER);
}

/* Each of sixteen million addresses of the loopback interface would be a host of its own. */
static void test_closed_on_this_node(void **state)
{
    (void)state;
    assert_int_equal(call("::ffff:127.0.0.1", "::ffff:127.1.2.3", -1).kind, CALLER_NOBODY);
    assert_int_equal(call("::1", "::1", -1).kind, CALLER_NOBODY);
    assert_int_equal(call("::ffff:10.0.0.1", "::ffff:10.0.0.1", -1).kind, CALLER_NOBODY);
    assert_int_equal(call("fd00::1", "fd00::1", -1).kind, CALLER_NOBODY);
    assert_int_equal(call("::ffff:10.0.0.1", "::ffff:128.0.0.1", -1).kind, CALLER_HOST);
}

static void test_who_is_the_same(void **state)
{
    struct caller one = call("::ffff:127.0.0.1", "::ffff:127.0.0.1", 1001);
    struct caller same = call("::ffff:127.0.0.1", "::ffff:127.0.0.2", 1001);
    struct caller other = call("::ffff:127.0.0.1", "::ffff:127.0.0.1", 1002);
    struct caller host = call("::ffff:10.0.0.1", "::ffff:10.0.0.2", -1);
    struct caller neighbour = call("::ffff:10.0.0.1", "::ffff:10.0.0.3", -1);

    (void)state;
    assert_true(caller_is_same(&one, &same));
    assert_false(caller_is_same(&one, &other));
    assert_false(caller_is_same(&one, &host));
    assert_true(caller_is_same(&host, &host));
    assert_false(caller_is_same(&host, &neighbour));
}

static void test_shares(void **state)
{
    struct caller own = {.kind = CALLER_OWN}, user = {.kind = CALLER_USER};
    struct caller host = {.kind = CALLER_HOST}, nobody = {.kind = CALLER_NOBODY};

    (void)state;
    assert_true(caller_may_have(&own, 1000));
    assert_true(caller_may_have(&user, CALLERS_OF_USER - 1));
    assert_false(caller_may_have(&user, CALLERS_OF_USER));
    assert_true(caller_may_have(&host, CALLERS_OF_HOST - 1));
    assert_false(caller_may_have(&host, CALLERS_OF_HOST));
    assert_false(caller_may_have(&nobody, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_closed_on_this_node),
        cmocka_unit_test(test_who_is_the_same),
        cmocka_unit_test(test_shares),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

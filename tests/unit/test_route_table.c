/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What elastic-router reads: lib/route_table, lib/leader_place, lib/route_tokens, and its command
 * line. */
#include "lib/leader_place.h"
#include "lib/route_table.h"
#include "lib/route_tokens.h"
#include "router/router_arguments.h"
#include "tests/unit/support.h"

/* ---- the table ------------------------------------------------------------------------------- */

#define HEAD "{\"service\":\"adapters\",\"job\":\"123\",\"term\":3,\"revision\":41,\"epoch\":57,"
#define BY   "\"route-by\":{\"json\":\"$.model\"},"
#define REPLICA                                                                                    \
    "{\"name\":\"shard_1.0\",\"address\":\"10.0.0.1\",\"port\":23451,\"state\":\"ready\"}"
#define SHARD(replicas)                                                                            \
    "{\"name\":\"shard_1\",\"check\":\"/v2/health/ready\",\"replicas\":[" replicas "]}"
#define ROUTE                           "{\"key\":\"tenant_A\",\"shard\":\"shard_1\"}"
#define TABLE(head, by, shards, routes) head by "\"shards\":[" shards "],\"routes\":[" routes "]}"

static void test_table(void **state)
{
    static const char text[] = TABLE(
        HEAD "\"later\":[1],", BY,
        "{\"name\":\"shard_12\",\"check\":\"/\",\"replicas\":[]}," SHARD(
            REPLICA ",{\"name\":\"b\",\"address\":\"fd00::2\",\"port\":1,\"state\":"
                    "\"draining\",\"later\":1}"),
        "{\"key\":\"tenant_B\",\"shard\":\"shard_12\"}," ROUTE);
    struct error err = {""};
    struct route_table *table = route_table_parse(text, strlen(text), &err), *again;
    char name[ROUTE_SERVER_NAME], address[ROUTE_ADDRESS];
    json_object *json;
    int port;

    (void)state;
    assert_string_equal(err.text, "");
    assert_string_equal(table->service, "adapters");
    assert_int_equal(table->term, 3);
    assert_int_equal(table->revision, 41);
    assert_int_equal(table->epoch, 57);
    assert_int_equal(table->by, HAPROXY_JSON);
    assert_int_equal(table->shards[0].number, 1); /* in order */
    assert_int_equal(table->shards[1].number, 12);
    assert_true(table->shards[0].replicas[1].draining);
    assert_string_equal(table->routes[0].key, "tenant_A");
    assert_int_equal(table->routes[1].shard, 12);
    assert_non_null(route_table_shard(table, 12));
    assert_null(route_table_shard(table, 2));

    assert_string_equal(route_server_name(&table->shards[0].replicas[0], name),
                        "shard_1.0-10.0.0.1-23451");
    assert_string_equal(route_server_name(&table->shards[0].replicas[1], name), "b-fd00__2-1");
    assert_true(route_server_address(name, address, &port));
    assert_string_equal(address, "fd00::2");
    assert_int_equal(port, 1);
    assert_false(route_server_address("b-10.0.0.1", address, &port));
    assert_false(route_server_address("-10.0.0.1-1", address, &port));
    assert_false(route_server_address("b-host-1", address, &port));
    assert_false(route_server_address("b-10.0.0.1-0", address, &port));

    json = route_table_json(table);
    again = route_table_read(json, &err);
    assert_non_null(again);
    assert_false(route_table_follows(again, table));
    assert_true(route_table_follows(again, NULL));
    again->revision++;
    assert_true(route_table_follows(again, table));
    again->term = 2;
    assert_false(route_table_follows(again, table));
    again->term = 4;
    again->revision = 1;
    assert_true(route_table_follows(again, table));
    route_table_destroy(route_table_share(again));
    route_table_destroy(again);
    route_table_destroy(table);
    json_object_put(json);
}

/* Keys that go nowhere are among the routes, and come back. */
static void test_asleep(void **state)
{
    static const struct {
        const char *asleep, *why;
    } cases[] = {
        {"[\"tenant_B\",\"a\"]", ""},
        {"[]", ""},
        {"[\"tenant_A\"]", "key tenant_A is there twice"},
        {"[\"../a\"]", "'../a' is no key of a model"},
        {"[7]", "'(none)' is no key of a model"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[1024];
        struct error err = {""};
        struct route_table *table;

        snprintf(text, sizeof(text),
                 HEAD BY "\"asleep\":%s,\"shards\":[" SHARD(REPLICA) "],"
                                                                     "\"routes\":[" ROUTE "]}",
                 cases[i].asleep);
        table = route_table_parse(text, strlen(text), &err);
        assert_string_equal(err.text, cases[i].why);
        if (table != NULL) {
            json_object *json = route_table_json(table), *said = NULL;

            assert_true(table->on_demand);
            assert_true(json_object_object_get_ex(json, "asleep", &said));
            assert_int_equal(table->route_count, 1 + json_object_array_length(said));
            assert_int_equal(table->routes[0].shard, i == 0 ? 0 : 1);
            json_object_put(json);
        }
        route_table_destroy(table);
    }
}

static void test_route_by(void **state)
{
    static const struct {
        const char *by;
        enum haproxy_key kind;
        const char *what;
    } cases[] = {
        {"{\"header\":\"X-Tenant\"}", HAPROXY_HEADER, "X-Tenant"},
        {"{\"path\":\"^/v2/models/([^/]+)\"}", HAPROXY_PATH, "/v2/models/"},
        {"{\"json\":\"$.model\"}", HAPROXY_JSON, "$.model"},
        {"{\"path\":\"/v2/models/([^/]+)\"}", 0, NULL},
        {"{\"path\":\"^/v2/models/(.*)\"}", 0, NULL},
        {"{\"path\":\"^/v2/(a|b)/([^/]+)\"}", 0, NULL},
        {"{\"path\":\"^([^/]+)\"}", 0, NULL},
        {"{\"header\":\"X Tenant\"}", 0, NULL},
        {"{\"json\":\"model\"}", 0, NULL},
        {"{\"json\":\"$.a'\"}", 0, NULL},
        {"{\"json\":\"$.model\",\"header\":\"X\"}", 0, NULL},
        {"{}", 0, NULL},
        {"7", 0, NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[512];
        struct error err = {""};
        struct route_table *table;

        snprintf(text, sizeof(text), HEAD "\"route-by\":%s,\"shards\":[],\"routes\":[]}",
                 cases[i].by);
        table = route_table_parse(text, strlen(text), &err);
        if ((table != NULL) != (cases[i].what != NULL))
            fail_msg("%s: %s", cases[i].by, err.text);
        if (table != NULL) {
            assert_int_equal(table->by, cases[i].kind);
            assert_string_equal(table->what, cases[i].what);
        } else {
            assert_one_line(err.text);
        }
        route_table_destroy(table);
    }
}

static void test_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "there is nothing in it"},
        {"[]", ""},
        {"{\"service\":\"../x\"}", "is no name of a service"},
        {"{\"service\":\"s\",\"job\":\"1;rm\"}", "is no job"},
        {"{\"service\":\"s\",\"job\":\"1\",\"term\":-1,\"revision\":1,\"epoch\":1}", "numbers"},
        {"{\"service\":\"s\",\"job\":\"1\",\"term\":1,\"revision\":\"1\",\"epoch\":1}", "numbers"},
        {HEAD BY "\"routes\":[]}", "no list of at most 10000 shards"},
        {HEAD BY "\"shards\":[]}", "no list of at most 100000 routes"},
        {TABLE(HEAD, BY, "{\"name\":\"shard_0\"}", ""), "'shard_0' is no shard"},
        {TABLE(HEAD, BY, "{\"name\":\"shard_01\"}", ""), "is no shard"},
        {TABLE(HEAD, BY, "{\"name\":\"shard_10001\"}", ""), "is no shard"},
        {TABLE(HEAD, BY, "{\"name\":\"shard_1\",\"check\":\"ready\",\"replicas\":[]}", ""),
         "has no check"},
        {TABLE(HEAD, BY, "{\"name\":\"shard_1\",\"check\":\"/a b\",\"replicas\":[]}", ""),
         "has no check"},
        {TABLE(HEAD, BY, "{\"name\":\"shard_1\",\"check\":\"/\",\"replicas\":7}", ""),
         "no list of at most"},
        {TABLE(HEAD, BY, SHARD("{}"), ""), "is no name of a replica"},
        {TABLE(HEAD, BY, SHARD("{\"name\":\"a\",\"address\":\"host\"}"), ""),
         "no address that is a number"},
        {TABLE(HEAD, BY, SHARD("{\"name\":\"a\",\"address\":\"::1\",\"port\":0}"), ""),
         "no port from 1 to 65535"},
        {TABLE(HEAD, BY, SHARD("{\"name\":\"a\",\"address\":\"::1\",\"port\":1,\"state\":\"up\"}"),
               ""),
         "neither ready nor draining"},
        {TABLE(HEAD, BY, SHARD(REPLICA "," REPLICA), ""), "replica shard_1.0 is there twice"},
        {TABLE(HEAD, BY, SHARD("") "," SHARD(""), ""), "shard_1 is there twice"},
        {TABLE(HEAD, BY, SHARD(""), ROUTE "," ROUTE), "key tenant_A is there twice"},
        {TABLE(HEAD, BY, "", ROUTE), "which is no shard of the table"},
        {TABLE(HEAD, BY, SHARD(""), "{\"key\":\"a b\",\"shard\":\"shard_1\"}"), "is no key"},
        {TABLE(HEAD, BY, SHARD(""), "{\"key\":\"a\\nb\",\"shard\":\"shard_1\"}"), "is no key"},
        {TABLE(HEAD, BY, SHARD(""), "{\"shard\":\"shard_1\"}"), "is no key"},
        {TABLE(HEAD, BY, SHARD(""), "null"), "is no key"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct error err = {""};

        if (route_table_parse(cases[i].text, strlen(cases[i].text), &err) != NULL)
            fail_msg("accepted: %s", cases[i].text);
        assert_one_line(err.text);
        if (strstr(err.text, cases[i].why) == NULL)
            fail_msg("'%s' does not say '%s'", err.text, cases[i].why);
    }
}

/* ---- leader.json ----------------------------------------------------------------------------- */

static void test_place(void **state)
{
    static const char *const refused[] = {
        "",
        "{}",
        "{\"job\":0,\"restarts\":0,\"term\":1,\"addresses\":[\"n\"]}",
        "{\"job\":1,\"restarts\":0,\"term\":1,\"addresses\":[]}",
        "{\"job\":1,\"restarts\":0,\"term\":1,\"addresses\":[\"a b\"]}",
        "{\"job\":1,\"restarts\":0,\"term\":1,\"addresses\":[\"-a\"]}",
        "{\"job\":1,\"restarts\":0,\"term\":1,\"addresses\":[\"n\"],\"port\":0}",
        "{\"job\":1,\"restarts\":0,\"term\":1,\"addresses\":[\"n\"],\"state-dir\":\"x\"}",
        "{\"job\":1,\"restarts\":0,\"term\":1,\"addresses\":\"n\"}",
    };
    static const char good[] =
        "{\"job\":7,\"restarts\":1,\"term\":3,\"addresses\":[\"n1\",\"::1\"],"
        "\"port\":4000,\"state-dir\":\"/s\"}";
    static const char plain[] =
        "{\"job\":7,\"restarts\":1,\"term\":3,\"addresses\":[\"n1\",\"::1\"]}";
    struct leader_place a, b;
    struct error err = {""};

    (void)state;
    for (size_t i = 0; i < COUNT(refused); i++) {
        assert_int_equal(leader_place_read(refused[i], strlen(refused[i]), &a, &err), -1);
        assert_one_line(err.text);
        assert_null(a.addresses);
    }
    assert_int_equal(leader_place_read(good, strlen(good), &a, &err), 0);
    assert_int_equal(a.job, 7);
    assert_int_equal(a.port, 4000);
    assert_string_equal(a.addresses[1], "::1");
    assert_string_equal(a.state_dir, "/s");
    assert_true(leader_place_same(&a, &a));
    assert_int_equal(leader_place_read(plain, strlen(plain), &b, &err), 0);
    assert_int_equal(b.port, 0);
    assert_false(leader_place_same(&a, &b));
    leader_place_clear(&a);
    leader_place_clear(&b);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static void test_tokens(void **state)
{
    static const char good[] = "# of the first team\n\n0123456789abcdef\nabcdefghijklmnop+/=\n";
    static const char *const refused[] = {"short\n", "0123456789abcdef 0123\n",
                                          "0123456789abcdef\r\n",
                                          ("0123456789\xc3\xa4"
                                           "abcdef\n")};
    struct error err = {""};
    int count = 0;
    char *digests = route_tokens_digests(good, strlen(good), &count, &err);

    (void)state;
    assert_non_null(digests);
    assert_int_equal(count, 2);
    /* printf 0123456789abcdef | sha256sum */
    assert_int_equal(
        strncmp(digests, "9F9F5111F7B27A781F1F1DDDE5EBC2DD2B796BFC7365C9C28B548E564176929F\n", 65),
        0);
    assert_int_equal(strlen(digests), 130);
    free(digests);
    digests = route_tokens_digests("", 0, &count, &err);
    assert_string_equal(digests, "");
    assert_int_equal(count, 0);
    free(digests);
    for (size_t i = 0; i < COUNT(refused); i++) {
        assert_null(route_tokens_digests(refused[i], strlen(refused[i]), &count, &err));
        assert_one_line(err.text);
        assert_null(strstr(err.text, "0123")); /* never the token */
    }
    assert_null(route_tokens_digests("0123456789abcdef\0", 17, &count, &err));
}

/* ---- the command line ------------------------------------------------------------------------ */

static void test_listen(void **state)
{
    static const char *const cases[][2] = {
        {"127.0.0.1:8080", "127.0.0.1:8080"},
        {":8080", "*:8080"},
        {"*:8080", "*:8080"},
        {"[::1]:8080", "[::1]:8080"},
        {"8080", NULL},
        {"127.0.0.1:", NULL},
        {"127.0.0.1:0", NULL},
        {"127.0.0.1:65536", NULL},
        {"localhost:8080", NULL},
        {"::1:8080", NULL},
        {"[]:8080", NULL},
        {"127.0.0.1 mode 777:8080", NULL},
        {"unix@/tmp/x:1", NULL},
        {"", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char listen[ROUTER_LISTEN];
        struct error err = {""};
        int status = router_listen_read(cases[i][0], listen, &err);

        assert_int_equal(status, cases[i][1] != NULL ? 0 : -1);
        if (status == 0)
            assert_string_equal(listen, cases[i][1]);
        else
            assert_one_line(err.text);
    }
}

static void test_arguments(void **state)
{
    static char *const cases[][6] = {
        {"s"},
        {"--listen=:80"},
        {"s", "t", "--listen=:80"},
        {"../s", "--listen=:80"},
        {"s", "--listen=:80", "--json"},
        {"s", "--listen=:80", "--tokens=a", "--no-tokens"},
        {"s", "--listen=:80", "--table=a", "--directory=b"},
        {"s", "--listen"},
        {"s", "--listen=:80", "--route-by=path:v2"},
        {"s", "--listen=:80", "--route-by=cookie:a"},
        {"s", "--listen=:80", "--colour"},
    };
    char *good[] = {"router",      "s",         "--listen=:80",
                    "--no-tokens", "--table=f", "--route-by=path:/v2/models/",
                    NULL};
    char *status[] = {"router", "--status", "--json", "s", NULL};
    struct router_arguments arguments;
    struct error err = {""};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *argv[8] = {"router"};
        int argc = 1;

        while (cases[i][argc - 1] != NULL) {
            argv[argc] = cases[i][argc - 1];
            argc++;
        }
        assert_int_equal(router_arguments_read(argc, argv, &arguments, &err), -1);
        assert_one_line(err.text);
    }
    assert_int_equal(router_arguments_read(6, good, &arguments, &err), 0);
    assert_string_equal(arguments.service, "s");
    assert_string_equal(arguments.listen, "*:80");
    assert_true(arguments.no_tokens);
    assert_string_equal(arguments.table, "f");
    assert_int_equal(arguments.by, HAPROXY_PATH);
    assert_string_equal(arguments.what, "/v2/models/");
    assert_int_equal(router_arguments_read(4, status, &arguments, &err), 0);
    assert_true(arguments.status && arguments.json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),    cmocka_unit_test(test_asleep),
        cmocka_unit_test(test_route_by), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_place),    cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_listen),   cmocka_unit_test(test_arguments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

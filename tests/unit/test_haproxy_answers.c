/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/haproxy_answers: what haproxy 2.6 says, and what is no answer. */
#include "lib/haproxy_answers.h"
#include "tests/unit/support.h"

static void test_stat(void **state)
{
    static const char answer[] = "# pxname,svname,qcur,scur,status,check_status,last_chk,addr,\n"
                                 "shard_2,b-10.0.0.2-8001,0,7,UP 1/2,L7OK,,10.0.0.2:8001,\n"
                                 "shard_2,BACKEND,0,7,UP,,,,\n"
                                 "shard_1,z-10.0.0.1-8001,0,0,DRAIN,* L7OK,\"a, \"\"b\"\"\",,\n"
                                 "shard_1,a-10.0.0.1-8001,0,1,MAINT,,,,\n"
                                 "shard_1,k-10.0.0.1-8001,0,1,DOWN (agent),L4TOUT,,,\n"
                                 "shard_1,n-10.0.0.1-8001,0,1,no check,,,,\n"
                                 "shard_1,BACKEND,0,9,UP,,,,\n"
                                 "other,x,0,0,strange,,,,\n\n";
    static const struct {
        const char *name;
        enum haproxy_state state;
        bool checked;
    } want[] = {
        {"a-10.0.0.1-8001", HAPROXY_IN_MAINT, false}, {"k-10.0.0.1-8001", HAPROXY_IS_DOWN, false},
        {"n-10.0.0.1-8001", HAPROXY_IS_UP, false},    {"z-10.0.0.1-8001", HAPROXY_IN_DRAIN, true},
        {"b-10.0.0.2-8001", HAPROXY_IS_UP, true},
    };
    struct haproxy_stat stat;
    struct error err = {""};

    (void)state;
    assert_int_equal(haproxy_stat_read(answer, &stat, &err), 0);
    assert_int_equal(stat.shard_count, 2);
    assert_true(haproxy_stat_has_shard(&stat, 1) && haproxy_stat_has_shard(&stat, 2));
    assert_false(haproxy_stat_has_shard(&stat, 3));
    assert_int_equal(stat.count, COUNT(want));
    for (size_t i = 0; i < COUNT(want); i++) {
        assert_string_equal(stat.rows[i].name, want[i].name);
        assert_int_equal(stat.rows[i].state, want[i].state);
        assert_int_equal(stat.rows[i].checked, want[i].checked);
    }
    assert_ptr_equal(haproxy_stat_find(&stat, 2, "b-10.0.0.2-8001"), &stat.rows[4]);
    assert_int_equal(stat.rows[4].sessions, 7);
    assert_null(haproxy_stat_find(&stat, 1, "b-10.0.0.2-8001"));
    haproxy_stat_clear(&stat);
}

static void test_no_stat(void **state)
{
    static const char *const answers[] = {
        "",
        "\n",
        "Unknown command: 'show stat'\n",
        "# pxname,svname,scur,status,\n",
        "# pxname,svname,scur,status,check_status,\nshard_1,a,0\n",
        "# pxname,svname,scur,status,check_status,\nshard_1,a,0,FINE,,\n",
        "# pxname,svname,scur,status,check_status,\nshard_1,a,-1,UP,,\n",
        "# pxname,svname,scur,status,check_status,\nshard_1,a,99999999999,UP,,\n",
        "# pxname,svname,scur,status,check_status,\nshard_1,a b,0,UP,,\n",
        "# pxname,svname,scur,status,check_status,\nshard_1,,0,UP,,\n",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(answers); i++) {
        struct haproxy_stat stat;
        struct error err = {""};

        if (haproxy_stat_read(answers[i], &stat, &err) == 0)
            fail_msg("accepted: %s", answers[i]);
        assert_one_line(err.text);
        assert_int_equal(stat.count, 0);
    }
}

static void test_streams(void **state)
{
    static const char answer[] =
        "0x1: proto=tcpv4 src=10.0.0.9:1 fe=requests be=requests srv=<none> epoch=0x3 age=0s\n"
        "0x2: proto=tcpv4 src=10.0.0.9:2 fe=requests be=shard_1 srv=a ts=00 epoch=0 age=0s\n"
        "0x3: proto=tcpv4 src=10.0.0.9:3 fe=requests be=shard_2 srv=a ts=00 epoch=0xA age=0s\n"
        "0x4: proto=tcpv4 src=10.0.0.9:4 fe=requests be=shard_2 srv=a ts=00 epoch=0x1a age=0s\n"
        "0x5: proto=unix_stream src=unix:1 fe=GLOBAL be=<NONE> epoch=0x1b age=0s\n\n";
    struct haproxy_streams streams;
    struct error err = {""};

    (void)state;
    assert_int_equal(haproxy_streams_read(answer, 0x10, &streams, &err), 0);
    assert_int_equal(streams.latest, 0x1b);
    assert_int_equal(streams.older, 2);
    assert_int_equal(haproxy_streams_read(answer, -1, &streams, &err), 0);
    assert_int_equal(streams.older, 0);
    assert_int_equal(haproxy_streams_read(answer, 0x1b, &streams, &err), 0);
    assert_int_equal(streams.older, 3);
    assert_int_equal(haproxy_streams_read("\n", 1, &streams, &err), -1);
    assert_one_line(err.text);
    assert_int_equal(haproxy_streams_read("0x1: age=0s\n", 1, &streams, &err), -1);
    assert_int_equal(
        haproxy_streams_read("0x1: epoch=0xffffffffffffffffff age=0s\n", 1, &streams, &err), -1);
}

static void test_shut(void **state)
{
    static const char answer[] =
        "0x1: proto=tcpv4 src=10.0.0.9:1 fe=requests be=requests srv=<none> epoch=0x3 age=0s\n"
        "0x55d0a2: proto=tcpv4 fe=requests be=shard_1 srv=a ts=00 epoch=0 age=0s\n"
        "0x3;x: proto=tcpv4 fe=requests be=shard_2 srv=a ts=00 epoch=0x2 age=0s\n"
        "0x55d0a3: proto=tcpv4 fe=requests be=shard_2 srv=a ts=00 epoch=0xa age=0s\n"
        "0x4: proto=tcpv4 src=10.0.0.9:4 fe=requests be=shard_2 srv=a ts=00 epoch=0x1a age=0s\n"
        "0x5: proto=unix_stream src=unix:1 fe=GLOBAL be=<NONE> epoch=0x1b age=0s\n\n";
    char many[300 * 80] = "", *text;
    struct error err = {""};
    int count;

    (void)state;
    text = haproxy_shut_command(answer, 0x10, &count, &err);
    assert_string_equal(text, "shutdown session 0x55d0a2; shutdown session 0x55d0a3\n");
    assert_int_equal(count, 2);
    free(text);
    text = haproxy_shut_command(answer, -1, &count, &err);
    assert_int_equal(count, 0);
    free(text);
    assert_null(haproxy_shut_command("0x1: age=0s\n", 1, &count, &err));
    assert_one_line(err.text);
    for (int i = 0; i < 300; i++)
        sprintf(many + strlen(many), "0xffffffffffff%04x: fe=r be=shard_1 epoch=0x1 age=0s\n",
                (unsigned)i);
    text = haproxy_shut_command(many, 1, &count, &err);
    assert_in_range(count, 100, 299); /* the others later */
    assert_true(strlen(text) < HAPROXY_PIECE);
    free(text);
}

static void test_workers(void **state)
{
    static const char answer[] =
        "#<PID>          <type>          <reloads>       <uptime>        <version>      \n"
        "1162            master          5               0d00h02m07s     2.6.12         \n"
        "# workers\n"
        "1271            worker          1               0d00h00m00s     2.6.12         \n"
        "# old workers\n"
        "1233            worker          3               0d00h00m43s     2.6.12         \n"
        "1234            worker          2               0d00h00m43s     2.6.12         \n"
        "# programs\n\n";
    struct haproxy_workers workers;
    struct error err = {""};

    (void)state;
    assert_int_equal(haproxy_workers_read(answer, &workers, &err), 0);
    assert_int_equal(workers.master, 1162);
    assert_int_equal(workers.worker, 1271);
    assert_int_equal(workers.old, 2);
    assert_int_equal(haproxy_workers_read("1162 master 0\n# workers\n", &workers, &err), 0);
    assert_int_equal(workers.worker, 0);
    assert_int_equal(haproxy_workers_read("", &workers, &err), -1);
    assert_one_line(err.text);
    assert_int_equal(haproxy_workers_read("99999999999 master 0\n", &workers, &err), -1);
}

static void test_worker(void **state)
{
    (void)state;
    assert_int_equal(haproxy_worker_read("Name: HAProxy\nNbthread: 2\nPid: 1271\nUptime: 0d\n"),
                     1271);
    assert_int_equal(haproxy_worker_read("Name: HAProxy\nMaster_Pid: 1271\n"), 0);
    assert_int_equal(haproxy_worker_read("Name: HAProxy\nPid: -1\n"), 0);
    assert_int_equal(haproxy_worker_read("Name: HAProxy\nPid: 99999999999\n"), 0);
    assert_int_equal(haproxy_worker_read(""), 0);
}

static void test_map(void **state)
{
    static const char *const others[] = {
        "Unknown map identifier. Please use #<id> or <file>.\n",
        "0x1 a\n",
        "0x1 a b\n",
        "0x1 a shard_0\n",
        "0x1 a nones\n",
        "0x1 a shard_10001\n",
        "0x1 ../a shard_1\n",
        "0x1  shard_1\n",
    };
    struct haproxy_route *routes;
    struct error err = {""};
    int count;

    (void)state;
    assert_int_equal(
        haproxy_map_read("0x2 b shard_12\n0x1 a/b:c@d shard_3\n\n", &routes, &count, &err), 0);
    assert_int_equal(count, 2);
    assert_string_equal(routes[0].key, "a/b:c@d");
    assert_int_equal(routes[0].shard, 3);
    assert_int_equal(routes[1].shard, 12);
    haproxy_routes_free(routes, count);
    assert_int_equal(haproxy_map_read("0x1 a none\n", &routes, &count, &err), 0);
    assert_int_equal(routes[0].shard, 0);
    haproxy_routes_free(routes, count);
    assert_int_equal(haproxy_map_read("\n", &routes, &count, &err), 0);
    assert_int_equal(count, 0);
    for (size_t i = 0; i < COUNT(others); i++) {
        assert_int_equal(haproxy_map_read(others[i], &routes, &count, &err), -1);
        assert_one_line(err.text);
        assert_null(routes);
    }
}

static void test_asked(void **state)
{
    static const char answer[] = "# table: requests, type: string, size:102400, used:3\n"
                                 "0x1: key=b/c use=0 exp=4711\n0x2: key=a use=1 exp=1\n"
                                 "0x3: key=d use=0 exp=12\n\n";
    static const struct {
        const char *answer;
        int most;
        const char *keys;
        bool more;
    } cases[] = {
        {answer, 3, "[\"a\",\"b\\/c\",\"d\"]", false},
        {answer, 2, "[\"a\",\"b\\/c\"]", true},
        {"# table: requests, type: string, size:102400, used:0\n\n", 3, "[]", false},
        {"No such table\n", 3, "[]", false},
        {"", 3, "[]", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        bool more;
        json_object *keys = haproxy_asked_read(cases[i].answer, cases[i].most, &more);

        assert_string_equal(json_object_to_json_string_ext(keys, JSON_C_TO_STRING_PLAIN),
                            cases[i].keys);
        assert_int_equal(more, cases[i].more);
        json_object_put(keys);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stat), cmocka_unit_test(test_no_stat), cmocka_unit_test(test_streams),
        cmocka_unit_test(test_shut), cmocka_unit_test(test_workers), cmocka_unit_test(test_worker),
        cmocka_unit_test(test_map),  cmocka_unit_test(test_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

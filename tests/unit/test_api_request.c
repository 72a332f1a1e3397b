/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What clients of the HTTP interface send (lib/api_request.h). */
#include "lib/api_request.h"
#include "tests/unit/support.h"

static int read_into(struct api_request *request, struct api_reply *reply, const char *method,
                     const char *target, const char *body)
{
    const struct api_input input = {.method = method,
                                    .target = target,
                                    .body = body,
                                    .body_size = body != NULL ? strlen(body) : 0};

    return api_request_read(&input, request, reply);
}

static void test_what_is_there(void **state)
{
    static const struct {
        const char *method, *target, *body;
        enum api_verb verb;
        const char *role, *replica;
        int count, epoch;
    } cases[] = {
        {"GET", "/healthz", NULL, API_HEALTH, "", "", 0, -1},
        {"HEAD", "/healthz", NULL, API_HEALTH, "", "", 0, -1},
        {"GET", "/metrics?", NULL, API_METRICS, "", "", 0, -1},
        {"GET", "/v1/roles", "{}", API_ROLES, "", "", 0, -1},
        {"GET", "/v1/roles/a-1", NULL, API_ROLE, "a-1", "", 0, -1},
        {"PATCH", "/v1/roles/a", "{\"replicas\": 0}", API_SCALE, "a", "", 0, -1},
        {"PATCH", "/v1/roles/a", " {\"replicas\":10000}\n", API_SCALE, "a", "", 10000, -1},
        {"GET", "/v1/roles/a/replicas", " \r\n", API_REPLICAS, "a", "", 0, -1},
        {"POST", "/v1/roles/a/replicas", "{\"count\":3}", API_ADD, "a", "", 3, -1},
        {"GET", "/v1/roles/a/replicas/a-12", NULL, API_REPLICA, "a", "a-12", 0, -1},
        {"DELETE", "/v1/roles/a/replicas/a-12", "", API_REMOVE, "a", "a-12", 0, -1},
        {"POST", "/v1/roles/a/replicas/a-12/failed", "", API_FAIL, "a", "a-12", 0, -1},
        {"POST", "/v1/roles/a/replicas/a-12/failed", "{\"reason\":\"slow\"}", API_FAIL, "a", "a-12",
         0, -1},
        {"POST", "/v1/roles/a/replicas/a-12/report", "{\"path\":\"/d\"}", API_REPORT, "a", "a-12",
         0, -1},
        {"GET", "/v1/reports", NULL, API_REPORTS, "", "", 0, -1},
        {"GET", "/v1/reports?after=0", NULL, API_REPORTS, "", "", 0, 0},
        {"GET", "/v1/endpoints", NULL, API_ENDPOINTS, "", "", 0, -1},
        {"GET", "/v1/endpoints?role=a", NULL, API_ENDPOINTS, "a", "", 0, -1},
        {"GET", "/v1/services", NULL, API_SERVICES, "", "", 0, -1},
        {"GET", "/v1/shards", NULL, API_SHARDS, "", "", 0, -1},
        {"POST", "/v1/shards/apply", "", API_APPLY, "", "", 0, -1},
        {"POST", "/v1/shards/flush", "{}", API_FLUSH, "", "", 0, -1},
        {"POST", "/v1/shards/repack", NULL, API_REPACK, "", "", 0, -1},
        {"PUT", "/v1/shards/shard_2/models", "{\"models\":[\"a\",\"b\"]}", API_PLACE, "", "", 2,
         -1},
        {"PUT", "/v1/shards/shard_64/routes", "{\"keys\":[\"a\"]}", API_PLACE, "", "", 64, -1},
        {"PUT", "/v1/services/program", "{\"run\":[\"serve\"]}", API_PROGRAM, "", "", 0, -1},
        {"POST", "/v1/services/handover", NULL, API_HAND_OVER, "", "", 0, -1},
        {"GET", "/v1/models", NULL, API_MODELS, "", "", 0, -1},
        {"HEAD", "/v1/models/a", NULL, API_MODEL, "", "", 0, -1},
        {"PUT", "/v1/models/a", NULL, API_PUT_MODEL, "", "", 0, -1},
        {"PUT", "/v1/routes/a/b:c", "{\"shard\":\"shard_12\"}", API_PUT_MODEL, "", "", 12, -1},
        {"DELETE", "/v1/models/a", "", API_WITHDRAW, "", "", 0, -1},
        {"DELETE", "/v1/routes/a/b", "{}", API_WITHDRAW, "", "", 0, -1},
        {"GET", "/v1/routes", NULL, API_ROUTES, "", "", 0, -1},
        {"GET", "/v1/routes/a/b", NULL, API_ROUTE, "", "", 0, -1},
        {"GET", "/v1/watch", NULL, API_WATCH, "", "", 0, -1},
        {"GET", "/v1/watch?after=7&", NULL, API_WATCH, "", "", 0, 7},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_request request;
        struct api_reply reply = {0};

        if (read_into(&request, &reply, cases[i].method, cases[i].target, cases[i].body) != 0)
            fail_msg("%s %s: %s", cases[i].method, cases[i].target,
                     json_object_to_json_string(reply.body));
        assert_int_equal(request.verb, cases[i].verb);
        assert_string_equal(request.role, cases[i].role);
        assert_string_equal(request.replica, cases[i].replica);
        assert_int_equal(request.count, cases[i].count);
        assert_int_equal(request.epoch, cases[i].epoch);
        assert_int_equal(api_request_changes(&request),
                         request.verb == API_SCALE || request.verb == API_ADD ||
                             request.verb == API_REMOVE || request.verb == API_FAIL);
    }
}

static void assert_refused(const struct api_input *input, int status, const char *message)
{
    struct api_request request;
    struct api_reply reply = {0};
    const char *text;

    if (api_request_read(input, &request, &reply) == 0)
        fail_msg("%s %s is accepted", input->method, input->target);
    text = json_object_get_string(json_object_object_get(reply.body, "message"));
    assert_one_line(text);
    if (strstr(text, message) == NULL)
        fail_msg("%s %s: %s", input->method, input->target, text);
    assert_int_equal(reply.status, status);
    assert_int_equal(json_object_get_int(json_object_object_get(reply.body, "code")), status);
    assert_false(json_object_get_boolean(json_object_object_get(reply.body, "success")));
    assert_true(json_object_object_get_ex(reply.body, "data", NULL));
    api_reply_clear(&reply);
}

static void test_what_is_refused(void **state)
{
    static const struct {
        const char *method, *target, *body;
        int status;
        const char *message;
    } cases[] = {
        {"GET", "/", NULL, 404, "there is no '/'"},
        {"GET", "", NULL, 404, "there is no ''"},
        {"GET", "/v1/roles/", NULL, 404, "there is no '/v1/roles/'"},
        {"GET", "/v1/roles//replicas", NULL, 404, "there is no"},
        {"GET", "/v1/roles/a/replicas/a-1/", NULL, 404, "there is no"},
        {"GET", "/v1/../v1/roles", NULL, 404, "there is no"},
        {"GET", "http://x/v1/roles", NULL, 404, "there is no"},
        {"GET", "/v1/%72oles", NULL, 404, "there is no"},
        {"GET", "/\x1b[31m\n\xff", NULL, 404,
         "there is no '/?[31m?"
         "?'"},
        {"DELETE", "/v1/roles/a", NULL, 405, "DELETE of '/v1/roles/a': allowed are GET, PATCH"},
        {"OPTIONS", "/healthz", NULL, 405, "allowed is GET"},
        {"get", "/healthz", NULL, 405, "allowed is GET"},
        {"GET", "/v1/roles?x=1", NULL, 400, "parameter 'x=1' is not known; known here is none"},
        {"GET", "/v1/watch?before=1", NULL, 400, "'before=1' is not known; known here is after"},
        {"GET", "/v1/watch?after", NULL, 400, "'after': one whole number is expected"},
        {"GET", "/v1/watch?after=-1", NULL, 400, "one whole number is expected"},
        {"GET", "/v1/watch?after=99999999999999999999", NULL, 400, "one whole number"},
        {"GET", "/v1/watch?after=1&after=2", NULL, 400, "'after=2': one whole number"},
        {"GET", "/v1/endpoints?role=", NULL, 400, "one name of a role is expected"},
        {"GET", "/v1/endpoints?role=a&role=b", NULL, 400, "one name of a role is expected"},
        {"PATCH", "/v1/roles/a", "", 400, "the body is no JSON object"},
        {"PATCH", "/v1/roles/a", "[1]", 400, "the body is no JSON object"},
        {"PATCH", "/v1/roles/a", "{\"replicas\":1}x", 400, "the body is no JSON object"},
        {"PATCH", "/v1/roles/a", "{}", 400, "the body needs the key 'replicas'"},
        {"PATCH", "/v1/roles/a", "{\"count\":1}", 400, "key 'count' of the body is not known"},
        {"PATCH", "/v1/roles/a", "{\"replicas\":-1}", 400, "a whole number from 0 to 10000"},
        {"PATCH", "/v1/roles/a", "{\"replicas\":10001}", 400, "a whole number from 0 to 10000"},
        {"PATCH", "/v1/roles/a", "{\"replicas\":\"2\"}", 400, "a whole number from 0 to 10000"},
        {"PATCH", "/v1/roles/a", "{\"replicas\":1,\"replicas\":2}", 400, "no JSON object"},
        {"POST", "/v1/roles/a/replicas", "{\"count\":0}", 400, "a whole number from 1 to 10000"},
        {"POST", "/v1/roles/a/replicas", "{\"count\":1,\"disks\":1}", 400,
         "key 'disks' of the body is not known; known here are count, cpus, gpus, memory"},
        {"POST", "/v1/roles/a/replicas", "{\"gpus\":1}", 400, "the body needs the key 'count'"},
        {"POST", "/v1/roles/a/replicas", "{\"count\":1,\"gpus\":null}", 400,
         "gpus: a quantity is expected, such as 2 or 0.5"},
        {"POST", "/v1/roles/a/replicas", "{\"count\":1,\"cpus\":65536}", 400,
         "cpus: from 0 to 65535 are allowed"},
        {"PATCH", "/v1/roles/a", "{\"replicas\":1,\"cpus\":1}", 400,
         "key 'cpus' of the body is not known; known here is replicas"},
        {"POST", "/v1/roles/a/replicas/a-1/failed", "{\"reason\":1}", 400, "a text is expected"},
        {"DELETE", "/v1/roles/a/replicas/a-1", "{\"count\":3}", 400, "known here is none"},
        {"GET", "/v1/roles", "x", 400, "the body is no JSON object"},
        {"GET", "/v1/reports?after=x", NULL, 400, "one whole number is expected"},
        {"PUT", "/v1/shards", "{}", 405, "allowed is GET"},
        {"GET", "/v1/shards/flush", NULL, 405, "allowed is POST"},
        {"GET", "/v1/shards?after=1", NULL, 400, "known here is none"},
        {"PUT", "/v1/shards/2/models", "{\"models\":[\"a\"]}", 404, "'2' is no shard"},
        {"PUT", "/v1/shards/shard_2/models", "{\"models\":[]}", 400,
         "models: a list of one or more texts is expected"},
        {"PUT", "/v1/services/program", "{\"run\":\"serve\"}", 400,
         "run: a list of one or more texts is expected"},
        {"PUT", "/v1/shards/shard_2/routes", "{\"keys\":[1]}", 400,
         "keys: a list of one or more texts is expected"},
        {"PUT", "/v1/shards/shard_2/routes", "{\"models\":[\"a\"]}", 400, "known here is keys"},
        {"POST", "/v1/shards/apply", "{\"x\":1}", 400, "known here is none"},
        {"POST", "/v1/models/a", NULL, 405, "allowed are GET, PUT, DELETE"},
        {"GET", "/v1/services/handover", NULL, 405, "allowed is POST"},
        {"PUT", "/v1/models/a", "{\"version\":\"1\"}", 400, "known here is shard"},
        {"PUT", "/v1/models/a", "{\"shard\":2}", 400, "shard: a shard such as \"shard_1\""},
        {"PUT", "/v1/models/a", "{\"shard\":\"shard_0\"}", 400, "a shard such as"},
        {"PUT", "/v1/models/a", "{\"shard\":\"2\"}", 400, "a shard such as"},
        {"PUT", "/v1/models/a/b", "{}", 404, "there is no"},
        {"DELETE", "/v1/routes/", NULL, 404, "there is no"},
        {"DELETE", "/v1/routes/a?now=1", NULL, 400, "known here is none"},
        {"GET", "/v1/roles/a/replicas/a-1/report", NULL, 405, "allowed is POST"},
        {"POST", "/v1/roles/a/replicas/a-1/report", "", 400, "the body is no report: "},
        {"POST", "/v1/roles/a/replicas/a-1/report", "{\"size\":5}", 400,
         "the body is no report: path: a text of 1 to 1024 bytes is expected"},
        {"POST", "/v1/roles/a/replicas/a-1/report?after=1", "{\"path\":\"/d\"}", 400,
         "known here is none"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct api_input input = {.method = cases[i].method,
                                        .target = cases[i].target,
                                        .body = cases[i].body,
                                        .body_size = cases[i].body != NULL ? strlen(cases[i].body)
                                                                           : 0};

        assert_refused(&input, cases[i].status, cases[i].message);
    }
}

static void test_allow(void **state)
{
    struct api_request request;
    struct api_reply reply = {0};

    (void)state;
    assert_int_equal(read_into(&request, &reply, "PUT", "/v1/roles/a/replicas/a-1", NULL), -1);
    assert_string_equal(reply.allow, "GET, DELETE");
    api_reply_clear(&reply);
}

static void test_large_bodies_and_nul(void **state)
{
    struct api_input input = {
        .method = "PATCH", .target = "/v1/roles/a", .body = "{}\0", .body_size = 3};

    (void)state;
    assert_refused(&input, 400, "the body is no JSON object");
    input.method = "GET";
    assert_refused(&input, 400, "the body is no JSON object");
    input.body_size = API_BODY_MAX + 1; /* it has not been kept */
    input.body = NULL;
    assert_refused(&input, 413, "more than 1048576 bytes");
}

/* A long name is nobody's, whatever it begins with. */
static void test_long_names(void **state)
{
    char target[9000];
    struct api_request request;
    struct api_reply reply = {0};

    (void)state;
    memset(target, 'a', sizeof(target));
    memcpy(target, "/v1/roles/", 10);
    target[sizeof(target) - 1] = '\0';
    assert_int_equal(read_into(&request, &reply, "GET", target, NULL), 0);
    assert_int_equal(strlen(request.role), sizeof(request.role) - 1);
}

static void test_if_match(void **state)
{
    static const struct {
        const char *text;
        int epoch; /* -2: refused */
    } cases[] = {{"7", 7},    {"\"7\"", 7}, {"*", -1},  {"\"\"", -2},    {"", -2},  {"\"", -2},
                 {"\"7", -2}, {"x", -2},    {"-1", -2}, {"W/\"7\"", -2}, {"7 ", -2}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_input input = {.method = "PATCH",
                                  .target = "/v1/roles/a",
                                  .if_match = cases[i].text,
                                  .body = "{\"replicas\":1}",
                                  .body_size = 14};
        struct api_request request;
        struct api_reply reply = {0};

        if (cases[i].epoch == -2) {
            assert_refused(&input, 400, "is no epoch");
            continue;
        }
        assert_int_equal(api_request_read(&input, &request, &reply), 0);
        assert_int_equal(request.epoch, cases[i].epoch);
        input.method = "GET"; /* it has no meaning there */
        input.body_size = 0;
        assert_int_equal(api_request_read(&input, &request, &reply), 0);
        assert_int_equal(request.epoch, -1);
    }
}

/* What a browser sends because a foreign web page wants it. */
static void test_web_pages(void **state)
{
    static const struct {
        const char *host, *origin;
        bool ok;
    } cases[] = {
        {NULL, NULL, true},
        {"127.0.0.1:8000", NULL, true},
        {"localhost:8000", NULL, true},
        {"[::1]:8000", NULL, true},
        {"127.0.0.1.evil.example:8000", NULL, false},
        {"localhost.evil.example", NULL, false},
        {"evil.example", NULL, false},
        {"127.0.0.1:8000", "http://127.0.0.1:8000", true},
        {"127.0.0.1:8000", "http://127.0.0.1:8001", false},
        {"127.0.0.1:8000", "https://evil.example", false},
        {"127.0.0.1:8000", "null", false},
        {NULL, "http://", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_input input = {.method = "GET",
                                  .target = "/v1/roles",
                                  .host = cases[i].host,
                                  .origin = cases[i].origin,
                                  .tcp = true};
        struct api_request request;
        struct api_reply reply = {0};

        if (cases[i].ok)
            assert_int_equal(api_request_read(&input, &request, &reply), 0);
        else
            assert_refused(&input, 403, "header ");
        input.tcp = false; /* no browser connects to a file */
        assert_int_equal(api_request_read(&input, &request, &reply), 0);
    }
}

/* A report is kept in its shortest form, with the id of the request. */
static void test_report(void **state)
{
    static const char body[] =
        " {\"path\" : \"/a/b\", \"loss\": 0.10, \"n\": [1, {\"x\": null}]}\n";
    const struct api_input input = {.method = "POST",
                                    .target = "/v1/roles/a/replicas/a-1/report",
                                    .body = body,
                                    .body_size = sizeof(body) - 1,
                                    .id = "0123456789abcdef"};
    struct api_request request;
    struct api_reply reply = {0};

    (void)state;
    assert_int_equal(api_request_read(&input, &request, &reply), 0);
    assert_string_equal(request.report, "{\"path\":\"/a/b\",\"loss\":0.10,\"n\":[1,{\"x\":null}]}");
    assert_string_equal(request.id, "0123456789abcdef");
    assert_false(api_request_watches(&request));
}

static void test_who_watches(void **state)
{
    static const struct {
        const char *target;
        bool watches;
    } cases[] = {{"/v1/watch", true},
                 {"/v1/reports", false},
                 {"/v1/reports?after=0", true},
                 {"/v1/roles", false}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_request request;
        struct api_reply reply = {0};

        assert_int_equal(read_into(&request, &reply, "GET", cases[i].target, NULL), 0);
        assert_int_equal(api_request_watches(&request), cases[i].watches);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_there), cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_allow),         cmocka_unit_test(test_large_bodies_and_nul),
        cmocka_unit_test(test_long_names),    cmocka_unit_test(test_if_match),
        cmocka_unit_test(test_web_pages),     cmocka_unit_test(test_report),
        cmocka_unit_test(test_who_watches),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

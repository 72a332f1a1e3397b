/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the leader is asked for a request of the HTTP interface, and what its answers make of it
 * (lib/api_call.h). */
#include "lib/api_call.h"
#include "lib/json_get.h"
#include "tests/unit/support.h"

#define SHARDS "{\"t\":\"shards\"}"
#define REPLICA(name, state, start)                                                                \
    "{\"name\":\"" name "\",\"role\":\"a\",\"state\":\"" state "\",\"start\":" start               \
    ",\"tasks\":[{\"task\":0,\"node\":\"n1\",\"address\":\"10.0.0.1\",\"ports\":{\"p\":31000}}]}"
#define ROLES(epoch, target, replicas)                                                             \
    "{\"t\":\"roles\",\"job\":12,\"epoch\":" epoch ",\"roles\":[{\"name\":\"a\",\"min\":1,"        \
    "\"max\":9,\"target\":" target ",\"ready\":1,\"size\":\"1 of " target " ready\","              \
    "\"more\":\"no room\"},{\"name\":\"b\",\"target\":1}],\"replicas\":[" replicas "]}"
#define ONE  REPLICA("a-0", "ready", "5")
#define DONE "{\"t\":\"done\",\"message\":\"x\"}"

#define REFUSED(code) "{\"t\":\"error\",\"code\":\"" code "\",\"message\":\"refused\"}"
#define LOST          "lost"

/* Questions and answers one after the other; the last answer makes the reply. */
struct turn {
    const char *question, *answer;
};
#define REPORTS   "{\"t\":\"reports\"}"
#define LOOK      "{\"t\":\"roles\"}"
#define WATCH     "{\"t\":\"roles\",\"known\":4}"
#define TURNS_MAX 8

struct scene {
    const char *method, *target, *body, *if_match;
    struct turn turns[TURNS_MAX];
    int status;
    const char *message;
};

static void play(const struct scene *scene, struct api_reply *reply)
{
    const struct api_input input = {.method = scene->method,
                                    .target = scene->target,
                                    .if_match = scene->if_match,
                                    .id = "77",
                                    .body = scene->body,
                                    .body_size = scene->body != NULL ? strlen(scene->body) : 0};
    enum api_step step = API_ASK;
    struct api_request request;
    struct api_call *call;

    *reply = (struct api_reply){0};
    assert_int_equal(api_request_read(&input, &request, reply), 0);
    call = api_call_create(&request);
    for (const struct turn *turn = scene->turns; turn->question != NULL; turn++) {
        json_object *question = api_call_question(call), *answer = NULL;

        assert_int_not_equal(step, API_DONE);
        assert_string_equal(json_object_to_json_string_ext(question, JSON_C_TO_STRING_PLAIN),
                            turn->question);
        assert_int_equal(api_call_looks(call),
                         strncmp(turn->question, LOOK, strlen(LOOK) - 1) == 0 ||
                             strstr(turn->question, "\"metrics\"") != NULL ||
                             strcmp(turn->question, SHARDS) == 0 ||
                             strncmp(turn->question, REPORTS, strlen(REPORTS) - 1) == 0);
        json_object_put(question);
        if (strcmp(turn->answer, LOST) == 0) {
            api_call_lost(call);
            continue;
        }
        answer = json_tokener_parse(turn->answer);
        assert_non_null(answer);
        step = api_call_answered(call, answer, reply);
        json_object_put(answer);
    }
    if (step != API_DONE)
        api_call_late(call, reply);
    api_call_destroy(call);
}

static const char *message_of(const struct api_reply *reply)
{
    return json_object_get_string(json_object_object_get(reply->body, "message"));
}

static void check(const struct scene *scene)
{
    struct api_reply reply;

    play(scene, &reply);
    if (reply.status != scene->status || strcmp(message_of(&reply), scene->message) != 0)
        fail_msg("%s %s: %d %s\nexpected: %d %s", scene->method, scene->target, reply.status,
                 message_of(&reply), scene->status, scene->message);
    api_reply_clear(&reply);
}

#define SCALE(count) "{\"t\":\"scale\",\"role\":\"a\",\"count\":" count "}"
#define ADD(count, expect)                                                                         \
    "{\"t\":\"scale\",\"role\":\"a\",\"count\":" count ",\"expect\":" expect "}"
#define REMOVE(expect) "{\"t\":\"remove\",\"replica\":\"a-0\",\"expect\":" expect "}"
#define FAIL           "{\"t\":\"fail\",\"replica\":\"a-0\",\"reason\":\"slow\"}"

#define PATCH_3  "PATCH", "/v1/roles/a", "{\"replicas\":3}"
#define POST_2   "POST", "/v1/roles/a/replicas", "{\"count\":2}"
#define DELETE_0 "DELETE", "/v1/roles/a/replicas/a-0", NULL
#define FAIL_0   "POST", "/v1/roles/a/replicas/a-0/failed", "{\"reason\":\"slow\"}"

static void test_changes(void **state)
{
    static const struct scene scenes[] = {
        {PATCH_3,
         NULL,
         {{LOOK, ROLES("4", "1", ONE)},
          {SCALE("3"), DONE},
          {LOOK, ROLES("5", "3", ONE "," REPLICA("a-1", "starting", "6"))}},
         200,
         "a: 3 replicas (was 1): 2 asked for, 1 started, 1 waits: no room"},
        {PATCH_3,
         NULL,
         {{LOOK, ROLES("4", "9", ONE)}, {SCALE("3"), DONE}, {LOOK, ROLES("5", "3", ONE)}},
         200,
         "a: 3 replicas (was 9)"},
        {PATCH_3,
         NULL,
         {{LOOK, ROLES("4", "3", ONE)}, {SCALE("3"), DONE}, {LOOK, ROLES("4", "3", ONE)}},
         200,
         "a: 3 replicas, as before"},
        {POST_2,
         NULL,
         {{LOOK, ROLES("4", "1", ONE)},
          {ADD("3", "1"), DONE},
          {LOOK, ROLES("5", "3",
                       ONE "," REPLICA("a-1", "starting", "6") "," REPLICA("a-2", "ready", "7"))}},
         200,
         "a: 3 replicas (was 1): 2 asked for, 2 started"},
        {POST_2,
         NULL,
         {{LOOK, ROLES("4", "1", "")}, {ADD("3", "1"), DONE}, {LOOK, ROLES("5", "3", "")}},
         200,
         "a: 3 replicas (was 1): 2 asked for, 0 started, 2 wait: no room"},
        {DELETE_0,
         NULL,
         {{LOOK, ROLES("4", "2", ONE)}, {REMOVE("2"), DONE}, {LOOK, ROLES("5", "1", "")}},
         200,
         "a-0 goes; a: 1 replica (was 2)"},
        {FAIL_0,
         NULL,
         {{LOOK, ROLES("4", "2", ONE)}, {FAIL, DONE}, {LOOK, ROLES("5", "2", "")}},
         200,
         "a-0 is replaced"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(scenes); i++)
        check(&scenes[i]);
}

static void test_refusals(void **state)
{
    static const struct scene scenes[] = {
        {"GET",
         "/v1/roles/c",
         NULL,
         NULL,
         {{LOOK, ROLES("4", "1", "")}},
         404,
         "there is no role 'c'; roles are a, b"},
        {"PATCH",
         "/v1/roles/c",
         "{\"replicas\":3}",
         NULL,
         {{LOOK, ROLES("4", "1", "")}},
         404,
         "there is no role 'c'; roles are a, b"},
        {DELETE_0, NULL, {{LOOK, ROLES("4", "1", "")}}, 404, "role a has no replica 'a-0'"},
        {"GET",
         "/v1/roles/b/replicas/a-0",
         NULL,
         NULL,
         {{LOOK, ROLES("4", "1", ONE)}},
         404,
         "role b has no replica 'a-0'"},
        {PATCH_3,
         NULL,
         {{LOOK, ROLES("4", "1", "")}, {SCALE("3"), REFUSED("limits")}},
         409,
         "refused"},
        {FAIL_0, NULL, {{LOOK, ROLES("4", "1", ONE)}, {FAIL, REFUSED("state")}}, 409, "refused"},
        {PATCH_3,
         NULL,
         {{LOOK, ROLES("4", "1", "")}, {SCALE("3"), REFUSED("odd")}},
         500,
         "refused"},
        {PATCH_3,
         NULL,
         {{LOOK, "{\"t\":\"history\"}"}},
         502,
         "the leader has given an answer of another kind: 'history'"},
        {PATCH_3,
         NULL,
         {{LOOK, ROLES("4", "1", "")}, {SCALE("3"), ROLES("4", "1", "")}},
         502,
         "the leader has given an answer of another kind: 'roles'"},
        {PATCH_3, NULL, {{LOOK, LOST}, {LOOK, REFUSED("state")}}, 409, "refused"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(scenes); i++)
        check(&scenes[i]);
}

/* A change whose answer is lost is made once. */
static void test_lost_answers(void **state)
{
    static const struct scene scenes[] = {
        /* it had been made */
        {POST_2,
         NULL,
         {{LOOK, ROLES("4", "1", ONE)}, {ADD("3", "1"), LOST}, {LOOK, ROLES("9", "3", ONE)}},
         200,
         "a: 3 replicas (was 1): 2 asked for, 0 started, 2 wait: no room"},
        {DELETE_0,
         NULL,
         {{LOOK, ROLES("4", "2", ONE)}, {REMOVE("2"), LOST}, {LOOK, ROLES("9", "1", ONE)}},
         200,
         "a-0 goes; a: 1 replica (was 2)"},
        {FAIL_0,
         NULL,
         {{LOOK, ROLES("4", "2", ONE)},
          {FAIL, LOST},
          {LOOK, ROLES("9", "2", REPLICA("a-0", "ready", "6"))}},
         200,
         "a-0 is replaced"},
        /* it had not been made */
        {POST_2,
         NULL,
         {{LOOK, ROLES("4", "1", ONE)},
          {ADD("3", "1"), LOST},
          {LOOK, ROLES("9", "1", ONE)},
          {ADD("3", "1"), DONE},
          {LOOK, LOST},
          {LOOK, ROLES("10", "3", ONE)}},
         200,
         "a: 3 replicas (was 1): 2 asked for, 0 started, 2 wait: no room"},
        {FAIL_0,
         NULL,
         {{LOOK, ROLES("4", "2", ONE)},
          {FAIL, LOST},
          {LOOK, ROLES("9", "2", ONE)},
          {FAIL, DONE},
          {LOOK, ROLES("9", "2", ONE)}},
         200,
         "a-0 is replaced"},
        /* nobody can say */
        {POST_2,
         NULL,
         {{LOOK, ROLES("4", "1", ONE)}, {ADD("3", "1"), LOST}, {LOOK, ROLES("9", "7", ONE)}},
         409,
         "a: somebody else changes its size, which is 7 now; look, and try again"},
        /* An absolute size needs no luck. */
        {PATCH_3,
         NULL,
         {{LOOK, ROLES("4", "1", ONE)},
          {SCALE("3"), LOST},
          {LOOK, ROLES("9", "7", ONE)},
          {SCALE("3"), DONE},
          {LOOK, ROLES("9", "3", ONE)}},
         200,
         "a: 3 replicas (was 7)"},
        /* no leader comes in time */
        {POST_2, NULL, {{LOOK, LOST}, {LOOK, LOST}}, 503, "no leader of the job answers"},
        {POST_2,
         NULL,
         {{LOOK, ROLES("4", "1", ONE)}, {ADD("3", "1"), LOST}},
         503,
         "the leader has been asked, and has not answered: look whether it is done"},
        {POST_2,
         NULL,
         {{LOOK, ROLES("4", "1", ONE)}, {ADD("3", "1"), DONE}},
         200,
         "the change has been made; no leader says what has come of it"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(scenes); i++)
        check(&scenes[i]);
}

static void test_others_change_it_too(void **state)
{
    static const struct scene scenes[] = {
        {POST_2,
         NULL,
         {{LOOK, ROLES("4", "1", ONE)},
          {ADD("3", "1"), REFUSED("changed")},
          {LOOK, ROLES("5", "2", ONE)},
          {ADD("4", "2"), DONE},
          {LOOK, ROLES("6", "4", ONE)}},
         200,
         "a: 4 replicas (was 2): 2 asked for, 0 started, 2 wait: no room"},
        {POST_2, "4", {{LOOK, ROLES("5", "1", ONE)}}, 412, "the epoch is 5, not 4"},
        {PATCH_3,
         "\"5\"",
         {{LOOK, ROLES("5", "1", ONE)},
          {"{\"t\":\"scale\",\"role\":\"a\",\"count\":3,\"epoch\":5}", REFUSED("epoch")}},
         412,
         "refused"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(scenes); i++)
        check(&scenes[i]);
}

/* Somebody else is always faster: it has an end. */
static void test_others_always_change_it(void **state)
{
    const struct api_input input = {.method = "POST",
                                    .target = "/v1/roles/a/replicas",
                                    .body = "{\"count\":2}",
                                    .body_size = 11};
    json_object *roles = json_tokener_parse(ROLES("4", "1", ONE));
    json_object *changed = json_tokener_parse(REFUSED("changed"));
    struct api_reply reply = {0};
    struct api_request request;
    struct api_call *call;
    int turns = 0;

    (void)state;
    assert_int_equal(api_request_read(&input, &request, &reply), 0);
    call = api_call_create(&request);
    while (api_call_answered(call, api_call_looks(call) ? roles : changed, &reply) != API_DONE)
        assert_true(++turns < 20);
    assert_int_equal(reply.status, 409);
    api_reply_clear(&reply);
    api_call_destroy(call);
    json_object_put(roles);
    json_object_put(changed);
}

static void assert_data(const char *target, const char *answer, const char *data)
{
    struct scene scene = {"GET", target, NULL, NULL, {{LOOK, answer}}, 200, ""};
    struct api_reply reply;
    const char *text;

    play(&scene, &reply);
    assert_int_equal(reply.status, 200);
    assert_int_equal(reply.epoch, 4);
    assert_int_equal(json_object_get_int(json_object_object_get(reply.body, "code")), 0);
    assert_true(json_object_get_boolean(json_object_object_get(reply.body, "success")));
    text = json_object_to_json_string_ext(json_object_object_get(reply.body, "data"),
                                          JSON_C_TO_STRING_PLAIN);
    assert_string_equal(text, data);
    api_reply_clear(&reply);
}

static void test_what_is_read(void **state)
{
    static const char answer[] =
        "{\"t\":\"roles\",\"job\":12,\"epoch\":4,\"roles\":[{\"name\":\"a\","
        "\"size\":\"1 of 1 ready\"},{\"name\":\"b\"}],\"replicas\":[" ONE
        ",{\"name\":\"b-0\",\"role\":\"b\",\"state\":\"wanted\"}]}";

    (void)state;
    assert_data("/v1/roles", answer,
                "{\"job\":12,\"epoch\":4,\"roles\":[{\"name\":\"a\",\"size\":\"1 of 1 ready\"},"
                "{\"name\":\"b\"}]}");
    assert_data("/v1/roles/b", answer, "{\"name\":\"b\"}");
    assert_data("/v1/roles/a/replicas", answer, "{\"job\":12,\"epoch\":4,\"replicas\":[" ONE "]}");
    assert_data("/v1/roles/a/replicas/a-0", answer, ONE);
    assert_data("/v1/endpoints", answer,
                "{\"job\":12,\"epoch\":4,\"endpoints\":[{\"role\":\"a\",\"replica\":\"a-0\","
                "\"task\":0,\"node\":\"n1\",\"address\":\"10.0.0.1\",\"ports\":{\"p\":31000}}]}");
    assert_data("/v1/endpoints?role=b", answer, "{\"job\":12,\"epoch\":4,\"endpoints\":[]}");
}

static void test_watch(void **state)
{
    static const struct scene scenes[] = {
        {"GET", "/v1/watch", NULL, NULL, {{LOOK, ROLES("4", "1", ONE)}}, 200, "epoch 4"},
        {"GET",
         "/v1/watch?after=4",
         NULL,
         NULL,
         {{WATCH, ROLES("4", "1", ONE)}, {WATCH, LOST}, {WATCH, ROLES("5", "1", ONE)}},
         200,
         "epoch 5"},
        {"GET",
         "/v1/watch?after=4",
         NULL,
         NULL,
         {{WATCH, "{\"t\":\"roles\",\"job\":12,\"epoch\":4}"}, {WATCH, ROLES("5", "1", ONE)}},
         200,
         "epoch 5"},
        /* The job has come back from the queue. */
        {"GET", "/v1/watch?after=4", NULL, NULL, {{WATCH, ROLES("0", "1", ONE)}}, 200, "epoch 0"},
        {"GET",
         "/v1/watch?after=4",
         NULL,
         NULL,
         {{WATCH, ROLES("4", "1", ONE)}},
         200,
         "nothing has changed"},
        {"GET",
         "/v1/watch?after=4",
         NULL,
         NULL,
         {{WATCH, LOST}},
         503,
         "no leader of the job answers"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(scenes); i++)
        check(&scenes[i]);
}

#define REPORT_0 "POST", "/v1/roles/a/replicas/a-0/report", "{\"path\":\"/d\"}", NULL
#define REPORT                                                                                     \
    "{\"t\":\"report\",\"role\":\"a\",\"replica\":\"a-0\",\"id\":\"77\","                          \
    "\"report\":\"{\\\"path\\\":\\\"\\/d\\\"}\"}"
#define AFTER_4 "{\"t\":\"reports\",\"after\":4}"
#define SHOWN(last, missed, list)                                                                  \
    "{\"t\":\"reports\",\"job\":12,\"first\":1,\"last\":" last ",\"missed\":" missed               \
    ",\"reports\":[" list "]}"

/* The leader knows a report that it is asked to keep again by its id. */
#define OF_SERVICE                                                                                 \
    "{\"t\":\"shards\",\"job\":7,\"service\":\"s\",\"epoch\":9,\"term\":2,"                        \
    "\"models\":[{\"name\":\"m\",\"key\":\"a/b\",\"routed\":2},{\"name\":\"n\"}],"                 \
    "\"shards\":[{\"name\":\"shard_1\"}]}"

static void test_service(void **state)
{
    static const struct scene scenes[] = {
        {"GET", "/v1/shards", NULL, NULL, {{SHARDS, OF_SERVICE}}, 200, "service s, epoch 9"},
        {"GET",
         "/v1/services",
         NULL,
         NULL,
         {{SHARDS, LOST}, {SHARDS, OF_SERVICE}},
         200,
         "service s, epoch 9"},
        {"GET", "/v1/shards", NULL, NULL, {{SHARDS, REFUSED("state")}}, 409, "refused"},
        {"GET",
         "/v1/shards",
         NULL,
         NULL,
         {{SHARDS, DONE}},
         502,
         "the leader has given an answer of another kind: 'done'"},
        {"POST",
         "/v1/shards/apply",
         NULL,
         NULL,
         {{"{\"t\":\"apply\"}", LOST},
          {"{\"t\":\"apply\"}", "{\"t\":\"done\",\"message\":\"it looks\"}"}},
         200,
         "it looks"},
        {"PUT",
         "/v1/shards/shard_2/models",
         "{\"models\":[\"a\",\"b\"]}",
         NULL,
         {{"{\"t\":\"place\",\"shard\":2,\"models\":[\"a\",\"b\"]}", LOST},
          {"{\"t\":\"place\",\"shard\":2,\"models\":[\"a\",\"b\"]}",
           "{\"t\":\"done\",\"message\":\"it has them\"}"}},
         200,
         "it has them"},
        {"PUT",
         "/v1/services/program",
         "{\"run\":[\"serve\"]}",
         NULL,
         {{"{\"t\":\"apply\",\"run\":[\"serve\"]}", REFUSED("limits")}},
         409,
         "refused"},
        {"PUT",
         "/v1/services/program",
         "{\"run\":[\"serve\"]}",
         NULL,
         {{"{\"t\":\"apply\",\"run\":[\"serve\"]}", REFUSED("denied")}},
         403,
         "refused"},
        {"PUT",
         "/v1/shards/shard_2/routes",
         "{\"keys\":[\"a:b\"]}",
         NULL,
         {{"{\"t\":\"place\",\"shard\":2,\"keys\":[\"a:b\"]}", REFUSED("state")}},
         409,
         "refused"},
        {"GET", "/v1/models", NULL, NULL, {{SHARDS, OF_SERVICE}}, 200, "service s, epoch 9"},
        {"GET", "/v1/models/m", NULL, NULL, {{SHARDS, OF_SERVICE}}, 200, "service s, epoch 9"},
        {"GET",
         "/v1/models/x",
         NULL,
         NULL,
         {{SHARDS, OF_SERVICE}},
         404,
         "service s has no model with the name 'x'"},
        {"GET",
         "/v1/routes/a/c",
         NULL,
         NULL,
         {{SHARDS, OF_SERVICE}},
         404,
         "service s has no model with the key 'a/c'"},
        {"PUT",
         "/v1/models/m",
         "{\"shard\":\"shard_3\"}",
         NULL,
         {{"{\"t\":\"move\",\"model\":\"m\",\"shard\":3}",
           "{\"t\":\"done\",\"message\":\"it moves\"}"}},
         200,
         "it moves"},
        {"PUT",
         "/v1/routes/a/b",
         NULL,
         NULL,
         {{"{\"t\":\"serve\",\"key\":\"a\\/b\"}", "{\"t\":\"done\",\"message\":\"ok\"}"}},
         200,
         "ok"},
        {"DELETE",
         "/v1/models/m",
         NULL,
         NULL,
         {{"{\"t\":\"withdraw\",\"model\":\"m\"}", REFUSED("unknown")}},
         404,
         "refused"},
        {"POST",
         "/v1/services/handover",
         NULL,
         NULL,
         {{"{\"t\":\"hand-over\"}", REFUSED("state")}},
         409,
         "refused"},
        {"POST",
         "/v1/shards/flush",
         NULL,
         NULL,
         {{"{\"t\":\"flush\"}", LOST}},
         503,
         "the leader has been asked, and has not answered: look whether it is done"},
    };
    struct api_reply reply;
    json_object *data;

    (void)state;
    for (size_t i = 0; i < COUNT(scenes); i++)
        check(&scenes[i]);
    play(&scenes[0], &reply);
    data = json_object_object_get(reply.body, "data");
    assert_string_equal(
        json_object_get_string(json_object_object_get(
            json_object_array_get_idx(json_object_object_get(data, "shards"), 0), "name")),
        "shard_1");
    api_reply_clear(&reply);
    play(&scenes[1], &reply);
    data = json_object_array_get_idx(
        json_object_object_get(json_object_object_get(reply.body, "data"), "services"), 0);
    assert_int_equal(json_object_get_int(json_object_object_get(data, "models")), 2);
    assert_int_equal(json_object_get_int(json_object_object_get(data, "term")), 2);
    api_reply_clear(&reply);
}

static void test_reports(void **state)
{
    static const struct scene scenes[] = {
        {REPORT_0, {{REPORT, "{\"t\":\"done\",\"number\":3}"}}, 200, "report 3"},
        {REPORT_0,
         {{REPORT, LOST}, {REPORT, LOST}, {REPORT, "{\"t\":\"done\",\"number\":3}"}},
         200,
         "report 3"},
        {REPORT_0, {{REPORT, LOST}}, 503, "no leader answers: the report may be kept, or not"},
        {REPORT_0, {{REPORT, REFUSED("unknown")}}, 404, "refused"},
        {REPORT_0, {{REPORT, REFUSED("bad")}}, 400, "refused"},
        {REPORT_0, {{REPORT, REFUSED("busy")}}, 503, "refused"},
        {REPORT_0, {{REPORT, REFUSED("unkept")}}, 500, "refused"},
        {REPORT_0, {{REPORT, DONE}}, 502, "the leader has given an answer of another kind: 'done'"},
        {"GET", "/v1/reports", NULL, NULL, {{REPORTS, SHOWN("0", "0", "")}}, 200, "0 reports"},
        {"GET",
         "/v1/reports?after=4",
         NULL,
         NULL,
         {{AFTER_4, SHOWN("4", "0", "")}, {AFTER_4, LOST}, {AFTER_4, SHOWN("5", "0", "{}")}},
         200,
         "1 report"},
        {"GET",
         "/v1/reports?after=4",
         NULL,
         NULL,
         {{AFTER_4, SHOWN("4", "0", "")}},
         200,
         "no reports"},
        {"GET",
         "/v1/reports?after=4",
         NULL,
         NULL,
         {{AFTER_4, SHOWN("9", "2", "{},{}")}},
         200,
         "2 reports; 2 before them are kept no more"},
        {"GET", "/v1/reports?after=4", NULL, NULL, {{AFTER_4, REFUSED("state")}}, 409, "refused"},
        {"GET",
         "/v1/reports?after=4",
         NULL,
         NULL,
         {{AFTER_4, LOST}},
         503,
         "no leader of the job answers"},
        {"GET",
         "/v1/reports",
         NULL,
         NULL,
         {{REPORTS, ROLES("4", "1", ONE)}},
         502,
         "the leader has given an answer of another kind: 'roles'"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(scenes); i++)
        check(&scenes[i]);
}

static void test_metrics(void **state)
{
    static const char asks[] = "{\"t\":\"metrics\"}";
    static const struct scene wrong = {"GET",
                                       "/metrics",
                                       NULL,
                                       NULL,
                                       {{asks, ROLES("4", "2", ONE)}},
                                       502,
                                       "the leader has given an answer of another kind: 'roles'"};
    struct scene scene = {
        "GET", "/metrics", NULL, NULL, {{asks, "{\"t\":\"metrics\",\"job\":12,\"size\":3}"}},
        200,   ""};
    struct api_reply reply;

    (void)state;
    check(&wrong);
    play(&scene, &reply);
    assert_null(reply.body);
    assert_non_null(strstr(reply.text, "# TYPE elastic_job_nodes gauge\n"
                                       "elastic_job_nodes{jobid=\"12\"} 3\n"));
    api_reply_clear(&reply);
}

/* A leader's text that is no name or address does not get into anybody's file. */
static void test_bad_answers(void **state)
{
    static const struct scene scene = {
        "GET",
        "/v1/endpoints",
        NULL,
        NULL,
        {{LOOK, "{\"t\":\"roles\",\"job\":12,\"epoch\":4,\"replicas\":[{\"name\":\"a\\n0\","
                "\"role\":\"a\",\"state\":\"ready\",\"tasks\":[{\"task\":0}]}]}"}},
        502,
        "job 12: its elasticrun names a replica 'a?0' of role 'a', task 0"};

    (void)state;
    check(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_lost_answers),
        cmocka_unit_test(test_others_change_it_too),
        cmocka_unit_test(test_others_always_change_it),
        cmocka_unit_test(test_what_is_read),
        cmocka_unit_test(test_watch),
        cmocka_unit_test(test_service),
        cmocka_unit_test(test_reports),
        cmocka_unit_test(test_metrics),
        cmocka_unit_test(test_bad_answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The interface of DI-orchestrator v1alpha1, byte for byte (lib/di_request.h, lib/di_call.h). The
 * requests are those that DI-engine's client sends. */
#include "lib/api_call.h"
#include "tests/unit/support.h"

#define LOST "lost"

struct turn {
    const char *question, *answer;
};

#define TURNS_MAX 10

struct scene {
    const char *method, *target, *body;
    struct turn turns[TURNS_MAX];
    int status;
    const char *reply; /* the whole body */
};

#define TASK(task, port)                                                                           \
    "{\"task\":" task ",\"node\":\"n1\",\"address\":\"10.0.0.1\",\"ports\":{\"p\":" port           \
    ",\"q\":1}}"
#define REPLICA(role, index, state, start, tasks)                                                  \
    "{\"name\":\"" role "-" index "\",\"role\":\"" role "\",\"state\":\"" state                    \
    "\",\"start\":" start ",\"tasks\":[" tasks "]}"
#define ROLE(name, min, max, target, tasks)                                                        \
    "{\"name\":\"" name "\",\"min\":" min ",\"max\":" max ",\"target\":" target                    \
    ",\"tasks\":" tasks "}"
#define ANSWER(compat, collectors, learners, replicas)                                             \
    "{\"t\":\"roles\",\"job\":4711,\"epoch\":4," compat                                            \
    "\"roles\":[" ROLE("coordinator", "1", "1", "1", "1") "," ROLE(                                \
        "collector", "1", "9", collectors,                                                         \
        "1") "," ROLE("learner", "0", "2", learners,                                               \
                      "2") "],\"replicas\":[" REPLICA("coordinator", "0", "ready", "1",            \
                                                      TASK("0", "30000")) replicas "]}"
#define COMPAT    "\"di_engine\":{\"settled\":true},"
#define UNSETTLED "\"di_engine\":{\"settled\":false},"

#define C0  "," REPLICA("collector", "0", "ready", "2", TASK("0", "31000"))
#define C1  "," REPLICA("collector", "1", "ready", "3", TASK("0", "31001"))
#define C2  "," REPLICA("collector", "2", "starting", "4", "")
#define L0  "," REPLICA("learner", "0", "ready", "5", TASK("0", "32000") "," TASK("1", "32001"))
#define ALL C0 C1 C2 L0

#define LOOK    "{\"t\":\"roles\"}"
#define USUAL   ANSWER(COMPAT, "3", "1", ALL)
#define DONE    "{\"t\":\"done\",\"message\":\"x\"}"
#define CHANGED "{\"t\":\"error\",\"code\":\"changed\",\"message\":\"other\"}"
#define ENDS    "{\"t\":\"error\",\"code\":\"state\",\"message\":\"job 4711 is ending\"}"
#define SCALE(role, count, expect)                                                                 \
    "{\"t\":\"scale\",\"role\":\"" role "\",\"count\":" count ",\"expect\":" expect "}"
#define SCALE_TO(role, count, expect, needs)                                                       \
    "{\"t\":\"scale\",\"role\":\"" role "\",\"count\":" count ",\"expect\":" expect                \
    ",\"needs\":{" needs "}}"
#define FAIL(name)                                                                                 \
    "{\"t\":\"fail\",\"replica\":\"" name                                                          \
    "\",\"reason\":\"its coordinator says that it has failed\"}"

#define PATH      "/v1alpha1/replicas"
#define OF(query) "/v1alpha1/replicas?namespace=4711&" query
#define GOOD(verb, data)                                                                           \
    "{\"success\":true,\"code\":0,\"message\":\"successfully " verb " replicas\",\"data\":" data "}"
#define BAD(message) "{\"success\":false,\"code\":1,\"message\":\"" message "\",\"data\":null}"
#define LIST                                                                                       \
    "{\"namespace\":\"4711\",\"coordinator\":\"coordinator-0\",\"collectors\":["                   \
    "\"collector-0.4711:31000\",\"collector-1.4711:31001\"],\"learners\":["                        \
    "\"learner-0.4711:32000\"]}"

#define ADD                                                                                        \
    "{\"collectors\": {\"replicas\": 2}, \"learners\": {\"gpus\": \"0\", \"replicas\": 1}, "       \
    "\"namespace\": \"4711\", \"coordinator\": \"coordinator-0\"}"
#define REMOVE                                                                                     \
    "{\"namespace\": \"4711\", \"coordinator\": \"coordinator-0\", "                               \
    "\"collectors\": {\"replicas\": 1}, \"learners\": {\"replicas\": 1}}"
#define WHO    "\"namespace\": \"4711\", \"coordinator\": \"coordinator-0\", "
#define FAILED "{" WHO "\"collectors\": [\"collector-1\"], \"learners\": []}"

static void play(const struct scene *scene, struct api_reply *reply)
{
    const struct api_input input = {.method = scene->method,
                                    .target = scene->target,
                                    .body = scene->body,
                                    .body_size = scene->body != NULL ? strlen(scene->body) : 0};
    enum api_step step = API_ASK;
    struct api_request request;
    struct api_call *call;

    *reply = (struct api_reply){0};
    assert_int_equal(api_request_read(&input, &request, reply), 0);
    call = api_call_create(&request);
    assert_non_null(call);
    for (const struct turn *turn = scene->turns; turn->question != NULL; turn++) {
        json_object *question = api_call_question(call), *answer = NULL;

        assert_int_not_equal(step, API_DONE);
        assert_string_equal(json_object_to_json_string_ext(question, JSON_C_TO_STRING_PLAIN),
                            turn->question);
        assert_int_equal(api_call_looks(call), strcmp(turn->question, LOOK) == 0);
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

static void check(const struct scene *scene)
{
    struct api_reply reply;
    const char *text;

    play(scene, &reply);
    text = json_object_to_json_string_ext(reply.body,
                                          JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
    if (reply.status != scene->status || strcmp(text, scene->reply) != 0)
        fail_msg("%s %s %s\nis:       %d %s\nexpected: %d %s", scene->method, scene->target,
                 scene->body != NULL ? scene->body : "", reply.status, text, scene->status,
                 scene->reply);
    api_reply_clear(&reply);
}

static void test_lists(void **state)
{
    static const struct scene scenes[] = {
        {"GET", OF("coordinator=coordinator-0"), "{}", {{LOOK, USUAL}}, 200, GOOD("get", LIST)},
        {"GET", OF("coordinator=coordinator-0"), NULL, {{LOOK, USUAL}}, 200, GOOD("get", LIST)},
        {"GET", OF("Coordinator=coordinator-0"), "x", {{LOOK, USUAL}}, 200, GOOD("get", LIST)},
        {"GET", OF("name=collector-1"), "{}", {{LOOK, USUAL}}, 200, GOOD("get", "null")},
        {"GET", PATH, "{}", {{LOOK, USUAL}}, 200, GOOD("get", "[" LIST "]")},
        {"GET", OF(""), "{}", {{LOOK, USUAL}}, 200, GOOD("get", "[" LIST "]")},
        {"GET", PATH "?namespace=1", "{}", {{LOOK, USUAL}}, 200, GOOD("get", "[]")},
        {"GET",
         OF("coordinator=coordinator-0"),
         "{}",
         {{LOOK, ANSWER(COMPAT, "3", "1", C2)}},
         200,
         GOOD("get", "{\"namespace\":\"4711\",\"coordinator\":\"coordinator-0\","
                     "\"collectors\":[],\"learners\":[]}")},
        /* A new leader does not know yet what runs. */
        {"GET",
         OF("coordinator=coordinator-0"),
         "{}",
         {{LOOK, ANSWER(UNSETTLED, "3", "1", "")}, {LOOK, LOST}, {LOOK, USUAL}},
         200,
         GOOD("get", LIST)},
        {"GET",
         OF("coordinator=coordinator-9"),
         "{}",
         {{LOOK, USUAL}},
         404,
         BAD("there is no coordinator 'coordinator-9' in namespace '4711'")},
        {"GET",
         PATH "?namespace=1&coordinator=coordinator-0",
         "{}",
         {{LOOK, USUAL}},
         404,
         BAD("there is no coordinator 'coordinator-0' in namespace '1'")},
        {"GET",
         OF("aggregator=aggregator-0"),
         "{}",
         {{LOOK, USUAL}},
         404,
         BAD("there is no aggregator 'aggregator-0' in namespace '4711'")},
        {"GET",
         OF("Color=red"),
         "{}",
         {{LOOK, USUAL}},
         400,
         BAD("request param Color is not supported")},
        {"GET", PATH, "{}", {{LOOK, LOST}}, 503, BAD("no leader of the job answers")},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(scenes); i++)
        check(&scenes[i]);
}

static void test_creates(void **state)
{
    static const struct scene scenes[] = {
        {"POST",
         PATH,
         ADD,
         {{LOOK, USUAL},
          {SCALE("collector", "5", "3"), DONE},
          {SCALE("learner", "2", "1"), DONE},
          {LOOK, USUAL}},
         200,
         GOOD("create", LIST)},
        /* Keys in any case, unknown ones, quantities. */
        {"POST",
         PATH,
         "{\"NameSpace\":\"4711\",\"Coordinator\":\"coordinator-0\",\"other\":{},"
         "\"Collectors\":{\"Replicas\":1,\"cpu\":7,\"cpus\":\"2000m\",\"gpus\":0,"
         "\"memory\":\"200Mi\"},\"learners\":null}",
         {{LOOK, USUAL},
          {SCALE_TO("collector", "4", "3", "\"cpus\":2,\"memory\":200"), DONE},
          {LOOK, USUAL}},
         200,
         GOOD("create", LIST)},
        /* They are for the whole replica: each of its tasks gets a share, in whole numbers. */
        {"POST",
         PATH,
         "{" WHO "\"learners\":{\"replicas\":1,\"cpus\":\"0.5\",\"gpus\":1,\"memory\":\"1Gi\"}}",
         {{LOOK, USUAL},
          {SCALE_TO("learner", "2", "1", "\"cpus\":1,\"gpus\":1,\"memory\":512"), DONE},
          {LOOK, LOST}},
         200,
         "{\"success\":true,\"code\":0,\"message\":\"successfully create replicas: gpus of a "
         "learner: 2, not 1; cpus of a learner: 2, not 0.5\",\"data\":null}"},
        {"POST", PATH, "{" WHO "\"collectors\":{}}", {{LOOK, USUAL}}, 200, GOOD("create", LIST)},
        /* Nothing is done if something cannot be. */
        {"POST",
         PATH,
         "{" WHO "\"collectors\":{\"replicas\":1},\"learners\":{\"replicas\":2}}",
         {{LOOK, USUAL}},
         409,
         BAD("3 replicas of learner: allowed are 0 to 2")},
        {"POST",
         PATH,
         "{\"namespace\":\"4711\",\"collectors\":{\"replicas\":1}}",
         {{LOOK, USUAL}},
         404,
         BAD("there is no coordinator '' in namespace '4711'")},
        {"POST",
         PATH,
         ADD,
         {{LOOK, USUAL}, {SCALE("collector", "5", "3"), ENDS}},
         409,
         BAD("job 4711 is ending")},
        {"POST",
         PATH,
         ADD,
         {{LOOK, USUAL}, {SCALE("collector", "5", "3"), LOST}},
         503,
         BAD("the leader has been asked, and has not answered")},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(scenes); i++)
        check(&scenes[i]);
}

static void test_deletes(void **state)
{
    static const struct scene scenes[] = {
        {"DELETE",
         PATH,
         REMOVE,
         {{LOOK, USUAL},
          {SCALE("collector", "2", "3"), DONE},
          {SCALE("learner", "0", "1"), DONE},
          {LOOK, USUAL}},
         200,
         GOOD("delete", LIST)},
        {"DELETE",
         PATH,
         "{" WHO "\"collectors\":{\"replicas\":5},\"learners\":{\"replicas\":0}}",
         {{LOOK, USUAL}, {SCALE("collector", "1", "3"), DONE}, {LOOK, USUAL}},
         200,
         "{\"success\":true,\"code\":0,\"message\":\"successfully delete replicas: 2 of 5, as 1 "
         "of collector are guaranteed\",\"data\":" LIST "}"},
        {"DELETE",
         PATH,
         "{" WHO "\"collectors\":{\"replicas\":1}}",
         {{LOOK, ANSWER(COMPAT, "1", "1", C0)}},
         409,
         BAD("no replica can be deleted: 0 of 1, as 1 of collector are guaranteed")},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(scenes); i++)
        check(&scenes[i]);
}

static void test_failures(void **state)
{
    static const char again[] = ANSWER(COMPAT, "3", "1",
                                       C0 "," REPLICA("collector", "1", "starting", "9", "") L0);
    static const struct scene scenes[] = {
        {"POST",
         PATH "/failed",
         FAILED,
         {{LOOK, USUAL}, {FAIL("collector-1"), DONE}, {LOOK, USUAL}},
         200,
         GOOD("recreate", LIST)},
        /* Each once, of any kind; one that does not run is replaced already. */
        {"POST",
         PATH "/failed",
         "{" WHO "\"collectors\":[\"collector-1\",\"collector-1\",\"collector-3\"],"
         "\"learners\":[\"learner-0\",\"collector-1\"]}",
         {{LOOK, ANSWER(COMPAT, "4", "1", ALL "," REPLICA("collector", "3", "failed", "6", ""))},
          {FAIL("collector-1"), DONE},
          {FAIL("learner-0"), DONE},
          {LOOK, USUAL}},
         200,
         GOOD("recreate", LIST)},
        {"POST",
         PATH "/failed",
         "{" WHO "\"collectors\":[],\"learners\":null}",
         {{LOOK, USUAL}},
         200,
         GOOD("recreate", LIST)},
        /* Nothing is done for the one that is there. */
        {"POST",
         PATH "/failed",
         "{" WHO "\"collectors\":[\"collector-1\",\"collector-7\"]}",
         {{LOOK, USUAL}},
         404,
         BAD("there is no collector or learner 'collector-7'")},
        {"POST",
         PATH "/failed",
         "{" WHO "\"collectors\":[\"coordinator-0\"]}",
         {{LOOK, USUAL}},
         404,
         BAD("there is no collector or learner 'coordinator-0'")},
        /* It has ended by itself in the meantime. */
        {"POST",
         PATH "/failed",
         FAILED,
         {{LOOK, USUAL}, {FAIL("collector-1"), ENDS}, {LOOK, again}, {LOOK, USUAL}},
         200,
         GOOD("recreate", LIST)},
        {"POST",
         PATH "/failed",
         FAILED,
         {{LOOK, USUAL}, {FAIL("collector-1"), ENDS}, {LOOK, USUAL}},
         409,
         BAD("job 4711 is ending")},
        /* The answer is lost: it had been made, and it had not. */
        {"POST",
         PATH "/failed",
         FAILED,
         {{LOOK, USUAL}, {FAIL("collector-1"), LOST}, {LOOK, again}, {LOOK, USUAL}},
         200,
         GOOD("recreate", LIST)},
        {"POST",
         PATH "/failed",
         FAILED,
         {{LOOK, USUAL},
          {FAIL("collector-1"), LOST},
          {LOOK, USUAL},
          {FAIL("collector-1"), DONE},
          {LOOK, USUAL}},
         200,
         GOOD("recreate", LIST)},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(scenes); i++)
        check(&scenes[i]);
}

/* Each size is changed once, whatever becomes of leaders. */
static void test_lost_answers(void **state)
{
    static const struct scene scenes[] = {
        {"POST",
         PATH,
         ADD,
         {{LOOK, USUAL},
          {SCALE("collector", "5", "3"), LOST},
          {LOOK, ANSWER(UNSETTLED, "5", "1", "")},
          {LOOK, ANSWER(COMPAT, "5", "1", ALL)},
          {SCALE("learner", "2", "1"), LOST},
          {LOOK, ANSWER(COMPAT, "5", "1", ALL)},
          {SCALE("learner", "2", "1"), DONE},
          {LOOK, USUAL}},
         200,
         GOOD("create", LIST)},
        {"POST",
         PATH,
         ADD,
         {{LOOK, USUAL},
          {SCALE("collector", "5", "3"), LOST},
          {LOOK, ANSWER(COMPAT, "7", "1", ALL)}},
         409,
         BAD("collector: somebody else changes its size, which is 7 now")},
        {"POST",
         PATH,
         ADD,
         {{LOOK, USUAL},
          {SCALE("collector", "5", "3"), CHANGED},
          {LOOK, ANSWER(COMPAT, "4", "1", ALL)},
          {SCALE("collector", "6", "4"), DONE},
          {SCALE("learner", "2", "1"), DONE},
          {LOOK, USUAL}},
         200,
         GOOD("create", LIST)},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(scenes); i++)
        check(&scenes[i]);
}

#define DECODE(message) BAD("failed to decode request body: " message)

static void test_what_is_refused(void **state)
{
    static const struct {
        const char *method, *target, *body;
        int status;
        const char *reply;
    } cases[] = {
        {"PATCH", PATH, "{}", 501, BAD("PATCH not implemented")},
        {"PUT", PATH, NULL, 501, BAD("PUT not implemented")},
        {"GET", PATH "/failed", NULL, 501, BAD("GET not implemented")},
        {"POST", PATH, NULL, 400, DECODE("EOF")},
        {"DELETE", PATH, "", 400, DECODE("EOF")},
        {"POST", PATH, "{\"namespace\":4711}", 400, DECODE("namespace: a text is expected")},
        {"POST", PATH, "{\"collectors\":[]}", 400, DECODE("collectors: an object is expected")},
        {"POST", PATH "/failed", "{\"learners\":{}}", 400,
         DECODE("learners: a list of names is expected")},
        {"POST", PATH "/failed", "{\"learners\":[1]}", 400,
         DECODE("learners: a list of names is expected")},
        {"POST", PATH, "{\"learners\":{\"replicas\":\"1\"}}", 400,
         DECODE("replicas: a whole number from 0 to 10000 is expected")},
        {"POST", PATH, "{\"learners\":{\"replicas\":-1}}", 400,
         DECODE("replicas: a whole number from 0 to 10000 is expected")},
        {"POST", PATH, "{\"learners\":{\"gpus\":\"many\"}}", 400,
         DECODE("gpus: a quantity such as 2, 500m or 200Mi is expected")},
        {"POST", PATH, "{\"learners\":{\"memory\":\"0x2\"}}", 400,
         DECODE("memory: a quantity such as 2, 500m or 200Mi is expected")},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct scene scene = {cases[i].method, cases[i].target, cases[i].body,
                                    {{LOOK, USUAL}}, cases[i].status, cases[i].reply};

        check(&scene);
    }
}

/* A job without compat: the path is as unknown as any other. */
static void test_other_jobs(void **state)
{
    static const char *const bodies[] = {"{}", "x", ADD};

    (void)state;
    for (size_t i = 0; i < COUNT(bodies); i++) {
        const struct scene scene = {
            "POST",
            PATH,
            bodies[i],
            {{LOOK, ANSWER("", "3", "1", ALL)}},
            404,
            "{\"success\":false,\"code\":404,\"message\":\"there is no '/v1alpha1/replicas'\","
            "\"data\":null}"};

        check(&scene);
    }
}

static void test_paths(void **state)
{
    static const char *const others[] = {"/v1alpha1", PATH "/", PATH "x", PATH "/failed/",
                                         "/v2alpha1/replicas"};

    (void)state;
    for (size_t i = 0; i < COUNT(others); i++) {
        const struct api_input input = {.method = "GET", .target = others[i]};
        struct api_request request;
        struct api_reply reply = {0};

        assert_int_equal(api_request_read(&input, &request, &reply), -1);
        assert_int_equal(reply.status, 404);
        api_reply_clear(&reply);
    }
}

/* ---- aggregators ----------------------------------------------------------------------------- */

#define OWNED(index, owner, state, tasks)                                                          \
    "{\"name\":\"learner-" index "\",\"role\":\"learner\",\"state\":\"" state "\",\"start\":9,"    \
    "\"owner\":\"" owner "\",\"tasks\":[" tasks "]}"
#define PAIRS(target, owned, more)                                                                 \
    "{\"t\":\"roles\",\"job\":4711,\"epoch\":4," COMPAT                                            \
    "\"roles\":[" ROLE("coordinator", "1", "1", "1", "1") "," ROLE(                                \
        "collector", "0", "9", "0",                                                                \
        "1") ","                                                                                   \
             "{\"name\":\"learner\",\"min\":0,\"max\":9,\"target\":" target                        \
             ",\"tasks\":1,\"owned\":" owned                                                       \
             "}," ROLE("aggregator", "0", "9", owned, "1") "],\"replicas\":[" REPLICA(             \
                 "coordinator", "0", "ready", "1", TASK("0", "30000")) more "]}"
#define A0   "," REPLICA("aggregator", "0", "ready", "6", TASK("0", "33000"))
#define A1   "," REPLICA("aggregator", "1", "ready", "7", TASK("0", "33100"))
#define GANG "," OWNED("1", "aggregator-0", "ready", TASK("0", "34000") "," TASK("1", "34001"))
#define SOON "," OWNED("2", "aggregator-1", "starting", TASK("0", "0"))
#define ONE  "," REPLICA("learner", "0", "ready", "5", TASK("0", "32000"))
/* A plain learner, a logic learner, and one whose gang is not ready. */
#define MIXED      PAIRS("3", "2", ONE A0 A1 GANG SOON)
#define SEEN(list) "{\"namespace\":\"4711\",\"coordinator\":" list "]}"
#define LEARNERS                                                                                   \
    SEEN("\"coordinator-0\",\"collectors\":[],\"learners\":[\"learner-0.4711:32000\","             \
         "\"aggregator-0.4711:33000\"")
#define DDP                                                                                        \
    SEEN("\"aggregator-0\",\"collectors\":[],\"learners\":[\"learner-1.4711:34000\","              \
         "\"learner-1.1.4711:34001\"")
#define LEARNERS_OF(count, gpus)                                                                   \
    "{" WHO "\"learners\":{\"replicas\":" count ",\"gpus\":\"" gpus "\"}}"

/* The coordinator sees logic learners only, the aggregator its own processes. */
static void test_pairs_are_seen(void **state)
{
    static const struct scene scenes[] = {
        {"GET", OF("coordinator=coordinator-0"), "{}", {{LOOK, MIXED}}, 200, GOOD("get", LEARNERS)},
        {"GET", OF("aggregator=aggregator-0"), "{}", {{LOOK, MIXED}}, 200, GOOD("get", DDP)},
        {"GET",
         OF("aggregator=aggregator-1"),
         "{}",
         {{LOOK, MIXED}},
         200,
         GOOD("get", SEEN("\"aggregator-1\",\"collectors\":[],\"learners\":["))},
        {"GET",
         OF("aggregator=aggregator-0&coordinator=coordinator-0"),
         "{}",
         {{LOOK, MIXED}},
         200,
         GOOD("get", LEARNERS)},
        {"GET",
         OF("aggregator=learner-1"),
         "{}",
         {{LOOK, MIXED}},
         404,
         BAD("there is no aggregator 'learner-1' in namespace '4711'")},
        {"GET",
         PATH "?namespace=1&aggregator=aggregator-0",
         "{}",
         {{LOOK, MIXED}},
         404,
         BAD("there is no aggregator 'aggregator-0' in namespace '1'")},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(scenes); i++)
        check(&scenes[i]);
}

/* The numbers of learners and GPUs are those of the test of DI-orchestrator's server. How the gangs
 * are spread is in test_majority.c, that there is an aggregator for each in test_reconcile.c. */
static void test_pairs_are_made(void **state)
{
    static const char empty[] = PAIRS("0", "0", "");
    static const struct scene scenes[] = {
        {"POST",
         PATH,
         LEARNERS_OF("1", "1"),
         {{LOOK, empty}, {SCALE_TO("learner", "1", "0", "\"gpus\":1"), DONE}, {LOOK, MIXED}},
         200,
         GOOD("create", LEARNERS)},
        {"POST",
         PATH,
         LEARNERS_OF("1", "2"),
         {{LOOK, empty}, {SCALE_TO("learner", "1", "0", "\"processes\":2"), DONE}, {LOOK, MIXED}},
         200,
         GOOD("create", LEARNERS)},
        {"POST",
         PATH,
         LEARNERS_OF("1", "10"),
         {{LOOK, empty}, {SCALE_TO("learner", "1", "0", "\"processes\":10"), DONE}, {LOOK, MIXED}},
         200,
         GOOD("create", LEARNERS)},
        {"POST",
         PATH,
         LEARNERS_OF("2", "2"),
         {{LOOK, empty}, {SCALE_TO("learner", "2", "0", "\"processes\":2"), DONE}, {LOOK, MIXED}},
         200,
         GOOD("create", LEARNERS)},
        /* The other needs are shared by the processes. */
        {"POST",
         PATH,
         "{" WHO "\"learners\":{\"replicas\":1,\"cpus\":8,\"gpus\":1.5,\"memory\":\"4Gi\"}}",
         {{LOOK, empty},
          {SCALE_TO("learner", "1", "0", "\"cpus\":4,\"memory\":2048,\"processes\":2"), DONE},
          {LOOK, MIXED}},
         200,
         GOOD("create", LEARNERS)},
        /* Without aggregators nothing is done, also not for collectors. */
        {"POST",
         PATH,
         "{" WHO "\"collectors\":{\"replicas\":1},\"learners\":{\"replicas\":1,\"gpus\":2}}",
         {{LOOK, USUAL}},
         409,
         BAD("a learner with more than one GPU needs a role 'aggregator', of the job file or of "
             "the site's template")},
        {"POST",
         PATH,
         LEARNERS_OF("1", "1025"),
         {{LOOK, empty}},
         409,
         BAD("1025 GPUs of a learner: up to 1024 are allowed")},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(scenes); i++)
        check(&scenes[i]);
}

static void test_pairs_end(void **state)
{
    static const struct scene scenes[] = {
        /* Aggregators go only if there is no plain learner. */
        {"DELETE",
         PATH,
         "{" WHO "\"learners\":{\"replicas\":3}}",
         {{LOOK, MIXED}, {SCALE("learner", "2", "3"), DONE}, {LOOK, MIXED}},
         200,
         "{\"success\":true,\"code\":0,\"message\":\"successfully delete replicas: 1 of 3, as "
         "aggregators go last\",\"data\":" LEARNERS "}"},
        {"DELETE",
         PATH,
         "{" WHO "\"learners\":{\"replicas\":1}}",
         {{LOOK, PAIRS("2", "2", A0 A1 GANG SOON)},
          {SCALE("learner", "1", "2"), DONE},
          {LOOK, MIXED}},
         200,
         GOOD("delete", LEARNERS)},
        {"POST",
         PATH "/failed",
         "{" WHO "\"collectors\":[],\"learners\":[\"aggregator-0\"]}",
         {{LOOK, MIXED}, {FAIL("aggregator-0"), DONE}, {LOOK, MIXED}},
         200,
         GOOD("recreate", LEARNERS)},
        /* Of an aggregator: its processes are of one gang. */
        {"POST",
         PATH "/failed",
         "{\"namespace\":\"4711\",\"coordinator\":\"aggregator-0\",\"collectors\":[],"
         "\"learners\":[\"learner-1.1\",\"learner-1\"]}",
         {{LOOK, MIXED}, {FAIL("learner-1"), DONE}, {LOOK, MIXED}},
         200,
         GOOD("recreate", DDP)},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(scenes); i++)
        check(&scenes[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),          cmocka_unit_test(test_creates),
        cmocka_unit_test(test_deletes),        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_lost_answers),   cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_other_jobs),     cmocka_unit_test(test_paths),
        cmocka_unit_test(test_pairs_are_seen), cmocka_unit_test(test_pairs_are_made),
        cmocka_unit_test(test_pairs_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

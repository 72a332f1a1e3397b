/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A run of MLflow: requests, answers of good, slow and hostile servers, and what waits
 * (lib/mlflow). */
#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/mlflow.h"
#include "lib/text.h"
#include "tests/unit/support.h"

#define RUN "0123456789abcdef0123456789abcdef"

static struct mlflow *new_run(const char *wanted, const char *kept)
{
    struct mlflow *m = mlflow_create(&(struct mlflow_options){.identity = "cluster/12/1700000000",
                                                              .experiment = "digits & co",
                                                              .run_name = "train 12",
                                                              .user = "ada",
                                                              .run_id = wanted,
                                                              .kept_id = kept});

    assert_non_null(m);
    return m;
}

/* What is asked now; NULL: nothing. */
static const char *asks(struct mlflow *m, double now, json_object **body)
{
    struct mlflow_request request;
    static char path[1024];

    if (!mlflow_next(m, now, &request))
        return NULL;
    assert_int_equal(strncmp(request.path, "api/2.0/mlflow/", 15), 0);
    snprintf(path, sizeof(path), "%s", request.path + 15);
    if (body != NULL) {
        json_object_put(*body);
        *body = NULL;
        if (request.body != NULL)
            *body = json_text_parse(request.body, strlen(request.body), NULL);
    }
    return path;
}

static void answer(struct mlflow *m, int status, const char *text, double now)
{
    mlflow_answered(m, status, text, text != NULL ? strlen(text) : 0, now);
}

/* Each step: the path that is asked, and what the server says. */
struct step {
    const char *path;
    int status;
    const char *text;
};

static void walk(struct mlflow *m, const struct step *steps, double now)
{
    for (; steps->path != NULL; steps++) {
        const char *path = asks(m, now, NULL);

        if (path == NULL || strcmp(path, steps->path) != 0)
            fail_msg("%s is asked in place of %s", path != NULL ? path : "nothing", steps->path);
        assert_null(asks(m, now, NULL)); /* one at a time */
        answer(m, steps->status, steps->text, now);
        if (steps->status == 404 && !mlflow_over(m)) /* what is not there is made */
            assert_string_equal(mlflow_trouble(m), "");
    }
}

#define BY_NAME "experiments/get-by-name?experiment_name=digits%20%26%20co"

static const struct step begins[] = {
    {BY_NAME, 404, "{\"error_code\": \"RESOURCE_DOES_NOT_EXIST\"}"},
    {"experiments/create", 200, "{\"experiment_id\": \"7\"}"},
    {"runs/search", 200, "{}"},
    {"runs/create", 200, "{\"run\": {\"info\": {\"run_id\": \"" RUN "\"}}}"},
    {NULL, 0, NULL},
};

static json_object *state_of(const char *text)
{
    json_object *state = json_tokener_parse(text);

    assert_non_null(state);
    return state;
}

static void take(struct mlflow *m, const char *text, double now)
{
    json_object *state = state_of(text);

    mlflow_take(m, state, now);
    json_object_put(state);
}

#define STATE(size, steps)                                                                         \
    "{\"job\": 12, \"incarnation\": \"12.0\", \"user\": \"ada\", \"sizes\": \"2:4\", "             \
    "\"phase\": \"running\", \"size\": " #size ", \"world_size\": " #size ", \"generation\": 1, "  \
    "\"restarts\": 0, \"steps\": " #steps ", \"leader\": \"n1\", "                                 \
    "\"pools\": [{\"pool\": \"a\"}, {\"pool\": \"b\"}], \"policy\": {\"grace\": 600, "             \
    "\"mlflow_tracking_uri\": \"http://x\"}, \"measures\": {\"time\": {\"waiting\": 1, "           \
    "\"changing\": 1, \"productive\": 6, \"repeated\": 0}}, \"history\": ["                        \
    "{\"generation\": 1, \"time\": 1700000000, \"kind\": \"start\", \"size\": " #size ", "         \
    "\"reason\": \"first\", \"pause\": 0.5}]}"

static double metric_of(json_object *body, const char *key)
{
    json_object *metrics;

    assert_true(json_object_object_get_ex(body, "metrics", &metrics));
    for (size_t i = 0; i < json_object_array_length(metrics); i++)
        if (strcmp(json_get_string(json_object_array_get_idx(metrics, i), "key"), key) == 0)
            return json_get_double(json_object_array_get_idx(metrics, i), "value", -1);
    return -1;
}

static const char *pair_of(json_object *body, const char *list, const char *key)
{
    json_object *tags;

    assert_true(json_object_object_get_ex(body, list, &tags));
    for (size_t i = 0; i < json_object_array_length(tags); i++)
        if (strcmp(json_get_string(json_object_array_get_idx(tags, i), "key"), key) == 0)
            return json_get_string(json_object_array_get_idx(tags, i), "value");
    return NULL;
}

static void test_a_new_run(void **state)
{
    struct mlflow *m = new_run(NULL, NULL);
    json_object *body = NULL;

    (void)state;
    assert_null(mlflow_run(m));
    walk(m, begins, 100);
    assert_string_equal(mlflow_run(m), RUN);
    assert_true(mlflow_confirmed(m));
    assert_null(asks(m, 100, NULL)); /* the leader has said nothing yet */

    take(m, STATE(2, 0), 101);
    assert_string_equal(asks(m, 101, &body), "runs/log-batch");
    assert_string_equal(pair_of(body, "params", "elastic.grace"), "600");
    assert_string_equal(pair_of(body, "params", "elastic.user"), "ada");
    assert_null(pair_of(body, "params", "elastic.mlflow_tracking_uri"));
    answer(m, 200, "{}", 101);

    assert_string_equal(asks(m, 101, &body), "runs/log-batch");
    assert_true(metric_of(body, "elastic/nodes") == 2);
    assert_true(metric_of(body, "elastic/goodput") == 0.75);
    assert_true(metric_of(body, "elastic/pause_seconds") == 0.5);
    assert_true(metric_of(body, "elastic/steps_per_second") == -1); /* not known yet */
    assert_string_equal(pair_of(body, "tags", "elastic.pools"), "a,b");
    assert_string_equal(pair_of(body, "tags", "elastic.event.12.0.000001"),
                        "2023-11-14T22:13:20Z start: 2 nodes: first");
    answer(m, 200, "{}", 101);
    assert_null(asks(m, 101, NULL));

    take(m, STATE(3, 50), 111); /* what is as before is not sent again */
    assert_string_equal(asks(m, 111, &body), "runs/log-batch");
    assert_true(metric_of(body, "elastic/nodes") == 3);
    assert_true(metric_of(body, "elastic/steps_per_second") == 5);
    assert_true(metric_of(body, "elastic/generation") == -1);
    assert_true(metric_of(body, "elastic/pause_seconds") == -1);
    assert_null(pair_of(body, "tags", "elastic.pools"));
    answer(m, 200, "{}", 111);

    take(m, STATE(3, 50), 170); /* … but once a minute */
    assert_string_equal(asks(m, 170, &body), "runs/log-batch");
    assert_true(metric_of(body, "elastic/generation") == 1);
    answer(m, 200, "{}", 170);

    mlflow_end(m, MLFLOW_FINISHED, 171);
    assert_string_equal(asks(m, 171, &body), "runs/update");
    assert_string_equal(json_get_string(body, "status"), "FINISHED");
    assert_false(mlflow_over(m));
    answer(m, 200, "{}", 171);
    assert_true(mlflow_over(m));
    json_object_put(body);
    mlflow_destroy(m);
}

#define ACTIVE  "{\"run\": {\"info\": {\"run_id\": \"r1\", \"lifecycle_stage\": \"active\"}}}"
#define DELETED "{\"run\": {\"info\": {\"run_id\": \"r1\", \"lifecycle_stage\": \"deleted\"}}}"
#define EXP     "{\"experiment\": {\"experiment_id\": \"0\", \"lifecycle_stage\": \"active\"}}"

/* What a server may say of the run, and which run the job has then. */
static void test_which_run(void **state)
{
    static const struct {
        const char *wanted, *kept;
        struct step steps[6];
        const char *run, *trouble; /* run NULL: none at all */
    } cases[] = {
        {"r1", NULL, {{"runs/get?run_id=r1", 200, ACTIVE}, {"runs/update", 200, "{}"}}, "r1", ""},
        {"r1", "r2", {{"runs/get?run_id=r1", 200, ACTIVE}}, "r1", ""},
        {"r1", NULL, {{"runs/get?run_id=r1", 404, "{}"}}, NULL, "has no such run"},
        {"r1", NULL, {{"runs/get?run_id=r1", 200, DELETED}}, NULL, "has been deleted"},
        {NULL, "r1", {{"runs/get?run_id=r1", 200, ACTIVE}}, "r1", ""},
        {NULL,
         "r1",
         {{"runs/get?run_id=r1", 200, ACTIVE}, {"runs/update", 400, "{}"}},
         "r1",
         "400"},
        {NULL,
         "r1",
         {{"runs/get?run_id=r1", 404, "{}"},
          {BY_NAME, 200, EXP},
          {"runs/search", 200, "{\"runs\": [{\"info\": {\"run_id\": \"r9\"}}]}"}},
         "r9",
         ""},
        {NULL,
         "r1",
         {{"runs/get?run_id=r1", 200, DELETED},
          {BY_NAME, 200, EXP},
          {"runs/search", 200, "{\"runs\": []}"},
          {"runs/create", 200, "{\"run\": {\"info\": {\"run_id\": \"r3\"}}}"}},
         "r3",
         ""},
        {NULL, "../etc", {{BY_NAME, 200, EXP}, {"runs/search", 403, "{}"}}, "", "403"},
        {NULL,
         NULL,
         {{BY_NAME, 404, "{}"},
          {"experiments/create", 400, "{\"message\": \"it is there\"}"},
          {BY_NAME, 200, EXP}},
         "",
         ""},
        {NULL,
         NULL,
         {{BY_NAME, 404, "{}"},
          {"experiments/create", 400, "{}"},
          {BY_NAME, 404, "{}"},
          {"experiments/create", 400, "{\"message\": \"no\\u001b[2Jway\"}"}},
         NULL,
         "(400: no?[2Jway)"},
        {NULL,
         NULL,
         {{BY_NAME, 200,
           "{\"experiment\": {\"experiment_id\": \"1\", \"lifecycle_stage\": \"deleted\"}}"}},
         NULL,
         "experiment has been deleted"},
        {NULL, NULL, {{BY_NAME, 400, "{\"message\": \"bad\"}"}}, NULL, "(400: bad)"},
        {NULL,
         NULL,
         {{BY_NAME, 200, EXP}, {"runs/search", 200, "{}"}, {"runs/create", 400, "[]"}},
         NULL,
         "refuses it (400)"},
        /* Ids that could lead elsewhere. */
        {NULL,
         NULL,
         {{BY_NAME, 200, "{\"experiment\": {\"experiment_id\": \"../1\"}}"}},
         "",
         "does not answer as one"},
        {NULL,
         NULL,
         {{BY_NAME, 200, EXP},
          {"runs/search", 200, "{}"},
          {"runs/create", 200, "{\"run\": {\"info\": {\"run_id\": \"a\\nB=1\"}}}"}},
         "",
         "does not answer as one"},
        {NULL, NULL, {{BY_NAME, 200, "<html>"}}, "", "does not answer as one"},
        {NULL, NULL, {{BY_NAME, 200, "{\"experiment\": []}"}}, "", "does not answer as one"},
        {NULL, NULL, {{BY_NAME, 301, NULL}}, "", "refuses it (301)"},
        {NULL, NULL, {{BY_NAME, 0, NULL}}, "", "does not answer"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct mlflow *m = new_run(cases[i].wanted, cases[i].kept);

        walk(m, cases[i].steps, 100);
        if (strstr(mlflow_trouble(m), cases[i].trouble) == NULL ||
            (cases[i].trouble[0] == '\0' && mlflow_trouble(m)[0] != '\0'))
            fail_msg("case %zu: %s", i, mlflow_trouble(m));
        assert_int_equal(mlflow_over(m), cases[i].run == NULL);
        if (cases[i].run == NULL || cases[i].run[0] == '\0')
            assert_null(mlflow_run(m));
        else
            assert_string_equal(mlflow_run(m), cases[i].run);
        mlflow_destroy(m);
    }
}

/* A server that is away is asked again after pauses that double, and keeps no one at the end. */
static void test_away(void **state)
{
    struct mlflow *m = new_run(NULL, NULL);
    double now = 100;

    (void)state;
    assert_true(mlflow_pause(m, now) < 0);
    for (int i = 0; i < 10; i++) {
        double pause;

        assert_non_null(asks(m, now, NULL));
        answer(m, i % 2 == 0 ? 0 : 503, NULL, now);
        pause = mlflow_pause(m, now);
        assert_true(pause == (i < 6 ? 5 << i : 300));
        assert_null(asks(m, now + pause / 2, NULL));
        now += pause;
    }
    take(m, STATE(2, 0), now);
    mlflow_end(m, MLFLOW_FAILED, now - 1);
    assert_true(mlflow_over(m));
    assert_null(asks(m, now + 1000, NULL));
    mlflow_destroy(m);

    m = new_run(NULL, NULL);
    mlflow_end(m, MLFLOW_FAILED, now); /* the first try is still made, and no other */
    assert_non_null(asks(m, now, NULL));
    answer(m, 0, NULL, now);
    assert_true(mlflow_over(m));
    mlflow_destroy(m);
}

/* What waits is bounded; the newest is kept. What is sent has at most what MLflow takes. */
static void test_queue(void **state)
{
    struct mlflow *m = new_run(NULL, NULL);
    json_object *body = NULL, *metrics, *tags;
    char text[4096];
    double last = 0;
    size_t count = 0;

    (void)state;
    walk(m, begins, 100);
    for (int i = 0; i < 5000; i++) {
        snprintf(text, sizeof(text),
                 "{\"job\": 12, \"incarnation\": \"12.0\", \"size\": %d, \"policy\": {}, "
                 "\"history\": [{\"generation\": %d, \"time\": 1700000000, \"kind\": \"grow\", "
                 "\"size\": 1, \"reason\": \"r\", \"pause\": 1}]}",
                 i, i + 1);
        take(m, text, 200 + i);
        if (i == 4990) { /* what is under way stays in its place */
            assert_non_null(asks(m, 200, NULL));
            answer(m, 400, "{}", 200); /* the parameters */
            assert_non_null(asks(m, 200, &body));
        }
    }
    assert_int_equal(mlflow_seen(m), 5000);
    do {
        assert_true(json_object_object_get_ex(body, "metrics", &metrics));
        assert_true(json_object_object_get_ex(body, "tags", &tags));
        assert_true(json_object_array_length(metrics) <= MLFLOW_BATCH_MAX);
        assert_true(json_object_array_length(tags) <= MLFLOW_TAGS_MAX);
        count += json_object_array_length(metrics);
        if (metric_of(body, "elastic/nodes") >= 0)
            last = json_get_double(
                json_object_array_get_idx(metrics, json_object_array_length(metrics) - 1), "value",
                -1);
        answer(m, 200, "{}", 6000);
    } while (asks(m, 6000, &body) != NULL);
    assert_true(count <= MLFLOW_QUEUE_MAX + MLFLOW_BATCH_MAX);
    assert_true(last == 1 || last == 4999);
    json_object_put(body);
    mlflow_destroy(m);
}

/* A leader of another release, or a broken one. */
static void test_odd_states(void **state)
{
    static const char *const odd[] = {
        "{}",
        "{\"size\": \"x\", \"steps\": [], \"history\": {}, \"policy\": 3, \"measures\": 7}",
        "{\"incarnation\": \"12.0\", \"history\": [1, null, {}, {\"generation\": -1}]}",
        ("{\"incarnation\": \"12.0\", \"history\": [{\"generation\": 1, \"time\": 1e300, "
         "\"kind\": \"a\", \"size\": 1, \"reason\": \"b\"}]}"),
        "{\"steps\": 1e300, \"size\": 1e308, \"pools\": [1, {\"pool\": 2}]}",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(odd); i++) {
        struct mlflow *m = new_run(NULL, "r1");

        take(m, odd[i], 10);
        take(m, odd[i], 20);
        assert_int_equal(mlflow_seen(m), 0);
        mlflow_destroy(m);
    }
}

/* Any answers in any order: a run has an id that is safe, and a request is of a known path. */
static void test_random(void **state)
{
    static const char *const texts[] = {"{}",
                                        "[]",
                                        "",
                                        ACTIVE,
                                        DELETED,
                                        EXP,
                                        "{\"experiment_id\": \"1\"}",
                                        "{\"runs\": [{\"info\": {\"run_id\": \"x y\"}}]}",
                                        "{\"runs\": [{\"info\": {\"run_id\": \"ok\"}}]}",
                                        "{\"message\": \"m\"}"};
    static const int statuses[] = {200, 200, 200, 0, 302, 400, 401, 404, 429, 500, 1};
    unsigned seed = 1;

    (void)state;
    for (int round = 0; round < 2000; round++) {
        struct mlflow *m = new_run(NULL, round % 3 == 0 ? "r1" : NULL);
        double now = 1;

        for (int i = 0; i < 40; i++) {
            const char *path = asks(m, now, NULL);

            if (path != NULL) {
                assert_null(strpbrk(path, " \n\"'"));
                answer(m, statuses[rand_r(&seed) % COUNT(statuses)],
                       texts[rand_r(&seed) % COUNT(texts)], now);
            }
            if (mlflow_run(m) != NULL)
                assert_true(text_made_of(mlflow_run(m), "-_"));
            assert_true(mlflow_pause(m, now) <= 300);
            if (rand_r(&seed) % 4 == 0)
                take(m, STATE(2, 5), now);
            if (rand_r(&seed) % 60 == 0)
                mlflow_end(m, MLFLOW_REQUEUED, now);
            now += rand_r(&seed) % 100;
        }
        mlflow_destroy(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_new_run),  cmocka_unit_test(test_which_run),
        cmocka_unit_test(test_away),       cmocka_unit_test(test_queue),
        cmocka_unit_test(test_odd_states), cmocka_unit_test(test_random),
    };

    return cmocka_run_group_tests_name("mlflow", tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Trainings by HTTP: what clients send as a command line of elastic-fit (lib/fit_request.h), and
 * what it prints as an answer (lib/fit_view.h). */
#include "lib/fit_view.h"

#include "lib/json_get.h"
#include "lib/json_text.h"
#include "tests/unit/support.h"

#define JOBS "/v1/fine_tuning/jobs"

static struct fit_request *read_request(const char *method, const char *target, const char *body,
                                        struct api_reply *reply)
{
    *reply = (struct api_reply){0};
    return fit_request_read(method, target, body, body != NULL ? strlen(body) : 0, reply);
}

static void test_commands(void **state)
{
    static const struct {
        const char *method, *target, *body, *words; /* words: and what it reads */
    } cases[] = {
        {"GET", "/v1/fits", NULL, "list|--json|--|s"},
        {"HEAD", "/v1/fits", NULL, "list|--json|--|s"},
        {"GET", "/v1/fits/7", NULL, "show|--json|--|s|7"},
        {"GET", "/v1/fits/7/log", NULL, "log|--json|--|s|7"},
        {"POST", "/v1/fits/7/cancel", NULL, "cancel|--json|--|s|7"},
        {"POST", "/v1/fits/7/cancel", "{\"reason\":\"no need\"}",
         "cancel|--json|--reason=no need|--|s|7"},
        {"POST", "/v1/fits", "{\"data\":\"/d\"}", "start|--json|--data=-|--|s<{\"data\":\"/d\"}"},
        {"POST", "/v1/fits",
         "{\"model\":\"--wait\",\"data\":\"s3://b/d\",\"targets\":\"/t\",\"dataset\":\"n\","
         "\"format\":\"f\",\"config\":\"c\",\"from\":\"none\",\"within\":{\"fit\":\"2h\","
         "\"start\":60}}",
         "start|--json|--model=--wait|--dataset=n|--format=f|--config=c|--from=none|"
         "--within=fit=2h|--within=start=60|--data=-|--|s"
         "<{\"data\":\"s3://b/d\",\"targets\":\"/t\"}"},
        /* Others see arguments. */
        {"POST", "/v1/fits", "{\"data\":\"https://me:secret@h/d?signature=s\"}",
         "start|--json|--data=-|--|s<{\"data\":\"https://me:secret@h/d?signature=s\"}"},
        {"POST", "/v1/fits", "{\"data\":\"/d\",\"config\":{\"rate\":0.5}}",
         "start|--json|--data=-|--|s<{\"data\":\"/d\",\"config\":{\"rate\":0.5}}"},
        {"POST", "/v1/fits", "{\"data\":\"/d\",\"trainer\":\"base@anna\"}",
         "start|--json|--trainer=base@anna|--data=-|--|s<{\"data\":\"/d\"}"},
        {"GET", JOBS, NULL, "list|--json|--|s"},
        {"GET", JOBS "?limit=5&after=ftjob-9", NULL, "list|--json|--|s"},
        {"GET", JOBS "/ftjob-12", NULL, "show|--json|--|s|12"},
        {"POST", JOBS "/ftjob-12/cancel", "{}", "cancel|--json|--|s|12"},
        {"GET", JOBS "/ftjob-12/events?limit=3", NULL, "show|--json|--|s|12"},
        {"GET", JOBS "/ftjob-12/checkpoints", NULL, "show|--json|--|s|12"},
        {"POST", JOBS, "{\"model\":\"m\",\"training_file\":\"/d\"}",
         "start|--json|--model=m|--data=-|--|s<{\"data\":\"/d\"}"},
        {"POST", JOBS,
         "{\"model\":\"m\",\"training_file\":\"/d\",\"validation_file\":null,"
         "\"hyperparameters\":{\"n_epochs\":3},\"seed\":1}",
         "start|--json|--model=m|--data=-|--|s"
         "<{\"data\":\"/d\",\"config\":{\"hyperparameters\":{\"n_epochs\":3},\"seed\":1}}"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_reply reply;
        struct fit_request *request = read_request(cases[i].method, cases[i].target, cases[i].body,
                                                   &reply);
        char text[1024] = "", **command;

        if (request == NULL)
            fail_msg("%s %s: %s", cases[i].method, cases[i].target,
                     json_object_to_json_string(reply.body));
        command = fit_request_command(request, "s");
        assert_non_null(command);
        assert_string_equal(command[0], "elastic-fit");
        for (char **word = command + 1; *word != NULL; word++)
            text_append(text, sizeof(text), "%s%s", text[0] != '\0' ? "|" : "", *word);
        if (request->input != NULL)
            text_append(text, sizeof(text), "<%s", request->input);
        assert_string_equal(text, cases[i].words);
        strings_free(command);
        fit_request_destroy(request);
    }
}

static const char *message_of(const struct api_reply *reply)
{
    json_object *error = json_object_object_get(reply->body, "error");

    return json_get_string(error != NULL ? error : reply->body, "message");
}

static void test_refusals(void **state)
{
    static const struct {
        const char *method, *target, *body;
        int status;
        const char *says;
    } cases[] = {
        {"GET", "/v1/fits/", NULL, 404, "there is no '/v1/fits/'"},
        {"GET", "/v1/fits/0", NULL, 404, "there is no"},
        {"GET", "/v1/fits/x", NULL, 404, "there is no"},
        {"GET", "/v1/fits/7/events", NULL, 404, "there is no"},
        {"GET", JOBS "/7", NULL, 404, "there is no"},
        {"GET", "/v1/fine_tuning", NULL, 404, "there is no"},
        {"DELETE", "/v1/fits/7", NULL, 405, "allowed is GET"},
        {"PUT", "/v1/fits", NULL, 405, "allowed are GET, POST"},
        {"GET", "/v1/fits?limit=1", NULL, 400, "known here is none"},
        {"GET", JOBS "?limit=0", NULL, 400, "a number from 1 to 100"},
        {"GET", JOBS "?limit=101", NULL, 400, "a number from 1 to 100"},
        {"GET", JOBS "?after=9", NULL, 400, "'after=9': a job is expected: ftjob-N"},
        {"GET", JOBS "?before=9", NULL, 400, "known here are after, limit"},
        {"POST", "/v1/fits", NULL, 400, "no JSON object"},
        {"POST", "/v1/fits", "[]", 400, "no JSON object"},
        {"POST", "/v1/fits", "{}", 400, "needs the key 'data'"},
        {"POST", "/v1/fits", "{\"data\":null}", 400, "needs the key 'data'"},
        {"POST", "/v1/fits", "{\"data\":\"d\"}", 400, "data: a path that begins with '/'"},
        {"POST", "/v1/fits", "{\"data\":\"/d\\n\"}", 400, "data: a text of one line"},
        {"POST", "/v1/fits", "{\"data\":\"/d\",\"model\":1}", 400, "model: a text of one line"},
        {"POST", "/v1/fits", "{\"data\":\"/d\",\"config\":\"../x\"}", 400, "config: an object"},
        {"POST", "/v1/fits", "{\"data\":\"/d\",\"config\":\"-\"}", 400, "config: an object"},
        {"POST", "/v1/fits", "{\"data\":\"/d\",\"within\":3}", 400, "within: an object"},
        {"POST", "/v1/fits", "{\"data\":\"/d\",\"within\":{\"fit\":[]}}", 400, "within: a time"},
        {"POST", "/v1/fits", "{\"data\":\"/d\",\"wait\":true}", 400,
         "key 'wait' of the body is not known; known here are data, model, targets"},
        {"POST", "/v1/fits/7/cancel", "{\"why\":\"x\"}", 400, "known here is reason"},
        {"POST", JOBS "/ftjob-7/cancel", "{\"reason\":\"x\"}", 400, "known here is none"},
        {"POST", JOBS, "{\"training_file\":\"/d\"}", 400, "needs the key 'model'"},
        {"POST", JOBS, "{\"model\":\"m\",\"training_file\":\"file-abc\"}", 400,
         "training_file: a path"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct api_reply reply;
        const char *target = cases[i].target;

        assert_null(read_request(cases[i].method, target, cases[i].body, &reply));
        assert_int_equal(reply.status, cases[i].status);
        if (strstr(message_of(&reply), cases[i].says) == NULL)
            fail_msg("%s %s: %s", cases[i].method, target, message_of(&reply));
        assert_int_equal(json_object_object_get(reply.body, "error") != NULL,
                         strstr(target, "fine_tuning") != NULL);
        api_reply_clear(&reply);
    }
}

static void test_whose_path(void **state)
{
    static const struct {
        const char *path;
        bool is;
    } cases[] = {{"/v1/fits", true},     {"/v1/fits/", true},       {"/v1/fitsx", false},
                 {"/v1/fits?x=/", true}, {"/v1/fine_tuning", true}, {"/v1/fine_tuningx", false},
                 {"/v1/roles", false}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(fit_request_is(cases[i].path), cases[i].is);
}

/* ---- answers --------------------------------------------------------------------------------- */

#define FIT(id, status)                                                                            \
    "{\"fit\":" id ",\"service\":\"s\",\"model\":\"m\",\"status\":\"" status                       \
    "\",\"reason\":\"exit status 3\",\"history\":[{\"status\":\"INITIAL\",\"at\":10.5},"           \
    "{\"status\":\"" status "\",\"at\":20.5}],\"run\":{\"created\":9.9,\"trainData\":\"/d\"}}"

static json_object *answer(const char *method, const char *target, int status, const char *text,
                           int expected)
{
    struct api_reply reply;
    struct fit_request *request = read_request(
        method, target, strcmp(method, "POST") == 0 ? "{\"data\":\"/d\"}" : NULL, &reply);
    json_object *body;

    assert_non_null(request);
    fit_view_reply(request, status, text, &reply);
    assert_int_equal(reply.status, expected);
    fit_request_destroy(request);
    body = json_object_get(reply.body);
    api_reply_clear(&reply);
    return body;
}

static void test_our_form(void **state)
{
    json_object *body = answer("GET", "/v1/fits/7", 0, FIT("7", "SUCCESS"), 200);

    (void)state;
    assert_string_equal(json_get_string(body, "message"), "fit 7: SUCCESS");
    assert_string_equal(json_get_string(json_object_object_get(body, "data"), "model"), "m");
    json_object_put(body);
    body = answer("GET", "/v1/fits", 0, "{\"service\":\"s\",\"fits\":[]}", 200);
    assert_string_equal(json_get_string(body, "message"), "fits of service s");
    json_object_put(body);
}

static void test_a_log_is_text(void **state)
{
    struct api_reply reply;
    struct fit_request *request = read_request("GET", "/v1/fits/7/log", NULL, &reply);

    (void)state;
    fit_view_reply(request, 0,
                   "{ \"line\": \"epoch \\u00e9\\t1\", \"ends\": true }\n{\"line\": 7}\nno JSON\n"
                   "{\"ends\":true}\n{\"line\":\"2\",\"ends\":false}",
                   &reply);
    assert_int_equal(reply.status, 200);
    assert_string_equal(reply.text, "epoch \xc3\xa9\t1\n\n2");
    api_reply_clear(&reply);
    fit_view_reply(request, 3, "{\"error\":\"there is no fit 7\"}", &reply);
    assert_int_equal(reply.status, 404);
    api_reply_clear(&reply);
    fit_request_destroy(request);
}

static void test_openai_statuses(void **state)
{
    static const struct {
        const char *text, *status;
        bool over;
    } cases[] = {
        {FIT("7", "INITIAL"), "queued", false},
        {FIT("7", "WAIT_FOR_START"), "queued", false},
        {FIT("7", "WAIT_FOR_TRAINING_CONTAINER"), "queued", false},
        {FIT("7", "WAIT_FOR_FIT"), "running", false},
        {FIT("7", "WAIT_FOR_TARGET_CONTAINER"), "running", false},
        {FIT("7", "SUCCESS"), "succeeded", true},
        {FIT("7", "FAILED"), "failed", true},
        {FIT("7", "CANCELLED"), "cancelled", true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        json_object *job = answer("GET", JOBS "/ftjob-7", 0, cases[i].text, 200);
        const char *made = json_get_string(job, "fine_tuned_model");
        json_object *error = json_object_object_get(job, "error");
        int64_t at = 0;

        assert_string_equal(json_get_string(job, "object"), "fine_tuning.job");
        assert_string_equal(json_get_string(job, "id"), "ftjob-7");
        assert_string_equal(json_get_string(job, "status"), cases[i].status);
        assert_true(json_get_int(job, "created_at", 0, INT64_MAX, &at) && at == 9);
        assert_int_equal(json_get_int(job, "finished_at", 20, 20, &at), cases[i].over);
        assert_int_equal(made != NULL, strcmp(cases[i].status, "succeeded") == 0);
        assert_int_equal(error != NULL, strcmp(cases[i].status, "failed") == 0);
        if (error != NULL)
            assert_string_equal(json_get_string(error, "message"), "exit status 3");
        json_object_put(job);
    }
}

static void test_openai_pages(void **state)
{
    static const char all[] = "{\"service\":\"s\",\"fits\":[" FIT("1", "SUCCESS") "," FIT(
        "2", "FAILED") "," FIT("3", "INITIAL") "]}";
    static const struct {
        const char *target, *first;
        size_t count;
        bool more;
    } cases[] = {
        {JOBS, "ftjob-3", 3, false},
        {JOBS "?limit=2", "ftjob-3", 2, true},
        {JOBS "?limit=2&after=ftjob-2", "ftjob-1", 1, false},
        {JOBS "?after=ftjob-1", NULL, 0, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        json_object *list = answer("GET", cases[i].target, 0, all, 200);
        json_object *data = json_object_object_get(list, "data");

        assert_string_equal(json_get_string(list, "object"), "list");
        assert_int_equal(json_object_array_length(data), cases[i].count);
        assert_int_equal(json_get_bool(list, "has_more", !cases[i].more), cases[i].more);
        if (cases[i].count > 0)
            assert_string_equal(json_get_string(json_object_array_get_idx(data, 0), "id"),
                                cases[i].first);
        json_object_put(list);
    }
}

static void test_openai_events(void **state)
{
    json_object *list = answer("GET", JOBS "/ftjob-7/events", 0, FIT("7", "SUCCESS"), 200);
    json_object *data = json_object_object_get(list, "data");

    (void)state;
    assert_int_equal(json_object_array_length(data), 2);
    assert_string_equal(json_get_string(json_object_array_get_idx(data, 0), "message"), "SUCCESS");
    assert_string_equal(json_get_string(json_object_array_get_idx(data, 1), "message"), "INITIAL");
    json_object_put(list);
    list = answer("GET", JOBS "/ftjob-7/checkpoints", 0, FIT("7", "SUCCESS"), 200);
    assert_int_equal(json_object_array_length(json_object_object_get(list, "data")), 0);
    json_object_put(list);
}

static void test_failures(void **state)
{
    static const struct {
        const char *method, *target;
        int exit;
        const char *text;
        int status;
    } cases[] = {
        {"POST", "/v1/fits", 1, "{\"error\":\"service s has no training\"}", 409},
        {"POST", "/v1/fits", 2, "{\"error\":\"--within: no\"}", 400},
        {"GET", "/v1/fits/7", 3, "{\"error\":\"there is no fit 7\"}", 404},
        {"GET", JOBS "/ftjob-7", 3, "{\"error\":\"there is no fit 7\"}", 404},
        {"GET", "/v1/fits", 1, "{\"error\":\"cannot be read\"}", 500},
        {"GET", "/v1/fits", 1, NULL, 500},
        {"GET", "/v1/fits", -1, "{\"fits\":", 500},
        {"GET", "/v1/fits", 0, "{\"fits\":", 500},
        {"GET", "/v1/fits", 0, "{}", 500},
        {"GET", "/v1/fits/7", 0, "{\"status\":\"SUCCESS\"}", 500},
        {"GET", "/v1/fits/7", 0, NULL, 500},
        {"GET", JOBS, 4, "garbage", 409},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        json_object_put(answer(cases[i].method, cases[i].target, cases[i].exit, cases[i].text,
                               cases[i].status));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands),      cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_whose_path),    cmocka_unit_test(test_our_form),
        cmocka_unit_test(test_a_log_is_text), cmocka_unit_test(test_openai_statuses),
        cmocka_unit_test(test_openai_pages),  cmocka_unit_test(test_openai_events),
        cmocka_unit_test(test_failures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/notice: what metadata services are asked, and what their answers mean. */
#include "lib/notice.h"

#include <stdbool.h>

#include "tests/unit/support.h"

#define NOW 1474309757.0 /* Mon, 19 Sep 2016 18:29:17 GMT */
#define EVENT                                                                                      \
    "{\"EventId\": \"A1\", \"EventType\": \"Preempt\", \"ResourceType\": \"VirtualMachine\", "
#define AT           "\"NotBefore\": \"Mon, 19 Sep 2016 18:29:47 GMT\""
#define EVENTS(list) "{\"DocumentIncarnation\": 7, \"Events\": [" list "]}"

/* A service that has answered all that goes before its question. */
static struct notice begin(const struct conf_reclaim *conf)
{
    struct notice notice;
    struct notice_outcome outcome;
    const struct notice_answer answer = {.status = 200, .text = "vm_1", .length = 4};

    notice_init(&notice, conf);
    if (conf->cloud == CONF_CLOUD_AWS || conf->cloud == CONF_CLOUD_ALIBABA ||
        conf->cloud == CONF_CLOUD_AZURE) {
        struct notice_request request;

        notice_next(&notice, NOW, &request);
        notice_answered(&notice, NOW, &answer, &outcome);
        assert_false(outcome.comes);
        assert_string_equal(outcome.word, "");
        assert_true(outcome.pause == 0);
    }
    return notice;
}

static struct notice_outcome answer(struct notice *notice, double now, int status, const char *text)
{
    const struct notice_answer given = {.status = status, .text = text, .length = strlen(text)};
    struct notice_request request;
    struct notice_outcome outcome;

    notice_next(notice, now, &request);
    notice_answered(notice, now, &given, &outcome);
    return outcome;
}

#define QUIET  -2.0
#define REFUSE -3.0

static void test_answers(void **state)
{
    static const struct {
        enum conf_cloud cloud;
        int status;
        const char *text;
        double left; /* or QUIET: no notice; or REFUSE: no notice, and a word */
    } table[] = {
        {CONF_CLOUD_AWS, 404, "<html>404 - Not Found</html>", QUIET},
        {CONF_CLOUD_AWS, 200, "{\"action\":\"terminate\",\"time\":\"2016-09-19T18:31:17Z\"}", 120},
        {CONF_CLOUD_AWS, 200, "{\"action\":\"stop\",\"time\":\"2016-09-19T18:29:47.5Z\"}", 30},
        {CONF_CLOUD_AWS, 200, "{\"action\":\"hibernate\",\"time\":\"2016-09-19T18:31:17Z\"}", 0},
        {CONF_CLOUD_AWS, 200, "{\"action\":\"stop\"}", 120},
        {CONF_CLOUD_AWS, 200, "{\"action\":\"stop\",\"time\":7}", 120},
        {CONF_CLOUD_AWS, 200, "{\"action\":\"stop\",\"time\":\"soon\"}", 120},
        {CONF_CLOUD_AWS, 200, "{\"action\":\"stop\",\"time\":\"2016-09-20T18:29:17Z\"}", 86400},
        {CONF_CLOUD_AWS, 200, "{\"action\":\"stop\",\"time\":\"2016-09-20T18:29:18Z\"}", QUIET},
        {CONF_CLOUD_AWS, 200, "{\"action\":\"stop\",\"time\":\"9999-09-19T18:31:17Z\"}", QUIET},
        {CONF_CLOUD_AWS, 200, "{\"action\":\"stop\",\"time\":\"2016-09-19T18:29:10Z\"}", 0},
        {CONF_CLOUD_AWS, 200, "{\"action\":\"stop\",\"time\":\"2016-09-18T18:29:10Z\"}", QUIET},
        {CONF_CLOUD_AWS, 200, "{\"action\":\"dance\",\"time\":\"2016-09-19T18:31:17Z\"}", REFUSE},
        {CONF_CLOUD_AWS, 200, "{\"action\":[\"stop\"]}", REFUSE},
        {CONF_CLOUD_AWS, 200, "[]", REFUSE},
        {CONF_CLOUD_AWS, 200, "", REFUSE},
        {CONF_CLOUD_AWS, 200, "<html>log in</html>", REFUSE},
        {CONF_CLOUD_AWS, 302, "", REFUSE},
        {CONF_CLOUD_AWS, 500, "", QUIET},
        {CONF_CLOUD_AWS, 0, "", QUIET},
        {CONF_CLOUD_GCP, 200, "FALSE", QUIET},
        {CONF_CLOUD_GCP, 200, "TRUE\n", 30},
        {CONF_CLOUD_GCP, 200, "NOT TRUE", REFUSE},
        {CONF_CLOUD_GCP, 200, "TRUETRUETRUE", REFUSE},
        {CONF_CLOUD_GCP, 403, "", REFUSE},
        {CONF_CLOUD_GCP, 404, "", REFUSE},
        {CONF_CLOUD_AZURE, 200, EVENTS(""), QUIET},
        {CONF_CLOUD_AZURE, 200, EVENTS(EVENT "\"Resources\": [\"vm_0\", \"VM_1\"], " AT "}"), 30},
        {CONF_CLOUD_AZURE, 200, EVENTS(EVENT "\"Resources\": [\"vm_10\", \"vm_0\"], " AT "}"),
         QUIET},
        {CONF_CLOUD_AZURE, 200, EVENTS(EVENT "\"Resources\": [\"vm_1\"], \"NotBefore\": \"\"}"), 0},
        {CONF_CLOUD_AZURE, 200, EVENTS(EVENT "\"Resources\": [\"vm_1\"]}"), 30},
        {CONF_CLOUD_AZURE, 200,
         EVENTS("{\"EventType\": \"Freeze\", \"Resources\": [\"vm_1\"], " AT "}"), QUIET},
        {CONF_CLOUD_AZURE, 200,
         EVENTS("{\"EventType\": \"Reboot\", \"Resources\": [\"vm_1\"], \"NotBefore\": "
                "\"Mon, 19 Sep 2016 18:44:17 GMT\"}, " EVENT "\"Resources\": [\"vm_1\"], " AT "}"),
         30},
        {CONF_CLOUD_AZURE, 200,
         EVENTS("{\"EventType\": \"Reboot\", \"Resources\": [\"vm_1\"], \"NotBefore\": "
                "\"Wed, 21 Sep 2016 18:44:17 GMT\"}"),
         QUIET},
        {CONF_CLOUD_AZURE, 200, EVENTS(EVENT "\"Resources\": \"vm_1\", " AT "}"), QUIET},
        {CONF_CLOUD_AZURE, 200, EVENTS(EVENT "\"Resources\": [1, null, {}], " AT "}"), QUIET},
        {CONF_CLOUD_AZURE, 200, EVENTS("7, null, \"Preempt\""), QUIET},
        {CONF_CLOUD_AZURE, 200, "{\"Events\": {}}", REFUSE},
        {CONF_CLOUD_AZURE, 200, "{}", REFUSE},
        {CONF_CLOUD_AZURE, 404, "", REFUSE},
        {CONF_CLOUD_ALIBABA, 404, "", QUIET},
        {CONF_CLOUD_ALIBABA, 200, "2016-09-19T18:34:17Z\n", 300},
        {CONF_CLOUD_ALIBABA, 200, "2016-09-30T18:34:17Z", QUIET},
        {CONF_CLOUD_ALIBABA, 200, "soon", REFUSE},
        {CONF_CLOUD_TENCENT, 404, "", QUIET},
        {CONF_CLOUD_TENCENT, 200, "2016-09-20 02:31:17", 120},
        {CONF_CLOUD_TENCENT, 200, "2016-09-20 02:31:17 UTC", REFUSE},
        {CONF_CLOUD_TENCENT, 403, "", REFUSE},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct conf_reclaim conf = {.cloud = table[i].cloud};
        struct notice notice = begin(&conf);
        struct notice_outcome outcome = answer(&notice, NOW, table[i].status, table[i].text);

        if (outcome.comes != (table[i].left >= 0) ||
            (outcome.word[0] != '\0') != (table[i].left == REFUSE) ||
            (outcome.comes && outcome.left != table[i].left))
            fail_msg("%s: %d, %f s, '%s'", table[i].text, outcome.comes, outcome.left,
                     outcome.word);
        assert_true(outcome.comes || outcome.pause > 0 || table[i].cloud == CONF_CLOUD_GCP);
    }
}

static void test_moments(void **state)
{
    static const struct {
        const char *text;
        double when; /* < 0: none */
    } table[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"2026-11-22T08:22:00Z", 1795335720},
        {"2026-11-22T08:22:00.123456Z", 1795335720},
        {"Sun, 22 Nov 2026 08:22:00 GMT", 1795335720},
        {"2026-11-22 16:22:00", 1795335720},
        {"2024-02-29T23:59:59Z", 1709251199},
        {"", -1},
        {"2026-11-22", -1},
        {"2026-11-22T08:22:00", -1},
        {"2026-11-22T08:22:00+01:00", -1},
        {"2026-11-22T25:22:00Z", -1},
        {"2026-13-22T08:22:00Z", -1},
        {"2026-11-22T08:22:-1Z", -1},
        {"Sun, 22 Nix 2026 08:22:00 GMT", -1},
        {"Sun, 22 Nov 2026 08:22:00 CET", -1},
        {"2026-11-22 16:22:00 ", -1},
        {"YYYY-MM-DDThh:mm:ssZ", -1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        double when = -1;

        assert_int_equal(notice_time(table[i].text, &when), table[i].when >= 0);
        if (when != table[i].when)
            fail_msg("%s: %.0f", table[i].text, when);
    }
}

/* What is asked next. */
static void asks(struct notice *notice, double now, bool put, const char *address,
                 const char *header)
{
    struct notice_request request;
    char text[600];

    notice_next(notice, now, &request);
    snprintf(text, sizeof(text), "%s%s", request.endpoint, request.path);
    assert_string_equal(text, address);
    assert_int_equal(request.put, put);
    if (header == NULL)
        assert_null(request.header);
    else
        assert_string_equal(request.header, header);
}

#define TOKENS "http://169.254.169.254/latest/api/token"
#define ACTION "http://169.254.169.254/latest/meta-data/spot/instance-action"

static void test_tokens(void **state)
{
    struct conf_reclaim conf = {.cloud = CONF_CLOUD_AWS};
    struct notice notice;
    struct notice_outcome outcome;

    (void)state;
    notice_init(&notice, &conf);
    asks(&notice, NOW, true, TOKENS, "X-aws-ec2-metadata-token-ttl-seconds: 21600");
    assert_true(answer(&notice, NOW, 200, "first==").pause == 0);
    asks(&notice, NOW, false, ACTION, "X-aws-ec2-metadata-token: first==");
    assert_true(answer(&notice, NOW, 404, "").pause == 5);
    /* Before its end. */
    asks(&notice, NOW + 21500, false, ACTION, "X-aws-ec2-metadata-token: first==");
    asks(&notice, NOW + 21550, true, TOKENS, "X-aws-ec2-metadata-token-ttl-seconds: 21600");
    answer(&notice, NOW, 200, "second");
    asks(&notice, NOW, false, ACTION, "X-aws-ec2-metadata-token: second");
    /* It is not accepted any more, without a word; the next one is not either. */
    outcome = answer(&notice, NOW, 401, "");
    assert_string_equal(outcome.word, "");
    assert_true(outcome.pause == 0);
    asks(&notice, NOW, true, TOKENS, "X-aws-ec2-metadata-token-ttl-seconds: 21600");
    answer(&notice, NOW, 200, "third");
    outcome = answer(&notice, NOW, 401, "");
    assert_string_equal(outcome.word, "nobody will say when this node is taken away (reclaim): aws "
                                      "at http://169.254.169.254 refuses, with HTTP status 401");
    assert_true(outcome.pause == 5);
    /* A word is said once. */
    for (int i = 0; i < 10; i++)
        assert_string_equal(answer(&notice, NOW, 401, "").word, "");
    /* No token at all. */
    notice_init(&notice, &conf);
    assert_string_not_equal(answer(&notice, NOW, 403, "").word, "");
    notice_init(&notice, &conf);
    assert_string_not_equal(answer(&notice, NOW, 404, "").word, "");
    notice_init(&notice, &conf);
    assert_string_not_equal(answer(&notice, NOW, 200, "a\r\nX: b").word, "");
    asks(&notice, NOW, true, TOKENS, "X-aws-ec2-metadata-token-ttl-seconds: 21600");
    conf.cloud = CONF_CLOUD_ALIBABA;
    notice = begin(&conf);
    asks(&notice, NOW, false,
         "http://100.100.100.200/latest/meta-data/instance/spot/termination-time",
         "X-aliyun-ecs-metadata-token: vm_1");
    assert_true(answer(&notice, NOW, 403, "").pause == 0);
    asks(&notice, NOW, true, "http://100.100.100.200/latest/api/token",
         "X-aliyun-ecs-metadata-token-ttl-seconds: 21600");
}

#define PREEMPTED "http://e:80/computeMetadata/v1/instance/preempted"

/* GCP answers when something changes, if it is told what we know. */
static void test_long_poll(void **state)
{
    struct conf_reclaim conf = {.cloud = CONF_CLOUD_GCP, .endpoint = "http://e:80"};
    struct notice_answer given = {.status = 200, .text = "FALSE", .length = 5, .etag = "0a1b"};
    struct notice_request request;
    struct notice_outcome outcome;
    struct notice notice;

    (void)state;
    notice_init(&notice, &conf);
    asks(&notice, NOW, false, PREEMPTED, "Metadata-Flavor: Google");
    notice_answered(&notice, NOW, &given, &outcome);
    assert_true(outcome.pause == 0);
    asks(&notice, NOW, false, PREEMPTED "?wait_for_change=true&timeout_sec=60&last_etag=0a1b",
         "Metadata-Flavor: Google");
    notice_next(&notice, NOW, &request);
    assert_true(request.timeout > 60);
    /* Without it, or after a failure, it is asked in the short way. */
    given.etag = "a&b";
    notice_answered(&notice, NOW, &given, &outcome);
    assert_true(outcome.pause == 1);
    asks(&notice, NOW, false, PREEMPTED, "Metadata-Flavor: Google");
    given.etag = "2";
    notice_answered(&notice, NOW, &given, &outcome);
    assert_true(outcome.pause == 0);
    /* A service that does not wait is not asked without a pause. */
    notice_next(&notice, NOW, &request);
    notice_answered(&notice, NOW + 0.01, &given, &outcome);
    assert_true(outcome.pause == 1);
    notice_next(&notice, NOW + 1, &request);
    notice_answered(&notice, NOW + 61, &given, &outcome);
    assert_true(outcome.pause == 0);
    assert_true(answer(&notice, NOW, 0, "").pause == 5);
    asks(&notice, NOW, false, PREEMPTED, "Metadata-Flavor: Google");
}

#define ADVICE "http://169.254.169.254/latest/meta-data/events/recommendations/rebalance"

/* Advice is asked for after each answer that is no notice, until it has been given. */
static void test_advice_is_asked_for(void **state)
{
    struct conf_reclaim conf = {.cloud = CONF_CLOUD_AWS, .advice = CONF_ADVICE_REPLACE};
    struct notice notice = begin(&conf);
    struct notice_outcome outcome;

    (void)state;
    asks(&notice, NOW, false, ACTION, "X-aws-ec2-metadata-token: vm_1");
    outcome = answer(&notice, NOW, 404, "");
    assert_true(outcome.stays);
    assert_true(outcome.pause == 0);
    asks(&notice, NOW, false, ADVICE, "X-aws-ec2-metadata-token: vm_1");
    outcome = answer(&notice, NOW, 404, "");
    assert_false(outcome.stays || outcome.advised || outcome.comes);
    assert_true(outcome.pause == 5);
    answer(&notice, NOW, 404, "");
    /* With a new token, if it has to be. */
    assert_true(answer(&notice, NOW, 401, "").pause == 0);
    asks(&notice, NOW, true, TOKENS, "X-aws-ec2-metadata-token-ttl-seconds: 21600");
    answer(&notice, NOW, 200, "second");
    asks(&notice, NOW, false, ADVICE, "X-aws-ec2-metadata-token: second");
    outcome = answer(&notice, NOW, 200, "{\"noticeTime\": \"2016-09-19T18:20:00Z\"}");
    assert_true(outcome.advised);
    assert_false(outcome.comes || outcome.stays);
    assert_true(outcome.pause == 5);
    /* Then only a notice is left to be said. */
    for (int i = 0; i < 3; i++) {
        asks(&notice, NOW, false, ACTION, "X-aws-ec2-metadata-token: second");
        outcome = answer(&notice, NOW, 404, "");
        assert_true(outcome.stays);
        assert_false(outcome.advised);
        assert_true(outcome.pause == 5);
    }
    outcome = answer(&notice, NOW, 200, "{\"action\": \"stop\"}");
    assert_true(outcome.comes);
    /* Nobody asks for it unless the site does, nor where there is none. */
    conf.advice = CONF_ADVICE_IGNORE;
    notice = begin(&conf);
    assert_true(answer(&notice, NOW, 404, "").pause == 5);
    asks(&notice, NOW, false, ACTION, "X-aws-ec2-metadata-token: vm_1");
    conf = (struct conf_reclaim){.cloud = CONF_CLOUD_TENCENT, .advice = CONF_ADVICE_REPLACE};
    notice = begin(&conf);
    assert_true(answer(&notice, NOW, 404, "").pause == 5);
    asks(&notice, NOW, false,
         "http://metadata.tencentyun.com/latest/meta-data/spot/termination-time", NULL);
}

/* GCP: between two long questions. */
static void test_advice_and_long_poll(void **state)
{
    struct conf_reclaim conf = {
        .cloud = CONF_CLOUD_GCP, .endpoint = "http://e:80", .advice = CONF_ADVICE_REPLACE};
    const struct notice_answer stays = {.status = 200, .text = "FALSE", .length = 5, .etag = "1"};
    const struct notice_answer none = {.status = 200, .text = "NONE", .length = 4, .etag = "2"};
    struct notice_request request;
    struct notice_outcome outcome;
    struct notice notice;
    double now = NOW;

    (void)state;
    notice_init(&notice, &conf);
    for (int i = 0; i < 3; i++, now += 60) {
        notice_next(&notice, now, &request);
        notice_answered(&notice, now + 60, &stays, &outcome);
        assert_true(outcome.pause == 0);
        asks(&notice, now, false, "http://e:80/computeMetadata/v1/instance/maintenance-event",
             "Metadata-Flavor: Google");
        notice_answered(&notice, now, &none, &outcome);
        assert_true(outcome.pause == 0);
        asks(&notice, now, false, PREEMPTED "?wait_for_change=true&timeout_sec=60&last_etag=1",
             "Metadata-Flavor: Google");
    }
}

#define ADVISED 1.0

static void test_advice(void **state)
{
    static const struct {
        enum conf_cloud cloud;
        int status;
        const char *text;
        double means; /* ADVISED, QUIET, or REFUSE: none, and a word */
    } table[] = {
        {CONF_CLOUD_AWS, 200, "{\"noticeTime\":\"2016-09-19T18:29:17Z\"}", ADVISED},
        {CONF_CLOUD_AWS, 200, "{\"noticeTime\":\"2016-09-18T19:29:17Z\", \"x\": 1}", ADVISED},
        {CONF_CLOUD_AWS, 200, "{\"noticeTime\":\"2016-09-19T18:31:17Z\"}", ADVISED},
        {CONF_CLOUD_AWS, 404, "", QUIET},
        {CONF_CLOUD_AWS, 0, "", QUIET},
        {CONF_CLOUD_AWS, 500, "", QUIET},
        /* Long ago, and far away. */
        {CONF_CLOUD_AWS, 200, "{\"noticeTime\":\"2016-09-17T18:29:17Z\"}", QUIET},
        {CONF_CLOUD_AWS, 200, "{\"noticeTime\":\"1970-01-01T00:00:00Z\"}", QUIET},
        {CONF_CLOUD_AWS, 200, "{\"noticeTime\":\"9999-09-19T18:31:17Z\"}", REFUSE},
        /* No advice, whatever it is. */
        {CONF_CLOUD_AWS, 200, "{\"noticeTime\":\"soon\"}", REFUSE},
        {CONF_CLOUD_AWS, 200, "{\"noticeTime\":1474309757}", REFUSE},
        {CONF_CLOUD_AWS, 200, "{\"noticeTime\":null}", REFUSE},
        {CONF_CLOUD_AWS, 200, "{\"noticeTime\":[\"2016-09-19T18:31:17Z\"]}", REFUSE},
        {CONF_CLOUD_AWS, 200, "{}", REFUSE},
        {CONF_CLOUD_AWS, 200, "[]", REFUSE},
        {CONF_CLOUD_AWS, 200, "7", REFUSE},
        {CONF_CLOUD_AWS, 200, "", REFUSE},
        {CONF_CLOUD_AWS, 200, "<html>log in</html>", REFUSE},
        {CONF_CLOUD_AWS, 302, "", REFUSE},
        {CONF_CLOUD_AWS, 400, "", REFUSE},
        {CONF_CLOUD_GCP, 200, "NONE", QUIET},
        {CONF_CLOUD_GCP, 200, "MIGRATE_ON_HOST_MAINTENANCE", QUIET},
        {CONF_CLOUD_GCP, 200, "TERMINATE_ON_HOST_MAINTENANCE\n", ADVISED},
        {CONF_CLOUD_GCP, 200, "terminate_on_host_maintenance", REFUSE},
        {CONF_CLOUD_GCP, 200, "TERMINATE_ON_HOST_MAINTENANCETERMINATE_ON_HOST_MAINTENANCE", REFUSE},
        {CONF_CLOUD_GCP, 200, "", REFUSE},
        {CONF_CLOUD_GCP, 403, "", REFUSE},
        {CONF_CLOUD_GCP, 404, "", REFUSE},
        {CONF_CLOUD_GCP, 503, "", QUIET},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct conf_reclaim conf = {.cloud = table[i].cloud, .advice = CONF_ADVICE_REPLACE};
        bool aws = table[i].cloud == CONF_CLOUD_AWS;
        struct notice notice = begin(&conf);
        struct notice_outcome outcome = answer(&notice, NOW, aws ? 404 : 200, aws ? "" : "FALSE");

        assert_true(outcome.stays);
        outcome = answer(&notice, NOW, table[i].status, table[i].text);
        if (outcome.comes || outcome.advised != (table[i].means == ADVISED) ||
            (outcome.word[0] != '\0') != (table[i].means == REFUSE) || outcome.pause < 1)
            fail_msg("%s: %d, '%s', %f", table[i].text, outcome.advised, outcome.word,
                     outcome.pause);
        assert_int_equal(outcome.of_advice, table[i].means == REFUSE);
        /* It is not asked for again, unless there may be some later. Notices are. */
        outcome = answer(&notice, NOW, aws ? 404 : 200, aws ? "" : "FALSE");
        assert_int_equal(outcome.pause == 0, table[i].means == QUIET);
        if (outcome.pause == 0)
            answer(&notice, NOW, aws ? 404 : 200, aws ? "" : "NONE");
        outcome = answer(&notice, NOW, 403, "");
        outcome = aws ? answer(&notice, NOW, 403, "") : outcome;
        assert_string_not_equal(outcome.word, "");
        assert_false(outcome.of_advice);
    }
}

/* The first question to Azure may take two minutes. */
static void test_azure(void **state)
{
    struct conf_reclaim conf = {.cloud = CONF_CLOUD_AZURE};
    struct notice_request request;
    struct notice notice;

    (void)state;
    notice_init(&notice, &conf);
    asks(&notice, NOW, false,
         "http://169.254.169.254/metadata/instance/compute/"
         "name?api-version=2021-02-01&format=text",
         "Metadata: true");
    notice = begin(&conf);
    asks(&notice, NOW, false,
         "http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01",
         "Metadata: true");
    notice_next(&notice, NOW, &request);
    assert_true(request.timeout > 120);
    assert_true(answer(&notice, NOW, 200, EVENTS("")).pause == 1);
    notice_next(&notice, NOW, &request);
    assert_true(request.timeout < 10);
}

/* Nobody is there: a word, once, and not for a single request. */
static void test_nobody(void **state)
{
    struct conf_reclaim conf = {.cloud = CONF_CLOUD_TENCENT};
    struct notice notice;

    (void)state;
    notice_init(&notice, &conf);
    assert_string_equal(answer(&notice, NOW, 0, "").word, "");
    assert_string_equal(answer(&notice, NOW, 503, "").word, "");
    assert_string_equal(answer(&notice, NOW, 0, "").word,
                        "nobody will say when this node is taken away (reclaim): tencent does not "
                        "answer at http://metadata.tencentyun.com");
    for (int i = 0; i < 10; i++)
        assert_string_equal(answer(&notice, NOW, 0, "").word, "");
}

/* An address of the site, as before there were presets. */
static void test_site(void **state)
{
    struct conf_reclaim conf = {.url = "http://a/b?c", .header = "A: b", .answer = "going"};
    struct notice notice;
    struct notice_outcome outcome;

    (void)state;
    assert_true(notice_is_asked(&conf));
    assert_false(notice_is_asked(&(struct conf_reclaim){.program = "/bin/true"}));
    assert_string_equal(notice_source(&conf), "reclaim_url");
    notice_init(&notice, &conf);
    asks(&notice, NOW, false, "http://a/b?c", "A: b");
    assert_false(answer(&notice, NOW, 200, "it stays").comes);
    assert_false(answer(&notice, NOW, 404, "it is going").comes);
    outcome = answer(&notice, NOW, 200, "it is going");
    assert_true(outcome.comes);
    assert_true(outcome.left < 0);
    conf.answer = NULL;
    assert_true(answer(&notice, NOW, 200, "").comes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers), cmocka_unit_test(test_moments),
        cmocka_unit_test(test_tokens),  cmocka_unit_test(test_long_poll),
        cmocka_unit_test(test_azure),   cmocka_unit_test(test_nobody),
        cmocka_unit_test(test_site),    cmocka_unit_test(test_advice_is_asked_for),
        cmocka_unit_test(test_advice),  cmocka_unit_test(test_advice_and_long_poll),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("notice", tests, NULL, NULL);
}

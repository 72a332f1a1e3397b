/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What programs of a job with roles report, and what is kept of it (lib/reports.h). */
#include "lib/reports.h"
#include "lib/json_get.h"
#include "tests/unit/support.h"

static void test_what_is_a_report(void **state)
{
    static const struct {
        const char *text, *plain; /* NULL: the same */
    } cases[] = {
        {"{\"path\":\"/d\"}", NULL},
        {" {\"size\" : 0, \"path\":\"d e\\u00e9\"}", "{\"size\":0,\"path\":\"d eé\"}"},
        {"{\"path\":\"/d\",\"size\":null}", NULL},
        {"{\"path\":\"/d\",\"size\":9223372036854775806,\"n\":-9007199254740993}", NULL},
        {"{\"path\":\"/d\",\"loss\":0.30,\"ok\":true,\"a.b_c-d\":[[1,-2.5e-3],\"x\"]}", NULL},
        {"{\"path\":\"/d\",\"a\":{\"b\":{\"c\":{}}}}", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char plain[REPORT_MAX + 1];
        struct error err = {""};

        if (report_read(cases[i].text, strlen(cases[i].text), plain, &err) != 0)
            fail_msg("%s: %s", cases[i].text, err.text);
        assert_string_equal(plain, cases[i].plain != NULL ? cases[i].plain : cases[i].text);
    }
}

static void assert_refused(const char *text, const char *why)
{
    char plain[REPORT_MAX + 1];
    struct error err = {""};

    if (report_read(text, strlen(text), plain, &err) == 0)
        fail_msg("%s is accepted", text);
    assert_one_line(err.text);
    if (strstr(err.text, why) == NULL)
        fail_msg("%s: %s", text, err.text);
}

static void test_what_is_none(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "there is nothing in it"},
        {"[\"/d\"]", "object"},
        {"{\"path\":\"/d\"}x", "line 1"},
        {"{\"path\":\"/d\",\"path\":\"/e\"}", "path"},
        {"{}", "path: a text of 1 to 1024 bytes"},
        {"{\"path\":\"\"}", "path: a text of 1 to 1024 bytes"},
        {"{\"path\":7}", "path: a text of 1 to 1024 bytes"},
        {"{\"path\":\"/d\\u0000e\"}", "path: a text"},
        {"{\"path\":\"/d\\n\"}", "path: control characters are not allowed"},
        {"{\"path\":\"/d\",\"a\":[\"\\u001b[31m\"]}", "a: control characters are not allowed"},
        {"{\"path\":\"/d\",\"a\":\"\\u007f\"}", "a: control characters"},
        {"{\"path\":\"/d\",\"size\":-1}", "size: a whole number"},
        {"{\"path\":\"/d\",\"size\":1.5}", "size: a whole number"},
        {"{\"path\":\"/d\",\"size\":\"1\"}", "size: a whole number"},
        {"{\"path\":\"/d\",\"size\":9223372036854775807}", "size: a whole number"},
        {"{\"path\":\"/d\",\"n\":99999999999999999999}", "more than 64 bits"},
        {"{\"path\":\"/d\",\"n\":-99999999999999999999}", "more than 64 bits"},
        {"{\"path\":\"/d\",\"n\":1e999}", "more than 64 bits"},
        {"{\"path\":\"/d\",\"n\":NaN}", "NaN"},
        {"{\"path\":\"/d\",\"\":1}", "'' is no key of a report"},
        {"{\"path\":\"/d\",\"a b\":1}", "'a b' is no key of a report"},
        {"{\"path\":\"/d\",\"\\u001b\":1}", "'?' is no key of a report"},
        {"{\"path\":\"/d\",\"a\":{\"é\":1}}", "is no key of a report"},
        {"{\"path\":\"/d\",\"a\":{\"b\":{\"c\":{\"d\":{}}}}}", "d: a report has at most 4 levels"},
        {"{\"path\":\"/d\",\"a\":[[[[]]]]}", "a: a report has at most 4 levels"},
        {"{\"path\":\"/d\xff\"}", "UTF-8"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_refused(cases[i].text, cases[i].why);
}

static void test_large_ones(void **state)
{
    char text[2 * REPORT_MAX], plain[REPORT_MAX + 1];
    size_t at;

    (void)state;
    at = (size_t)sprintf(text, "{\"path\":\"");
    memset(text + at, 'd', REPORT_PATH_MAX);
    strcpy(text + at + REPORT_PATH_MAX, "\"}");
    assert_int_equal(report_read(text, strlen(text), plain, NULL), 0);
    strcpy(text + at + REPORT_PATH_MAX, "d\"}");
    assert_refused(text, "path: a text of 1 to 1024 bytes");

    at = (size_t)sprintf(text, "{\"path\":\"d\",\"a\":\"");
    memset(text + at, 'd', REPORT_MAX);
    strcpy(text + REPORT_MAX - 2, "\"}");
    assert_int_equal(report_read(text, strlen(text), plain, NULL), 0);
    assert_int_equal(strlen(plain), REPORT_MAX);
    memset(text + REPORT_MAX - 2, 'd', 4);
    strcpy(text + REPORT_MAX - 1, "\"}");
    assert_refused(text, "a report has at most 4096 bytes, not 4097");

    at = (size_t)sprintf(text, "{\"path\":\"d\"");
    for (int i = 1; i < REPORT_KEYS_MAX; i++)
        at += (size_t)sprintf(text + at, ",\"k%d\":%d", i, i);
    strcpy(text + at, "}");
    assert_int_equal(report_read(text, strlen(text), plain, NULL), 0);
    strcpy(text + at, ",\"more\":0}");
    assert_refused(text, "a report has at most 32 keys");
}

/* ---- the ring -------------------------------------------------------------------------------- */

static int add(struct reports *reports, int id, enum reports_result expected)
{
    char text[100], name[20];
    int number = -1;

    sprintf(text, "{\"path\":\"/data/%d\",\"size\":%d}", id, id);
    sprintf(name, "%d", id);
    assert_int_equal(reports_add(reports, id, "a", "a-0", name, text, &number), expected);
    return number;
}

/* The file as it would be. */
static char *write_all(struct reports *reports, bool ok)
{
    char *text = reports_text(reports);

    reports_written(reports, ok);
    return text;
}

static json_object *shown(const struct reports *reports, int after)
{
    json_object *all = json_object_new_object();

    reports_show(reports, after, all);
    return all;
}

static void assert_shown(const struct reports *reports, int after, const char *expected)
{
    json_object *all = shown(reports, after);

    assert_string_equal(json_object_to_json_string_ext(all, JSON_C_TO_STRING_PLAIN |
                                                                JSON_C_TO_STRING_NOSLASHESCAPE),
                        expected);
    json_object_put(all);
}

#define NONE "{\"first\":0,\"last\":0,\"missed\":0,\"reports\":[]}"

/* A report is seen once it is in the file; one that could not be written has never been. */
static void test_only_what_is_in_the_file_is_shown(void **state)
{
    struct reports *reports = reports_create();

    (void)state;
    assert_false(reports_wait(reports));
    assert_int_equal(add(reports, 5, REPORTS_WAITS), 1);
    assert_int_equal(add(reports, 5, REPORTS_WAITS), 1);
    assert_true(reports_wait(reports));
    assert_shown(reports, 0, NONE);
    free(write_all(reports, false));
    assert_false(reports_wait(reports));
    assert_shown(reports, 0, NONE);

    assert_int_equal(add(reports, 6, REPORTS_WAITS), 1);
    free(write_all(reports, true));
    assert_int_equal(add(reports, 6, REPORTS_KEPT), 1);
    assert_false(reports_wait(reports));
    assert_shown(
        reports, 0,
        "{\"first\":1,\"last\":1,\"missed\":0,\"reports\":[{\"number\":1,\"time\":6.0,"
        "\"role\":\"a\",\"replica\":\"a-0\",\"report\":{\"path\":\"/data/6\",\"size\":6}}]}");
    assert_shown(reports, 1, "{\"first\":1,\"last\":1,\"missed\":0,\"reports\":[]}");
    reports_destroy(reports);
}

/* What comes while the file is written goes with the next text. */
static void test_meanwhile(void **state)
{
    struct reports *reports = reports_create();
    char *text;

    (void)state;
    add(reports, 1, REPORTS_WAITS);
    text = reports_text(reports);
    assert_int_equal(add(reports, 2, REPORTS_WAITS), 2);
    assert_null(strstr(text, "/data/2"));
    free(text);
    reports_written(reports, true);
    assert_int_equal(reports_last(reports), 1);
    assert_true(reports_wait(reports));
    text = write_all(reports, true);
    assert_non_null(strstr(text, "/data/1"));
    assert_non_null(strstr(text, "/data/2"));
    free(text);
    assert_int_equal(reports_last(reports), 2);
    reports_destroy(reports);
}

/* Who comes late is told how many have fallen out. */
static void test_bounds(void **state)
{
    struct reports *reports = reports_create();
    json_object *all;

    (void)state;
    for (int i = 1; i <= REPORTS_PENDING; i++)
        add(reports, i, REPORTS_WAITS);
    add(reports, REPORTS_PENDING + 1, REPORTS_FULL);
    free(write_all(reports, true));
    for (int i = REPORTS_PENDING + 1; i <= REPORTS_MAX + 17; i++) {
        add(reports, i, REPORTS_WAITS);
        free(write_all(reports, true));
    }
    assert_int_equal(reports_first(reports), 18);
    assert_int_equal(reports_last(reports), REPORTS_MAX + 17);
    all = shown(reports, 10);
    assert_int_equal(json_object_get_int(json_object_object_get(all, "missed")), 7);
    assert_int_equal(json_object_array_length(json_object_object_get(all, "reports")), REPORTS_MAX);
    json_object_put(all);
    all = shown(reports, 17);
    assert_int_equal(json_object_get_int(json_object_object_get(all, "missed")), 0);
    json_object_put(all);
    reports_destroy(reports);
}

static void test_bytes(void **state)
{
    struct reports *reports = reports_create();
    char text[REPORT_MAX + 1];
    int number;
    size_t bytes = 0;
    json_object *all, *list;

    (void)state;
    sprintf(text, "{\"path\":\"d\",\"a\":\"");
    memset(text + strlen(text), 'd', sizeof(text) - strlen(text));
    strcpy(text + REPORT_MAX - 2, "\"}");
    for (int i = 0; i < 200; i++) {
        char id[20], *file;

        sprintf(id, "%d", i);
        assert_int_equal(reports_add(reports, 0, "a", "a-0", id, text, &number), REPORTS_WAITS);
        file = write_all(reports, true);
        assert_true(strlen(file) < REPORTS_FILE_MAX);
        free(file);
    }
    all = shown(reports, 0);
    list = json_object_object_get(all, "reports");
    for (size_t i = 0; i < json_object_array_length(list); i++)
        bytes += REPORT_MAX;
    assert_true(bytes <= REPORTS_BYTES && bytes > REPORTS_BYTES - 2 * REPORT_MAX);
    assert_int_equal(reports_last(reports), 200);
    json_object_put(all);
    reports_destroy(reports);
}

/* The next leader goes on with the numbers, and knows what has been asked of the one before. */
static void test_takeover(void **state)
{
    struct reports *reports = reports_create(), *next = reports_create();
    char *text;
    struct error err = {""};

    (void)state;
    for (int i = 1; i <= 3; i++)
        add(reports, i, REPORTS_WAITS);
    text = write_all(reports, true);
    if (reports_parse(next, text, strlen(text), &err) != 0)
        fail_msg("%s", err.text);
    free(text);
    assert_int_equal(add(next, 2, REPORTS_KEPT), 2);
    assert_int_equal(add(next, 9, REPORTS_WAITS), 4);
    text = write_all(next, true);
    assert_non_null(strstr(text, "/data/1"));
    free(text);
    reports_destroy(reports);
    reports_destroy(next);
}

#define ENTRY(number, replica, id, report)                                                         \
    "{\"number\":" number ",\"time\":1,\"role\":\"a\",\"replica\":\"" replica "\",\"id\":\"" id    \
    "\",\"report\":\"" report "\"}"
#define GOOD "{\\\"path\\\":\\\"/d\\\"}"

static void test_bad_files(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "there is nothing in it"},
        {"{}", "reports: an array is expected"},
        {"{\"reports\":[1]}", "entry 0 is no report"},
        {"{\"reports\":[" ENTRY("0", "a-0", "1", GOOD) "]}", "entry 0 is no report"},
        {"{\"reports\":[" ENTRY("2", "a-0", "1", GOOD) "," ENTRY("2", "a-0", "2", GOOD) "]}",
         "entry 1 is no report"},
        {"{\"reports\":[" ENTRY("1", "a\\n0", "1", GOOD) "]}", "entry 0 is no report"},
        {"{\"reports\":[" ENTRY("1", "a-0", "1", "{}") "]}", "entry 0: path: a text"},
        {"{\"reports\":[" ENTRY("1", "a-0", "0123456789012345678901234567890123456789", GOOD) "]}",
         "entry 0 is no report"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct reports *reports = reports_create();
        struct error err = {""};

        assert_int_equal(reports_parse(reports, cases[i].text, strlen(cases[i].text), &err), -1);
        if (strstr(err.text, cases[i].why) == NULL)
            fail_msg("%s: %s", cases[i].text, err.text);
        assert_shown(reports, 0, NONE);
        reports_destroy(reports);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_a_report),
        cmocka_unit_test(test_what_is_none),
        cmocka_unit_test(test_large_ones),
        cmocka_unit_test(test_only_what_is_in_the_file_is_shown),
        cmocka_unit_test(test_meanwhile),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_takeover),
        cmocka_unit_test(test_bad_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

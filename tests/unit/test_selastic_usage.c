/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `selastic usage` prints and draws. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/usage_list.h"
#include "cmd/usage_picture.h"
#include "tests/unit/selastic_fixture.h"
#include "tests/unit/support.h"

#define START 1700000000.0

static struct usage_part parts[] = {
    {"base", 2, 4 * 3600, 32 * 3600, 16 * 3600},
    {"spot", 3, 5.5 * 3600, 44 * 3600, 22 * 3600},
};
static struct usage_span spans[] = {
    {START, START + 3600, 2, 0},
    {START + 7200, START + 10800, 2, 0},
    {START + 600, START + 600 + 3600, 4, 1},
    {START + 7200, START + 9900, 2, 1},
};
static struct usage_job jobs[] = {
    {.job = 12,
     .user = "ada",
     .account = "lab",
     .partition = "batch",
     .name = "train",
     .state = "COMPLETED",
     .start = START,
     .runs = 2,
     .extensions = 3,
     .base_s = 7200,
     .parts = parts,
     .part_count = 2,
     .spans = spans,
     .span_count = 4},
    {.job = 13,
     .user = "eve",
     .name = "\x1b[2J<script>",
     .state = "",
     .parts = parts,
     .part_count = 1},
};
static const struct usage usage = {jobs, 2};

static struct conf *conf_of(const char *text)
{
    struct error err = {""};
    struct conf *conf = conf_parse("test", text, strlen(text), &err);

    if (conf == NULL)
        fail_msg("%s", err.text);
    return conf;
}

static void test_text(void **state)
{
    struct conf *conf = conf_of("[pool spot]\npartition = spot\nprice = 0.5\n"
                                "[pool own]\npartition = batch\nprice = 1\n");
    json_object *json = usage_json(&usage, conf, 12);
    char *text = render_usage(json, true, &pipe_options);

    (void)state;
    assert_string_equal(
        text,
        "JOB  NAME   USER  STATE      RUNS  EXTENSIONS  NODE-HOURS  CPU-HOURS  GPU-HOURS  COST\n"
        " 12  train  ada   COMPLETED     2           3        9.50      76.00      38.00  6.75\n"
        "     base                       2                    4.00      32.00      16.00  4.00\n"
        "     spot                                   3        5.50      44.00      22.00  2.75\n");
    free(text);
    json_object_put(json);
    json = usage_json(&usage, NULL, 0);
    text = render_usage(json, false, &pipe_options);
    assert_harmless(text);
    assert_non_null(strstr(text, "all"));
    assert_non_null(strstr(text, "13.50")); /* node hours of both */
    assert_null(strstr(text, "6.75"));
    free(text);
    json_object_put(json);
    conf_destroy(conf);
}

/* The value of an attribute behind at. */
static double number_of(const char *at, const char *name)
{
    const char *found = strstr(at, name);

    assert_non_null(found);
    return strtod(found + strlen(name), NULL);
}

/* Node seconds that the bars of a job show, of one pool. */
static double shown(const char *text, unsigned job, const char *pool, double pixels_a_second)
{
    char wanted[128];
    double sum = 0;

    snprintf(wanted, sizeof(wanted), "<rect class=\"nodes\" data-job=\"%u\"", job);
    for (const char *at = strstr(text, wanted); at != NULL; at = strstr(at + 1, wanted)) {
        const char *own = strstr(at, "data-pool=\"") + strlen("data-pool=\"");

        if (strncmp(own, pool, strlen(pool)) == 0 && own[strlen(pool)] == '"')
            sum += number_of(at, "data-nodes=\"") * number_of(at, " width=\"") / pixels_a_second;
    }
    return sum;
}

static void test_picture(void **state)
{
    const struct usage_picture_options options = {.title = "A & \x1b<b>", .html = true};
    char *text = usage_picture(&usage, &options);
    double scale = 780 / 10800.0;

    (void)state;
    assert_non_null(text);
    assert_harmless(text);
    assert_null(strstr(text, "<script"));
    assert_null(strstr(text, "<b>"));
    assert_non_null(strstr(text, "A &amp; &#xfffd;&lt;b&gt;"));
    assert_non_null(strstr(text, "1 elastic job, 9.50 node hours"));
    for (unsigned job = 0; job <= 12; job += 12) {
        assert_near(shown(text, job, "base", scale), 4 * 3600, 3);
        assert_near(shown(text, job, "spot", scale), 5.5 * 3600, 3);
    }
    /* Four nodes and two at the same time. */
    assert_non_null(strstr(text, "class=\"most\">6<"));
    free(text);
    assert_null(usage_picture(&usage, &(struct usage_picture_options){.title = "", .job = 13}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_picture),
    };

    setenv("TZ", "UTC", 1);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("selastic_usage", tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which jobs `selastic list` takes for elastic ones, and what it says of them; text for
 * terminals. */
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "cmd/jobs.h"
#include "cmd/shape.h"
#include "cmd/terminal_text.h"
#include "lib/json_get.h"

static struct job_info job(uint32_t id, uid_t uid, enum job_state_kind state, int nodes)
{
    return (struct job_info){.id = id, .uid = uid, .state = state, .num_nodes = nodes};
}

static struct job_info with(struct job_info info, char *comment, char *admin_comment)
{
    info.comment = comment;
    info.admin_comment = admin_comment;
    return info;
}

static void assert_extension(const char *comment, uint32_t base, uint32_t restarts)
{
    uint32_t got_base = 0, got_restarts = 77;
    assert_true(jobs_extension_of(comment, &got_base, &got_restarts));
    assert_int_equal(got_base, base);
    assert_int_equal(got_restarts, restarts);
}

static void test_extension_mark(void **unused)
{
    static const char *const other[] = {
        "",
        "elastic-extension-of=",
        "elastic-extension-of=12",
        "elastic-extension-of=12.",
        "elastic=12",
        "elastic-extension-of=12.0x",
        "elastic-extension-of=-12.0",
        " elastic-extension-of=12.0",
    };
    uint32_t base, restarts;
    assert_extension("elastic-extension-of=12.0", 12, 0);
    assert_extension("elastic-extension-of=67108863.3", 67108863, 3);
    assert_false(jobs_extension_of(NULL, &base, &restarts));
    for (size_t i = 0; i < sizeof(other) / sizeof(*other); i++)
        assert_false(jobs_extension_of(other[i], &base, &restarts));
}

static void test_find_bases(void **unused)
{
    char mark[] = "elastic=2:6", of_30[] = "elastic-extension-of=30.0",
         of_30_1[] = "elastic-extension-of=30.1", of_20[] = "elastic-extension-of=20.0";
    struct job_info list[] = {
        with(job(41, 1, JOB_KIND_PENDING, 2), NULL, mark),  /* a base that waits */
        job(40, 1, JOB_KIND_PENDING, 2),                    /* nothing is known of it */
        with(job(33, 1, JOB_KIND_PENDING, 1), of_30, NULL), /* 30's extensions */
        with(job(32, 1, JOB_KIND_RUNNING, 2), of_30, NULL),
        with(job(31, 1, JOB_KIND_ENDED, 8), of_30, NULL), /* one that has left */
        job(30, 1, JOB_KIND_RUNNING, 2),
        with(job(29, 1, JOB_KIND_RUNNING, 8), of_30_1, NULL), /* of another incarnation */
        with(job(28, 2, JOB_KIND_RUNNING, 8), of_30, NULL),   /* somebody else's */
        job(20, 1, JOB_KIND_ENDED, 2),
        with(job(21, 1, JOB_KIND_RUNNING, 2), of_20, NULL), /* an srun_look */
        job(10, 1, JOB_KIND_RUNNING, 1),                    /* these may be elastic */
        job(11, 1, JOB_KIND_RUNNING, 1),
    };
    static const uint32_t expected[] = {30, 41, 11, 10};
    int found = 0;
    struct base_job *bases = jobs_find_bases(list, sizeof(list) / sizeof(*list), &found);
    assert_int_equal(found, 4);
    for (int i = 0; i < found; i++) {
        assert_int_equal(bases[i].info->id, expected[i]);
        assert_int_equal(bases[i].sure, i < 2);
    }
    assert_int_equal(bases[0].pending, 1);
    assert_int_equal(bases[0].running, 1);
    assert_int_equal(bases[0].extension_nodes, 2);
    assert_int_equal(bases[1].pending + bases[1].running, 0);
    free(bases);
    free(jobs_find_bases(NULL, 0, &found));
    assert_int_equal(found, 0);
}

static void assert_entry(json_object *entry, const char *expected)
{
    assert_string_equal(json_object_to_json_string_ext(entry, JSON_C_TO_STRING_PLAIN), expected);
    json_object_put(entry);
}

static void test_entry_without_leader(void **unused)
{
    char mark[] = "elastic=2:8:2", odd[] = "elastic=many", name[] = "train";
    struct job_info info = with(job(30, 1, JOB_KIND_RUNNING, 2), NULL, mark);
    struct base_job base = {.info = &info, .pending = 1, .running = 2, .extension_nodes = 4};
    info.name = name;
    strcpy(info.state_name, "RUNNING");
    assert_entry(jobs_entry(&base, "ada", NULL, "no elasticrun answers"),
                 "{\"job\":30,\"name\":\"train\",\"user\":\"ada\",\"state\":\"RUNNING\",\"size\":6,"
                 "\"sizes\":\"2:8:2\",\"min\":2,\"max\":8,\"generation\":null,\"steps\":null,"
                 "\"cost\":null,"
                 "\"why\":\"no elasticrun answers\",\"group\":null,\"pending\":1,\"running\":2}");
    info = with(job(30, 1, JOB_KIND_PENDING, 2), NULL, odd);
    strcpy(info.state_name, "PENDING");
    strcpy(info.reason, "Priority");
    assert_entry(
        jobs_entry(&base, "ada", NULL, NULL),
        "{\"job\":30,\"name\":null,\"user\":\"ada\",\"state\":\"PENDING\",\"size\":0,"
        "\"sizes\":null,\"min\":null,\"max\":null,\"generation\":null,\"steps\":null,\"cost\":null,"
        "\"why\":\"Priority\","
        "\"group\":null,\"pending\":1,\"running\":2}");
}

/* Their sizes are in the job file; what the leader says of nodes is not what the user asked for. */
static void test_entry_with_roles(void **unused)
{
    static const struct {
        const char *mark;
        bool roles;
        const char *group;
    } rows[] = {{"elastic=roles", true, NULL},
                {"elastic=roles t=5", true, NULL},
                {"elastic=rolesx group=a", false, NULL},
                {"elastic=roles group=a-1", true, "a-1"},
                {"elastic=roles group=a-1 t=5", true, "a-1"},
                {"elastic=2 group=a", false, NULL}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct job_info info = with(job(30, 1, JOB_KIND_RUNNING, 2), NULL, (char *)rows[i].mark);
        struct base_job base = {.info = &info};
        json_object *state = json_tokener_parse(
            "{\"phase\":\"running\",\"size\":2,\"sizes\":\"2\",\"min\":2,\"max\":2}");
        json_object *entry = jobs_entry(&base, "ada", state, NULL);
        json_object *max = NULL;
        const char *group;
        assert_string_equal(json_object_get_string(json_object_object_get(entry, "sizes")),
                            rows[i].roles ? "roles" : "2");
        assert_true(json_object_object_get_ex(entry, "max", &max));
        assert_int_equal(max == NULL, rows[i].roles);
        group = json_object_get_string(json_object_object_get(entry, "group"));
        assert_true(rows[i].group == NULL ? group == NULL
                                          : group != NULL && strcmp(group, rows[i].group) == 0);
        json_object_put(entry);
        json_object_put(state);
    }
}

static void test_entry_with_leader(void **unused)
{
    struct job_info info = job(30, 1, JOB_KIND_RUNNING, 2);
    struct base_job base = {.info = &info, .pending = 1};
    json_object *state = json_tokener_parse(
        "{\"phase\":\"switching\",\"size\":5,\"sizes\":\"2,3,5\",\"min\":2,\"max\":5,"
        "\"generation\":9,\"steps\":70,\"cost\":{\"so_far\":1.5},"
        "\"why_not_more\":\"\",\"why_size\":\"all nodes have joined\"}");
    json_object_object_add(state, "group", json_object_new_string("sweep"));
    assert_entry(
        jobs_entry(&base, "ada", state, NULL),
        "{\"job\":30,\"name\":null,\"user\":\"ada\",\"state\":\"switching\",\"size\":5,"
        "\"sizes\":\"2,3,5\",\"min\":2,\"max\":5,\"generation\":9,\"steps\":70,\"cost\":1.5,"
        "\"why\":\"all nodes have joined\",\"group\":\"sweep\",\"pending\":1,\"running\":0}");
    json_object_put(state);
}

static void assert_clean(const char *text, int max, const char *expected)
{
    char *clean = text_clean(text, max);
    assert_string_equal(clean, expected);
    free(clean);
}

static void test_clean(void **unused)
{
    assert_clean("plain", 0, "plain");
    assert_clean(NULL, 0, "-");
    assert_clean("", 5, "");
    assert_clean("123456", 6, "123456");
    assert_clean("1234567", 6, "123...");
    assert_clean("a\tb\x1b[0m\x7f", 0, "a\\x09b\\x1b[0m\\x7f");
    assert_clean("\xff\xc3", 0, "\\xff\\xc3");
    assert_clean("1234\x1b", 6, "123...");
    assert_clean("Gr\xc3\xb6\xc3\x9f"
                 "e",
                 0,
                 "Gr\xc3\xb6\xc3\x9f"
                 "e");
    assert_clean("\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", 5, "\xe6\x97\xa5...");
    assert_clean("\xc2\x9b"
                 "2J\xe2\x80\xae",
                 0, "\\xc2\\x9b2J\\xe2\\x80\\xae");
}

static void assert_wrapped(const char *text, int width, const char *expected)
{
    char *wrapped = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&wrapped, &size);
    text_print_wrapped(out, text, 4, width);
    fclose(out);
    assert_string_equal(wrapped, expected);
    free(wrapped);
}

static void test_wrap(void **unused)
{
    assert_wrapped("", 10, "");
    assert_wrapped("one two three", 0, "one two three");
    assert_wrapped("one two three", 11, "one two\n    three");
    assert_wrapped("one two three", 10, "one\n    two\n    three");
    assert_wrapped("verylongword two", 8, "verylongword\n    two");
    assert_wrapped("a  b", 20, "a  b");
    assert_wrapped("\xe6\x97\xa5 \xe6\x9c\xac", 8, "\xe6\x97\xa5\n    \xe6\x9c\xac");
}

static void assert_duration(double seconds, const char *expected)
{
    char text[48];
    assert_string_equal(text_duration(seconds, text, sizeof(text)), expected);
}

static void test_duration(void **unused)
{
    assert_duration(0, "0.0 s");
    assert_duration(9.94, "9.9 s");
    assert_duration(9.96, "10 s");
    assert_duration(59.6, "1 min 0 s");
    assert_duration(125, "2 min 5 s");
    assert_duration(3600, "1 h 0 min");
    assert_duration(86399, "23 h 59 min");
    assert_duration(277200, "3 d 5 h");
    assert_duration(-1, "-");
    assert_duration(NAN, "-");
    assert_duration(1e300, "-");
}

static void assert_clock(double when, const char *expected)
{
    char text[32];
    assert_string_equal(text_clock(when, 1700000150, text, sizeof(text)), expected);
}

static void test_clock(void **unused)
{
    assert_clock(1700000000, "22:13:20");
    assert_clock(1699900000, "2023-11-13 18:26:40");
    assert_clock(0, "-");
    assert_clock(-1e300, "-");
    assert_clock(1e300, "-");
    assert_clock(NAN, "-");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_extension_mark),
        cmocka_unit_test(test_find_bases),
        cmocka_unit_test(test_entry_without_leader),
        cmocka_unit_test(test_entry_with_leader),
        cmocka_unit_test(test_entry_with_roles),
        cmocka_unit_test(test_clean),
        cmocka_unit_test(test_wrap),
        cmocka_unit_test(test_duration),
        cmocka_unit_test(test_clock),
    };
    setenv("TZ", "UTC", 1);
    if (setlocale(LC_CTYPE, "C.UTF-8") == NULL) {
        fputs("Bail out! no locale C.UTF-8\n", stdout);
        return 1;
    }
    return cmocka_run_group_tests_name("selastic_jobs", tests, NULL, NULL);
}

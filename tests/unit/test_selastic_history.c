/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hostile history.jsonl files: what is made of them stays small, and each line costs the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/history_file.h"
#include "cmd/picture.h"
#include "cmd/shape.h"
#include "tests/unit/support.h"

#define MIB ((size_t)1024 * 1024)

struct text {
    char *bytes;
    size_t length;
    FILE *out;
};

static void text_begin(struct text *text)
{
    text->out = open_memstream(&text->bytes, &text->length);
    assert_non_null(text->out);
}

static void put_times(struct text *text, const char *what, int times)
{
    for (int i = 0; i < times; i++)
        fputs(what, text->out);
}

/* The history of the text, which is freed. */
static json_object *read_text(struct text *text, int expected_skipped)
{
    struct history_losses losses;
    fclose(text->out);
    json_object *history = history_file_parse(12, text->bytes, text->length, &losses);
    assert_int_equal(losses.skipped, expected_skipped);
    assert_int_equal(losses.left_out, 0);
    free(text->bytes);
    return history;
}

static char *draw(json_object *history, bool html)
{
    const struct picture_options options = {.title = "Elastic job 12", .end = 200, .html = html};
    char *picture = picture_draw(field_array(history, "generations"), &options);
    assert_non_null(picture);
    return picture;
}

/* With --enable-sanitizers strstr() goes through all that is left each time, which is megabytes. */
static int count_of(const char *text, const char *what)
{
    const char *end = text + strlen(text);
    int count = 0;
    for (; (text = memmem(text, (size_t)(end - text), what, strlen(what))) != NULL;
         text += strlen(what))
        count++;
    return count;
}

/* A line of the greatest length: one node 65,536 times, and the rest is the reason. */
static void test_one_long_line(void **unused)
{
    struct text text;
    text_begin(&text);
    fputs("{\"generation\": 1, \"time\": 100, \"kind\": \"start\", \"size\": 1, \"nodes\": [\"a\"",
          text.out);
    put_times(&text, ",\"a\"", 65535);
    fputs("], \"reason\": \"", text.out);
    fflush(text.out);
    put_times(&text, "<", (int)(MIB - text.length - 3));
    fputs("\"}\n", text.out);
    fflush(text.out);
    assert_int_equal(text.length, MIB);
    json_object *history = read_text(&text, 0);
    for (int html = 0; html < 2; html++) {
        char *picture = draw(history, html);
        assert_int_equal(count_of(picture, "class=\"node\""), 1);
        assert_true(strlen(picture) < 16384);
        free(picture);
    }
    json_object_put(history);
}

/* The shortest lines that draw the most: 40 rows each, and a reason for each tip. */
static void test_many_lines(void **unused)
{
    struct text text;
    text_begin(&text);
    for (int i = 0; i < 1000; i++) {
        fprintf(text.out, "{\"generation\":%d,\"time\":1,\"kind\":\"\",\"nodes\":[\"0\"", i);
        for (int node = 1; node < 40; node++)
            fprintf(text.out, ",\"%d\"", node);
        fputs("],\"reason\":\"", text.out);
        put_times(&text, "<", 200);
        fputs("\"}\n", text.out);
    }
    fflush(text.out);
    size_t length = text.length;
    json_object *history = read_text(&text, 0);
    for (int html = 0; html < 2; html++) {
        char *picture = draw(history, html);
        assert_int_equal(count_of(picture, "class=\"node\""), 40 * 1000);
        /* Of a tip for each bar it would be 80 times. */
        assert_true(strlen(picture) < 32 * length);
        free(picture);
    }
    json_object_put(history);
}

/* A cut is between two characters, of one byte or of several. */
static void test_long_reasons(void **unused)
{
    struct text text;
    text_begin(&text);
    fputs("{\"generation\": 1, \"time\": 100, \"kind\": \"start\", \"nodes\": [\"a\"], \"reason\": "
          "\"b",
          text.out);
    put_times(&text, "\xc3\xa9", 1500);
    fputs("\"}\n", text.out);
    json_object *history = read_text(&text, 0);
    char *picture = draw(history, true);
    char *tip = strstr(picture, "<title>generation 1, start: b");
    const char *table = strstr(picture, "<td class=\"words\">b");
    assert_non_null(tip);
    assert_non_null(table);
    char *end = strstr(tip, "</title>");
    assert_non_null(end);
    *end = '\0';
    assert_int_equal(count_of(tip, "&#xe9;"), 199);
    assert_string_equal(end - strlen("&#x2026;"), "&#x2026;");
    assert_int_equal(count_of(table, "&#xe9;"), 999);
    assert_int_equal(count_of(table, "&#x2026;"), 1);
    assert_null(strstr(picture, "&#xfffd;"));
    free(picture);
    json_object_put(history);
}

/* Late lines find their generation, among many. A search through all generations for each line
 * would be 4 * 10^10 looks. */
static void test_many_late_lines(void **unused)
{
    enum { GENERATIONS = RANDOM_ROUNDS(50000), LATE = RANDOM_ROUNDS(400000) };
    struct text text;
    text_begin(&text);
    for (int i = 1; i <= GENERATIONS; i++)
        fprintf(text.out, "{\"generation\":%d,\"time\":%d,\"kind\":\"\"}\n", i, i);
    for (int i = 1; i <= LATE; i++)
        fprintf(text.out, "{\"generation\":1,\"steps\":%d}\n", i);
    put_times(&text, "{\"generation\":-7,\"steps\":1}\n", LATE / 4);
    put_times(&text, "{}\n", LATE);
    json_object *history = read_text(&text, LATE / 4 + LATE);
    json_object *generations = field_array(history, "generations");
    assert_int_equal(json_object_array_length(generations), GENERATIONS);
    assert_int_equal(field_int(json_object_array_get_idx(generations, 0), "steps", -1), LATE);
    assert_int_equal(field_int(json_object_array_get_idx(generations, 1), "steps", -1), -1);
    json_object_put(history);
}

/* Of two with one number, the newest. */
static void test_numbers_that_begin_again(void **unused)
{
    static const char lines[] = "{\"generation\":1,\"time\":10,\"kind\":\"start\"}\n"
                                "{\"generation\":2,\"time\":20,\"kind\":\"grow\"}\n"
                                "{\"generation\":1,\"steps\":5}\n"
                                "{\"generation\":1,\"time\":30,\"kind\":\"start\"}\n"
                                "{\"generation\":1,\"steps\":7}\n"
                                "{\"generation\":2,\"steps\":6}\n";
    static const int steps[] = {5, 6, 7};
    struct text text;
    text_begin(&text);
    fputs(lines, text.out);
    json_object *history = read_text(&text, 0);
    json_object *generations = field_array(history, "generations");
    assert_int_equal(json_object_array_length(generations), 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(field_int(json_object_array_get_idx(generations, i), "steps", -1),
                         steps[i]);
    json_object_put(history);
}

/* Generations without an end, as small as they can be: the newest are kept, and late lines find
 * those that are. In memory each is a hundred times as large as in the file. */
static void test_too_many(void **unused)
{
    enum { LINES = HISTORY_WEIGHT_MAX / HISTORY_GENERATION_WEIGHT + 1 };
    struct history_losses losses;
    struct text text;
    text_begin(&text);
    for (int i = 1; i <= LINES; i++)
        fprintf(text.out, "{\"generation\":%d,\"time\":%d}\n", i, i);
    fprintf(text.out, "{\"generation\":1,\"steps\":5}\n{\"generation\":%d,\"steps\":6}\n", LINES);
    fclose(text.out);
    json_object *history = history_file_parse(12, text.bytes, text.length, &losses);
    free(text.bytes);
    json_object *generations = field_array(history, "generations");
    int count = (int)json_object_array_length(generations);
    assert_int_equal(losses.left_out, LINES - count);
    assert_int_equal(count, HISTORY_WEIGHT_MAX / HISTORY_GENERATION_WEIGHT / 2);
    assert_int_equal(losses.skipped, 1);
    assert_int_equal(field_int(json_object_array_get_idx(generations, 0), "generation", -1),
                     losses.left_out + 1);
    json_object *last = json_object_array_get_idx(generations, (size_t)count - 1);
    assert_int_equal(field_int(last, "generation", -1), LINES);
    assert_int_equal(field_int(last, "steps", -1), 6);
    json_object_put(history);
}

/* Names weigh as well. */
static void test_too_many_names(void **unused)
{
    enum { NAMES = 60000, LINES = HISTORY_WEIGHT_MAX / NAMES + 1 };
    struct history_losses losses;
    struct text text;
    text_begin(&text);
    for (int i = 1; i <= LINES; i++) {
        fprintf(text.out, "{\"generation\":%d,\"time\":%d,\"nodes\":[\"\"", i, i);
        put_times(&text, ",\"\"", NAMES - 1);
        fputs("]}\n", text.out);
    }
    fclose(text.out);
    json_object *history = history_file_parse(12, text.bytes, text.length, &losses);
    free(text.bytes);
    assert_true(losses.left_out > LINES / 3);
    assert_int_equal(field_count(history, "generations"), LINES - losses.left_out);
    json_object_put(history);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_long_line),
        cmocka_unit_test(test_many_lines),
        cmocka_unit_test(test_long_reasons),
        cmocka_unit_test(test_many_late_lines),
        cmocka_unit_test(test_numbers_that_begin_again),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_too_many_names),
    };
    return cmocka_run_group_tests_name("selastic_history", tests, NULL, NULL);
}

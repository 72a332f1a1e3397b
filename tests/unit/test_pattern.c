/* SPDX-License-Identifier: GPL-2.0-or-later */
/* agent/pattern: lines in pieces, long ones, what is in them, and what is no regular expression. */
#include "agent/pattern.h"

#include "tests/unit/support.h"

static const char *feed(const struct pattern *pattern, struct pattern_stream *stream,
                        const char *text)
{
    return pattern_feed(pattern, stream, text, strlen(text));
}

static void test_lines_in_pieces(void **state)
{
    struct pattern *pattern = pattern_create("loss( is)? nan|^Xid [0-9]+$", NULL);
    struct pattern_stream stream = {.used = 0};

    (void)state;
    assert_non_null(pattern);
    assert_null(feed(pattern, &stream, "loss 0.3\nloss n"));
    assert_null(feed(pattern, &stream, "a"));
    assert_null(feed(pattern, &stream, "n")); /* the line has not ended */
    assert_string_equal(feed(pattern, &stream, "\nand more"), "loss nan");
    assert_null(feed(pattern, &stream, "\nan Xid 79\nXid\n"));
    assert_string_equal(feed(pattern, &stream, "Xid 79\n"), "Xid 79");
    assert_null(feed(pattern, &stream, ""));
    pattern_destroy(pattern);
    pattern_destroy(NULL);
}

static void test_long_lines_and_nul(void **state)
{
    struct pattern *pattern = pattern_create("end", NULL);
    struct pattern_stream stream = {.used = 0};
    const char *line;

    (void)state;
    for (int i = 0; i < 2 * PATTERN_LINE; i++)
        assert_null(feed(pattern, &stream, "x"));
    assert_null(feed(pattern, &stream, "end\n")); /* behind what is looked at */
    line = pattern_feed(pattern, &stream, "a\0end\n", 6);
    assert_non_null(line);
    assert_string_equal(line, "a end");
    pattern_destroy(pattern);
}

static void test_what_is_no_regular_expression(void **state)
{
    static const char *const wrong[] = {"(", "[a", "a{2", "*x)"};

    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct error err = {""};

        assert_null(pattern_create(wrong[i], &err));
        assert_one_line(err.text);
        assert_non_null(strstr(err.text, wrong[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_in_pieces),
        cmocka_unit_test(test_long_lines_and_nul),
        cmocka_unit_test(test_what_is_no_regular_expression),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

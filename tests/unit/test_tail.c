/* SPDX-License-Identifier: GPL-2.0-or-later */
/* agent/member/tail: which line is the reason for a program's end. */
#include "agent/member/tail.h"

#include <signal.h>

#include "tests/unit/support.h"

#define WARNING                                                                                    \
    "/lib/python3/lightning/_pytree.py:21: FutureWarning: `isinstance()` is deprecated\n"

static const char *after(struct tail *tail, const char *text)
{
    tail_feed(tail, text, strlen(text));
    return tail_line(tail);
}

static void test_the_last_line(void **state)
{
    struct tail tail = {.used = 0};

    (void)state;
    assert_null(after(&tail, ""));
    assert_null(after(&tail, "ValueError: no "));
    assert_string_equal(after(&tail, "loss\n\n\n"), "ValueError: no loss");
    assert_string_equal(after(&tail, "that has not ended"), "ValueError: no loss");
}

static void test_long_lines(void **state)
{
    struct tail tail = {.used = 0};

    (void)state;
    for (int i = 0; i < 2 * TAIL_BYTES; i++)
        tail_feed(&tail, "x", 1);
    assert_int_equal(strlen(after(&tail, "\n")), TAIL_BYTES - 1);
    assert_string_equal(after(&tail, "y\n"), "y");
}

/* The line that warns comes with its source, as a rule. */
static void test_warnings_are_no_reason(void **state)
{
    static const char *const WARNINGS[] = {
        WARNING "  return [pytree], LeafSpec()\n", WARNING,
        WARNING WARNING "  return\n" WARNING,      "<string>:1: Warning: own\n",
        "a b.py:7: my_Warning: own\n  raise\n",
    };
    static const char *const REASONS[] = {
        "DeprecationWarning: made an error",
        "Warning: this is one",
        "10: Warning here",
        "  an indented line",
        "x: UserWarning: no",
        ": Warning: no",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(WARNINGS); i++) {
        struct tail tail = {.used = 0};

        assert_null(after(&tail, WARNINGS[i]));
        assert_string_equal(after(&tail, "ValueError: no loss\n"), "ValueError: no loss");
        assert_string_equal(after(&tail, WARNINGS[i]), "ValueError: no loss");
    }
    for (size_t i = 0; i < COUNT(REASONS); i++) {
        struct tail tail = {.used = 0};

        after(&tail, REASONS[i]);
        assert_string_equal(after(&tail, "\n"), REASONS[i]);
    }
}

/* Only one line belongs to a warning. */
static void test_what_follows_a_warning(void **state)
{
    struct tail tail = {.used = 0};

    (void)state;
    assert_string_equal(after(&tail, WARNING "  source\n  indented\n"), "  indented");
}

static void test_why(void **state)
{
    json_object *error = json_tokener_parse("{\"message\":\"told\"}");
    struct tail tail = {.used = 0};

    (void)state;
    assert_null(tail_why(&tail, NULL, 0));
    assert_string_equal(tail_why(&tail, error, SIGKILL), "told");
    after(&tail, "terminate called\n");
    assert_string_equal(tail_why(&tail, NULL, 0), "terminate called");
    assert_string_equal(tail_why(&tail, NULL, SIGABRT), "terminate called");
    assert_string_equal(tail_why(&tail, error, 0), "told");
    /* It was in the midst of something else. */
    assert_null(tail_why(&tail, NULL, SIGKILL));
    /* elasticrun itself has ended it. */
    tail_set(&tail, "loss: nan");
    assert_string_equal(tail_why(&tail, NULL, SIGKILL), "loss: nan");
    json_object_put(error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_last_line),
        cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_warnings_are_no_reason),
        cmocka_unit_test(test_what_follows_a_warning),
        cmocka_unit_test(test_why),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/error: one line whatever goes in. */
#include <errno.h>

#include "lib/error.h"
#include "tests/unit/support.h"

static void test_set_and_prefix(void **state)
{
    struct error err;

    errno = ENOTTY;
    assert_int_equal(error_set(&err, "%s is %d", "x", 5), -1);
    assert_string_equal(err.text, "x is 5");
    assert_int_equal(error_prefix(&err, "file %d", 7), -1);
    assert_string_equal(err.text, "file 7: x is 5");
    assert_int_equal(errno, ENOTTY);
    assert_int_equal(error_set(NULL, "x"), -1);
    assert_int_equal(error_prefix(NULL, "x"), -1);
}

static void test_argument_from_itself(void **state)
{
    struct error err;

    error_set(&err, "inner");
    error_set(&err, "outer (%s)", err.text);
    assert_string_equal(err.text, "outer (inner)");
    error_prefix(&err, "%s", err.text);
    assert_string_equal(err.text, "outer (inner): outer (inner)");
}

static void test_cut(void **state)
{
    struct error err;
    char text[3000];

    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    error_set(&err, "%s", text);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    assert_string_equal(err.text + sizeof(err.text) - 5, "a...");
    error_prefix(&err, "front");
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    assert_memory_equal(err.text, "front: aaa", 10);
    error_prefix(&err, "%s", text);
    assert_string_equal(err.text + sizeof(err.text) - 5, "a...");
    /* Just fits. */
    error_set(&err, "%.*s", (int)sizeof(err.text) - 1, text);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    assert_null(strchr(err.text, '.'));
}

/* Two bytes each, so that each possible cut between two bytes of one is met. */
static void test_cut_keeps_characters_whole(void **state)
{
    for (int shift = 0; shift < 4; shift++) {
        struct error err;
        char text[1000] = "xxxx";

        for (size_t i = (size_t)shift; i + 2 < sizeof(text); i += 2)
            memcpy(text + i, "\xc3\xa4", 3);
        error_set(&err, "%s", text);
        assert_null(strchr(err.text, '?'));
        assert_true(strlen(err.text) >= sizeof(err.text) - 2);
    }
}

static void test_clean(void **state)
{
    static const struct {
        const char *raw, *clean;
    } cases[] = {
        {"", ""},
        {"plain", "plain"},
        {"a\nb\tc\rd", "a?b?c?d"},
        {"\033[31mred\x7f", "?[31mred?"},
        {"M\xc3\xbcnchen \xe2\x82\xac \xf0\x9f\x98\x80",
         "M\xc3\xbcnchen \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"\xc2\x9b"
         "31m",
         "??31m"}, /* C1: a terminal takes it for ESC [ */
        {"a\xe2\x80\xa8"
         "b",
         "a???b"}, /* LINE SEPARATOR */
        {"\xff\xfe", "??"},
        {"\x80", "?"},
        {"a\xc3", "a?"},
        {"\xe2\x82", "??"},
        {"\xf0\x9f\x98", "???"},
        {"\xc0\xaf", "??"}, /* overlong / */
        {"\xe0\x80\xaf", "???"},
        {"\xf0\x80\x80\xaf", "????"},
        {"\xed\xa0\x80", "???"},      /* surrogate */
        {"\xf4\x90\x80\x80", "????"}, /* above U+10FFFF */
        {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[64];

        strcpy(text, cases[i].raw);
        assert_int_equal(error_is_clean(text), strcmp(cases[i].raw, cases[i].clean) == 0);
        error_clean(text);
        assert_true(error_is_clean(text));
        assert_string_equal(text, cases[i].clean);
    }
}

static void test_values_and_paths(void **state)
{
    char text[1000];

    memset(text, 'v', sizeof(text));
    text[60] = '\0';
    assert_string_equal(error_value(text).text, text);
    text[60] = 'v';
    text[61] = '\0';
    assert_int_equal(strlen(error_value(text).text), 63);
    assert_string_equal(error_value(text).text + 57, "vvv...");
    assert_string_equal(error_value("a\nb").text, "a?b");
    assert_string_equal(error_value(NULL).text, "(none)");

    text[61] = 'v';
    strcpy(text + 900, "/end.conf");
    assert_int_equal(strlen(error_path(text).text), 163);
    assert_memory_equal(error_path(text).text, "...vvv", 6);
    assert_string_equal(error_path(text).text + 163 - 9, "/end.conf");
    assert_string_equal(error_path("/etc/x").text, "/etc/x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_and_prefix),
        cmocka_unit_test(test_argument_from_itself),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_cut_keeps_characters_whole),
        cmocka_unit_test(test_clean),
        cmocka_unit_test(test_values_and_paths),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/text: arrays of strings. (What builds text and reads UTF-8 is tested where it is used.) */
#include "lib/text.h"

#include "tests/unit/support.h"

static void test_a_copy_is_whole_and_its_own(void **state)
{
    char first[] = "n1";
    char *strings[] = {first, "", "n3", NULL};
    char **copy = strings_copy(strings);

    (void)state;
    assert_non_null(copy);
    first[0] = 'm';
    assert_string_equal(copy[0], "n1");
    assert_string_equal(copy[1], "");
    assert_string_equal(copy[2], "n3");
    assert_null(copy[3]);
    strings_free(copy);
}

static void test_nothing_to_copy(void **state)
{
    char *none[] = {NULL};
    char **copy = strings_copy(none);

    (void)state;
    assert_non_null(copy);
    assert_null(copy[0]);
    strings_free(copy);
    assert_null(strings_copy(NULL));
    strings_free(NULL);
}

static void test_the_value_of_a_name(void **state)
{
    char *none[] = {NULL};
    char *env[] = {"AB=1", "B", "A=", "A=2=3", "C", NULL};

    (void)state;
    assert_string_equal(assignment_value("A=1", "A"), "1");
    assert_string_equal(assignment_value("A=", "A"), "");
    assert_null(assignment_value("A", "A"));
    assert_null(assignment_value("AB=1", "A"));
    assert_string_equal(strings_value(env, "AB"), "1");
    assert_string_equal(strings_value(env, "A"), "");
    assert_string_equal(strings_filled_value(env, "A"), "2=3");
    assert_null(strings_value(env, "C"));
    assert_null(strings_value(none, "A"));
    assert_null(strings_value(NULL, "A"));
    assert_null(strings_filled_value(env, "B"));
    assert_null(strings_filled_value(NULL, "A"));
}

static void test_without_names(void **state)
{
    static const char *const names[] = {"A", "C", NULL}, *const none[] = {NULL};
    char *env[] = {"A=1", "AB=2", "B=3", "C=", "A=4", "C", NULL};
    char **kept = strings_without(env, names);

    (void)state;
    assert_int_equal(strings_count(kept), 3);
    assert_string_equal(kept[0], "AB=2");
    assert_string_equal(kept[1], "B=3");
    assert_string_equal(kept[2], "C");
    strings_free(kept);
    kept = strings_without(env, none);
    assert_int_equal(strings_count(kept), strings_count(env));
    strings_free(kept);
    kept = strings_without(NULL, names);
    assert_null(kept[0]);
    strings_free(kept);
}

static void test_distance(void **state)
{
    static const struct {
        const char *a, *b;
        size_t distance;
    } cases[] = {
        {"", "", 0},
        {"show", "show", 0},
        {"", "ab", 2},
        {"show", "sho", 1},
        {"show", "shiw", 1},
        {"list", "lits", 2},
        {"clean", "scale", 4},
        {"a", "123456789012345678901234567890123", SIZE_MAX},
        {"12345678901234567890123456789012", "12345678901234567890123456789012", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        assert_int_equal(text_distance(cases[i].a, cases[i].b), cases[i].distance);
        assert_int_equal(text_distance(cases[i].b, cases[i].a), cases[i].distance);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_copy_is_whole_and_its_own),
        cmocka_unit_test(test_nothing_to_copy),
        cmocka_unit_test(test_the_value_of_a_name),
        cmocka_unit_test(test_without_names),
        cmocka_unit_test(test_distance),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_copy_is_whole_and_its_own),
        cmocka_unit_test(test_nothing_to_copy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

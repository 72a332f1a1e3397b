/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sets of names of nodes. */
#include "tests/unit/support.h"

#include "lib/names.h"
#include "lib/text.h"

static void assert_names(char **names, char *const *expected)
{
    assert_non_null(names);
    for (size_t i = 0; i < strings_count(names) || i < strings_count(expected); i++) {
        assert_non_null(names[i]);
        assert_non_null(expected[i]);
        assert_string_equal(names[i], expected[i]);
    }
    strings_free(names);
}

static void test_without_and_with(void **state)
{
    static char n1[] = "n1", n2[] = "n2", n10[] = "n10", x[] = "x";
    char *const some[] = {n10, n2, n1, NULL}, *const others[] = {x, n2, NULL};
    char *const none[] = {NULL};

    (void)state;
    assert_names(names_without(some, others), (char *[]){n10, n1, NULL});
    assert_names(names_without(some, some), none);
    assert_names(names_without(some, NULL), some);
    assert_names(names_without(NULL, some), none);
    assert_names(names_with(some, others), (char *[]){n10, n2, n1, x, NULL});
    assert_names(names_with(NULL, others), others);
    assert_names(names_with(none, NULL), none);
    assert_int_equal(names_count_without(some, others), 2);
    assert_int_equal(names_count_without(NULL, NULL), 0);
}

static void test_equal_whatever_the_order(void **state)
{
    static char n1[] = "n1", n2[] = "n2", n10[] = "n10";

    (void)state;
    assert_true(names_equal((char *[]){n1, n2, NULL}, (char *[]){n2, n1, NULL}));
    assert_true(names_equal(NULL, (char *[]){NULL}));
    assert_false(names_equal((char *[]){n1, NULL}, (char *[]){n1, n10, NULL}));
    assert_false(names_equal((char *[]){n1, n10, NULL}, (char *[]){n1, NULL}));
    assert_false(names_equal((char *[]){n1, NULL}, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_and_with),
        cmocka_unit_test(test_equal_whatever_the_order),
    };

    return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}

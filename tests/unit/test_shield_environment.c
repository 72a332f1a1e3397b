/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The environment of a program that libelastic-shield.so is to protect (lib/shield.h). */
#include "lib/shield.h"
#include "lib/text.h"
#include "tests/unit/support.h"

#define LIBRARY "/usr/lib/libelastic/libelastic-shield.so"

static void assert_preload(const char *users, const char *expected)
{
    char *user[] = {"LD_PRELOADS=/other", "PATH=/bin", (char *)users, NULL};
    char **entries = shield_environment(user, LIBRARY, 4711);

    assert_non_null(entries);
    assert_string_equal(entries[0], expected);
    assert_string_equal(entries[1], "ELASTIC_SHIELD=4711");
    assert_null(entries[2]);
    strings_free(entries);
}

static void the_users_libraries_are_in_front(void **state)
{
    (void)state;
    assert_preload(NULL, "LD_PRELOAD=" LIBRARY);
    assert_preload("LD_PRELOAD=", "LD_PRELOAD=" LIBRARY);
    assert_preload("LD_PRELOAD=/a.so", "LD_PRELOAD=/a.so:" LIBRARY);
    assert_preload("LD_PRELOAD=/a.so /b.so:c.so", "LD_PRELOAD=/a.so /b.so:c.so:" LIBRARY);
    assert_preload("LD_PRELOAD=" LIBRARY ".1", "LD_PRELOAD=" LIBRARY ".1:" LIBRARY);
}

static void a_library_is_named_once(void **state)
{
    (void)state;
    assert_preload("LD_PRELOAD=" LIBRARY, "LD_PRELOAD=" LIBRARY);
    assert_preload("LD_PRELOAD=/a.so: " LIBRARY ":/b.so:", "LD_PRELOAD=/a.so: " LIBRARY ":/b.so:");
}

static void assert_nothing(const char *library, pid_t stepd)
{
    char **entries = shield_environment(NULL, library, stepd);

    assert_non_null(entries);
    assert_null(entries[0]);
    strings_free(entries);
}

static void what_cannot_be_said_is_left_out(void **state)
{
    (void)state;
    assert_nothing("/opt/my programs/shield.so", 4711);
    assert_nothing("/opt/a:b/shield.so", 4711);
    assert_nothing(LIBRARY, 1);
    assert_nothing(LIBRARY, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_users_libraries_are_in_front),
        cmocka_unit_test(a_library_is_named_once),
        cmocka_unit_test(what_cannot_be_said_is_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

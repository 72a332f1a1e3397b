/* SPDX-License-Identifier: GPL-2.0-or-later */
/* common/program: what a program prints, whatever it does. */
#include "common/program.h"

#include "tests/unit/support.h"

#define RUN(timeout_ms, max, ...)                                                                  \
    program_output((char *[]){__VA_ARGS__, NULL}, timeout_ms, max, &text, &err)

static void test_output_and_status(void **unused)
{
    struct error err = {""};
    char *text = NULL;

    assert_int_equal(RUN(20000, 100, "sh", "-c", "echo one; echo two >&2; pwd"), 0);
    assert_string_equal(text, "one\n/\n");
    free(text);
    assert_int_equal(RUN(20000, 100, "sh", "-c", "echo some; echo a >&2; echo why >&2; exit 3"), 3);
    assert_string_equal(text, "some\n");
    assert_string_equal(err.text, "why");
    free(text);
    assert_int_equal(RUN(20000, 100, "false"), 1);
    assert_string_equal(err.text, "false has failed without a word");
    free(text);
    assert_int_equal(RUN(20000, 100, "cat"), 0); /* there is no input */
    free(text);
}

static void test_more_than_is_wanted(void **unused)
{
    struct error err = {""};
    char *text = NULL;

    assert_int_equal(RUN(20000, 8, "sh", "-c", "head -c 300000 /dev/zero; echo x"), 0);
    assert_string_equal(text, "        ");
    free(text);
}

static void test_failures(void **unused)
{
    struct error err = {""};
    char *text = NULL;

    assert_int_equal(RUN(20000, 8, "no-such-program-of-ours"), -1);
    assert_null(text);
    assert_string_equal(err.text, "no-such-program-of-ours: No such file or directory");
    assert_int_equal(RUN(20000, 8, "sh", "-c", "kill -KILL $$"), -1);
    assert_null(text);
    assert_string_equal(err.text, "sh was killed by signal 9");
}

/* It is told to end, which srun understands; what does not understand it is killed. */
static void test_too_long(void **unused)
{
    struct error err = {""};
    char *text = NULL;

    assert_int_equal(RUN(300, 8, "sleep", "1000"), -1);
    assert_null(text);
    assert_string_equal(err.text, "sleep does not answer within 0.3 s");
    assert_int_equal(
        RUN(300, 8, "sh", "-c", "trap '' TERM; exec >&- 2>&-; while :; do sleep 1; done"), -1);
    assert_string_equal(err.text, "sh does not answer within 0.3 s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_output_and_status),
        cmocka_unit_test(test_more_than_is_wanted),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

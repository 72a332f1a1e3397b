/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which releases work together, and what is said of those that do not. */
#include "tests/unit/support.h"

#include "lib/release.h"

static const struct release own = {"0.3.0", 3, 2};

static int agree(const char *json, struct error *err)
{
    json_object *msg = json_tokener_parse(json);
    struct release theirs;
    int rc;

    assert_non_null(msg);
    release_read(msg, &theirs);
    json_object_put(msg);
    rc = release_agree(&own, "elasticrun on n1", &theirs, "elasticrun on n4", err);
    return rc;
}

static void test_what_is_written_is_read(void **state)
{
    json_object *msg = json_object_new_object();
    struct release read;

    (void)state;
    release_write(msg, &own);
    release_read(msg, &read);
    json_object_put(msg);
    assert_string_equal(read.name, "0.3.0");
    assert_int_equal(read.protocol, 3);
    assert_int_equal(read.oldest, 2);
}

static void test_a_protocol_in_common_is_enough(void **state)
{
    struct error err;

    (void)state;
    assert_int_equal(agree("{\"protocol\": 3, \"oldest\": 3}", &err), 0);
    assert_int_equal(agree("{\"protocol\": 2, \"oldest\": 1}", &err), 0);
    assert_int_equal(agree("{\"protocol\": 9, \"oldest\": 3}", &err), 0);
    assert_int_equal(agree("{\"protocol\": 2}", &err), 0);
    /* Unknown fields, and a release that nobody knows. */
    assert_int_equal(agree("{\"release\": \"x y\", \"protocol\": 3, \"new\": []}", &err), 0);
}

static void test_a_refusal_names_both(void **state)
{
    struct error err;

    (void)state;
    assert_int_equal(agree("{\"release\": \"0.5.0\", \"protocol\": 5, \"oldest\": 4}", &err), -1);
    assert_string_equal(err.text,
                        "elasticrun on n4 (release 0.5.0) speaks protocol 4 to 5, elasticrun on n1 "
                        "(release 0.3.0) protocol 2 to 3: install one release of slurm-elastic on "
                        "all nodes");
    /* Before it was said. */
    assert_int_equal(agree("{}", &err), -1);
    assert_non_null(strstr(err.text, "n4 (release unknown) speaks protocol 1,"));
}

static void test_nonsense_is_protocol_1(void **state)
{
    static const char *const cases[] = {
        "{\"protocol\": 0}",
        "{\"protocol\": \"3\"}",
        "{\"protocol\": -1, \"oldest\": 3}",
        "{\"protocol\": 99999999999}",
        "{\"protocol\": 1, \"oldest\": 3}",
    };
    struct error err;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(agree(cases[i], &err), -1);
        assert_non_null(strstr(err.text, "speaks protocol 1,"));
    }
    assert_int_equal(agree("{\"release\": \"\\u001b[31m\"}", &err), -1);
    assert_null(strchr(err.text, '\033'));
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_written_is_read),
        cmocka_unit_test(test_a_protocol_in_common_is_enough),
        cmocka_unit_test(test_a_refusal_names_both),
        cmocka_unit_test(test_nonsense_is_protocol_1),
    };

    (void)argc;
    (void)argv;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

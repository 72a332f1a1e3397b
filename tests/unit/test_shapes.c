/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/shapes: the shapes file, and what is wrong with one. */
#include "lib/shapes.h"

#include "tests/unit/support.h"

static void test_read(void **state)
{
    static const char text[] =
        "{\"format\": 1, \"shapes\": {\"a\": {\"cores\": 8}, \"b\": {}},"
        " \"nodes\": {\"n[1-3,7]\": \"b\", \"m08\": \"a\", \"x[008-010],y\": \"a\"}}";
    struct error err;
    struct shapes *shapes = shapes_parse(text, strlen(text), &err);

    (void)state;
    assert_non_null(shapes);
    assert_int_equal(shapes_count(shapes), 2);
    assert_int_equal(shapes_nodes(shapes), 9);
    assert_string_equal(shapes_name(shapes, shapes_of(shapes, "n2")), "b");
    assert_string_equal(shapes_name(shapes, shapes_of(shapes, "n7")), "b");
    assert_string_equal(shapes_name(shapes, shapes_of(shapes, "x009")), "a");
    assert_string_equal(shapes_name(shapes, shapes_of(shapes, "y")), "a");
    assert_int_equal(shapes_of(shapes, "n4"), -1);
    assert_int_equal(shapes_of(shapes, ""), -1);
    assert_int_equal(shapes_of(NULL, "n1"), -1);
    shapes_destroy(shapes);
    shapes_destroy(NULL);
}

static void test_empty(void **state)
{
    static const char text[] = "{\"format\":1,\"shapes\":{},\"nodes\":{}}";
    struct error err;
    struct shapes *shapes = shapes_parse(text, strlen(text), &err);

    (void)state;
    assert_non_null(shapes);
    assert_int_equal(shapes_of(shapes, "n1"), -1);
    shapes_destroy(shapes);
}

static void test_refused(void **state)
{
    static const struct {
        const char *text, *message;
    } table[] = {
        {"", "nothing in it"},
        {"[]", "object"},
        {"{\"shapes\":{},\"nodes\":{}}", "\"format\" is missing"},
        {"{\"format\":2,\"shapes\":{},\"nodes\":{}}", "collect the shapes again"},
        {"{\"format\":1,\"nodes\":{}}", "\"shapes\" is missing"},
        {"{\"format\":1,\"shapes\":[],\"nodes\":{}}", "\"shapes\" is an array"},
        {"{\"format\":1,\"shapes\":{}}", "\"nodes\" is missing"},
        {"{\"format\":1,\"shapes\":{\"a\":1},\"nodes\":{}}", "shape a is"},
        {"{\"format\":1,\"shapes\":{\"a\":{}},\"nodes\":{\"n1\":1}}", "the shape of n1 is"},
        {"{\"format\":1,\"shapes\":{\"a\":{}},\"nodes\":{\"n1\":\"b\"}}", "n1 has the shape b"},
        {"{\"format\":1,\"shapes\":{\"a\":{}},\"nodes\":{\"n[1-2]\":\"a\",\"n2\":\"a\"}}",
         "node n2 is there twice"},
        {"{\"format\":1,\"shapes\":{\"a\":{}},\"nodes\":{\"n[1-\":\"a\"}}", "nodes: "},
        {"{\"format\":1,\"shapes\":{\"a\":{}},\"nodes\":{\"n[1-999999]\":\"a\"}}", "more than"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct error err = {""};

        assert_null(shapes_parse(table[i].text, strlen(table[i].text), &err));
        assert_one_line(err.text);
        if (!strstr(err.text, table[i].message))
            fail_msg("%s: %s", table[i].text, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_refused),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("shapes", tests, NULL, NULL);
}

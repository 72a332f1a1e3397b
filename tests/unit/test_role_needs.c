/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/role_needs: what replicas need, in messages, files and requests. */
#include "lib/role_needs.h"
#include "tests/unit/support.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void test_values(void **state)
{
    static const struct {
        const char *key, *value;
        int64_t number; /* -1: refused */
    } cases[] = {
        {"cpus", "2", 2},
        {"cpus", "\"0.5\"", 1},
        {"cpus", "\"2000m\"", 2},
        {"cpus", "2.25", 3},
        {"cpus", "0", 0},
        {"cpus", "65536", -1},
        {"cpus", "-1", -1},
        {"cpus", "\"-1\"", -1},
        {"cpus", "\"-0.5\"", -1},
        {"cpus", "\"two\"", -1},
        {"cpus", "\"0x10\"", -1},
        {"cpus", "\"1e400\"", -1},
        {"cpus", "\"\"", -1},
        {"cpus", "null", -1},
        {"cpus", "[1]", -1},
        {"gpus", "\"4\"", 4},
        {"gpus", "1025", -1},
        {"memory", "200", 200},
        {"memory", "\"200\"", 200},
        {"memory", "\"200Mi\"", 200},
        {"memory", "\"2Gi\"", 2048},
        {"memory", "\"1M\"", 1},
        {"memory", "\"1Ki\"", 1},
        {"memory", "\"1Ei\"", 1099511627776},
        {"memory", "\"2Ei\"", -1},
        {"disks", "1", -1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct role_needs needs = ROLE_NEEDS_NONE;
        json_object *value = json_tokener_parse(cases[i].value);
        struct error err = {""};
        int rc = role_needs_value(&needs, cases[i].key, value, &err);
        int64_t read = cases[i].key[0] == 'c'   ? needs.cpus
                       : cases[i].key[0] == 'g' ? needs.gpus
                                                : needs.memory;

        if ((rc == 0) != (cases[i].number >= 0) || (rc == 0 && read != cases[i].number))
            fail_msg("%s: %s: %lld, %s", cases[i].key, cases[i].value, (long long)read, err.text);
        assert_true((rc == 0) == (err.text[0] == '\0'));
        json_object_put(value);
    }
}

static void test_what_is_not_said_is_the_roles(void **state)
{
    struct slots_gang gang = {{2, 0, 300}, 3, 1, false}, same = gang;
    struct role_needs none = ROLE_NEEDS_NONE, some = {0, 2, -1, -1}, nothing = {0, 0, 5, -1};
    struct error err;

    (void)state;
    assert_int_equal(role_needs_apply(&none, &gang, &err), 0);
    assert_true(slots_equal(&gang, &same));
    assert_int_equal(role_needs_apply(&some, &gang, &err), 0);
    assert_true(slots_equal(&gang, &(struct slots_gang){{0, 2, 300}, 3, 1, false}));
    assert_int_equal(role_needs_apply(&nothing, &gang, &err), -1);
    assert_string_equal(err.text, "a task has CPUs or GPUs: at least 1");
}

static void test_orders(void **state)
{
    struct role_needs none = ROLE_NEEDS_NONE, some = {4, -1, 7, -1};
    json_object *order = json_object_new_object();

    (void)state;
    role_needs_ask(order, &none);
    assert_string_equal(json_object_to_json_string_ext(order, 0), "{}");
    role_needs_ask(order, &some);
    assert_string_equal(json_object_to_json_string_ext(order, 0),
                        "{\"needs\":{\"cpus\":4,\"memory\":7}}");
    json_object_put(order);
}

static void test_gangs(void **state)
{
    static const char *const bad[] = {
        "{\"needs\":1}",
        "{\"needs\":{}}",
        "{\"needs\":{\"cpus\":1,\"gpus\":0,\"memory\":1,\"tasks\":0,\"per_node\":0}}",
        "{\"needs\":{\"cpus\":-1,\"gpus\":0,\"memory\":1,\"tasks\":1,\"per_node\":0}}",
        "{\"needs\":{\"cpus\":1,\"gpus\":0,\"memory\":1,\"tasks\":1025,\"per_node\":0}}",
    };
    struct slots_gang gang = {{2, 1, 300}, 3, 1, true}, read = {{1, 0, 0}, 1, 0, false},
                      before = read;
    json_object *msg = json_object_new_object();

    (void)state;
    assert_true(role_needs_read(msg, &read)); /* nothing is said */
    assert_true(slots_equal(&read, &before));
    role_needs_add(msg, &gang);
    assert_true(role_needs_read(msg, &read));
    assert_true(slots_equal(&read, &gang));
    json_object_put(msg);
    for (size_t i = 0; i < COUNT(bad); i++) {
        msg = json_tokener_parse(bad[i]);
        assert_non_null(msg);
        assert_false(role_needs_read(msg, &read));
        assert_true(slots_equal(&read, &gang));
        json_object_put(msg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_what_is_not_said_is_the_roles),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_gangs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/http_table: paths, methods, parameters and keys of a table. */
#include "lib/http_table.h"
#include "tests/unit/support.h"

static const struct http_route routes[] = {
    {"GET", "/a", 1, "x yy", NULL},     {"POST", "/a", 2, NULL, "one! two"},
    {"GET", "/a/*/b/*", 3, NULL, NULL}, {"DELETE", "/k/**", 4, NULL, "one"},
    {"GET", "/a/b", 5, NULL, NULL},
};
static const struct http_table table = {routes, COUNT(routes)};

static void test_find(void **state)
{
    static const struct {
        const char *method, *target;
        int status, verb;
        const char *first, *second, *query, *says;
    } cases[] = {
        {"GET", "/a", 0, 1, "", "", "", NULL},
        {"HEAD", "/a?x=1", 0, 1, "", "", "x=1", NULL},
        {"POST", "/a?", 0, 2, "", "", "", NULL},
        {"GET", "/a/n-1/b/m", 0, 3, "n-1", "m", "", NULL},
        {"DELETE", "/k/a/b:c", 0, 4, "a/b:c", "", "", NULL},
        {"GET", "/a/b", 0, 5, "", "", "", NULL},
        {"PUT", "/a", 405, 0, "", "", "", "PUT of '/a': allowed are GET, POST"},
        {"post", "/a/b", 405, 0, "", "", "", "allowed is GET"},
        {"HEAD", "/k/x", 405, 0, "", "", "", "allowed is DELETE"},
        {"GET", "/a//b/m", 404, 0, "", "", "", "there is no '/a//b/m'"},
        {"GET", "/a/n/b/", 404, 0, "", "", "", "there is no"},
        {"GET", "/a/n/b/m/", 404, 0, "", "", "", "there is no"},
        {"DELETE", "/k/", 404, 0, "", "", "", "there is no"},
        {"GET", "", 404, 0, "", "", "", "there is no ''"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct http_target found;
        struct error err = {""};
        char name[20];

        assert_int_equal(http_find(&table, cases[i].method, cases[i].target, &found, &err),
                         cases[i].status);
        if (cases[i].says != NULL) {
            assert_one_line(err.text);
            assert_non_null(strstr(err.text, cases[i].says));
            continue;
        }
        assert_int_equal(found.route->verb, cases[i].verb);
        http_copy_name(name, sizeof(name), found.names[0]);
        assert_string_equal(name, cases[i].first);
        http_copy_name(name, sizeof(name), found.names[1]);
        assert_string_equal(name, cases[i].second);
        assert_string_equal(found.query, cases[i].query);
    }
}

static int note(const char *name, const char *value, void *arg, struct error *err)
{
    char *all = arg;

    if (strcmp(value, "bad") == 0)
        return error_set(err, "another is expected");
    snprintf(all + strlen(all), 100 - strlen(all), "%s=%s;", name, value);
    return 0;
}

static void assert_parameters(const char *target, const char *expected, const char *says)
{
    struct http_target found;
    struct error err = {""};
    char all[100] = "";
    int rc;

    assert_int_equal(http_find(&table, "GET", target, &found, &err), 0);
    rc = http_parameters(&found, note, all, &err);
    assert_string_equal(all, expected);
    assert_string_equal(err.text, says);
    assert_int_equal(rc, says[0] != '\0' ? -1 : 0);
}

static void test_parameters(void **state)
{
    (void)state;
    assert_parameters("/a?x=1&&yy=&x", "x=1;yy=;x=;", "");
    assert_parameters("/a?x=1=2", "x=1=2;", "");
    assert_parameters("/a?x=1&y=2", "x=1;", "parameter 'y=2' is not known; known here are x, yy");
    assert_parameters("/a?x=bad", "", "parameter 'x=bad': another is expected");
    assert_parameters("/a/b?x=1", "", "parameter 'x=1' is not known; known here is none");
}

static void assert_keys(int route, const char *body, const char *says)
{
    json_object *json = json_tokener_parse(body);
    struct error err = {""};

    assert_int_equal(http_check_keys(&routes[route], json, &err), says[0] != '\0' ? -1 : 0);
    assert_string_equal(err.text, says);
    json_object_put(json);
}

static void test_keys(void **state)
{
    (void)state;
    assert_true(http_needs_body(&routes[1]));
    assert_false(http_needs_body(&routes[3]));
    assert_false(http_needs_body(&routes[0]));
    assert_keys(1, "{\"one\":1,\"two\":null}", "");
    assert_keys(1, "{\"two\":1}", "the body needs the key 'one'");
    assert_keys(1, "{\"one\":null}", "the body needs the key 'one'");
    assert_keys(1, "{\"one\":1,\"one!\":1}",
                "key 'one!' of the body is not known; known here are one, two");
    assert_keys(3, "{\"on\":1}", "key 'on' of the body is not known; known here is one");
    assert_keys(0, "{\"x\":1}", "key 'x' of the body is not known; known here is none");
    assert_keys(0, "{}", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

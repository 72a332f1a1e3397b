/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What selastic roles, replicas and endpoints print, against the files in tests/unit/selastic. */
#include "cmd/endpoints.h"
#include "cmd/replicas.h"
#include "cmd/report_list.h"
#include "cmd/shape.h"
#include "tests/unit/selastic_fixture.h"
#include "tests/unit/support.h"

static json_object *replicas(const char *role)
{
    json_object *answer = read_json("roles.json");
    struct error err = {""};
    json_object *object = replicas_of(answer, role, &err);

    if (object == NULL)
        fail_msg("%s", err.text);
    json_object_put(answer);
    return object;
}

static json_object *endpoints(const char *role)
{
    json_object *from = replicas(role);
    struct error err = {""};
    json_object *object = endpoints_of(from, &err);

    if (object == NULL)
        fail_msg("%s", err.text);
    json_object_put(from);
    return object;
}

static void test_roles(void **unused)
{
    json_object *answer = read_json("roles.json"), *roles = shape_roles(answer);
    char *text = render_roles(roles, &terminal);

    (void)unused;
    assert_width(text, 80);
    assert_golden(text, "roles.txt");
    assert_golden(serialize(roles), "roles.out.json");
    json_object_put(roles);
    json_object_put(answer);
}

static void test_replicas(void **unused)
{
    json_object *all = replicas(NULL);
    char *text = render_replicas(all, &terminal);

    (void)unused;
    assert_width(text, 80);
    assert_golden(text, "replicas.txt");
    json_object_put(all);
}

static void test_replicas_of_role(void **unused)
{
    json_object *some = replicas("rollout");

    (void)unused;
    assert_golden(serialize(some), "replicas.out.json");
    assert_golden(render_replicas(some, &pipe_options), "replicas-rollout.txt");
    json_object_put(some);
}

/* A role without replicas is none that is not there. */
static void test_role_without_replicas(void **unused)
{
    json_object *none = replicas("learner");
    char *text = render_replicas(none, &terminal);

    (void)unused;
    assert_string_equal(text, "NAME  STATE  SINCE  START  NODES  PORTS\n");
    free(text);
    json_object_put(none);
}

static void test_unknown_role(void **unused)
{
    json_object *answer = read_json("roles.json");
    struct error err = {""};

    (void)unused;
    assert_null(replicas_of(answer, "server", &err));
    assert_string_equal(err.text, "job 12 has no role 'server'; its roles: coordinator, learner, "
                                  "collector, rollout");
    json_object_put(answer);
}

/* A long gang does not push the other columns out of the terminal. */
static void test_many_nodes(void **unused)
{
    json_object *answer = json_object_new_object(), *list = json_object_new_array();
    json_object *replica = json_object_new_object(), *tasks = json_object_new_array();
    char *text, *line;

    (void)unused;
    for (int i = 0; i < 40; i++) {
        json_object *task = json_object_new_object(), *ports = json_object_new_object();
        char node[16], port[16];

        snprintf(node, sizeof(node), "node%d", i * 3);
        for (int j = 0; j < 16; j++) {
            snprintf(port, sizeof(port), "port-%d", j);
            json_object_object_add(ports, port, json_object_new_int(31000 + j));
        }
        json_object_object_add(task, "node", json_object_new_string(node));
        json_object_object_add(task, "ports", ports);
        json_object_array_add(tasks, task);
    }
    json_object_object_add(replica, "name", json_object_new_string("rollout-0"));
    json_object_object_add(replica, "state", json_object_new_string("ready"));
    json_object_object_add(replica, "tasks", tasks);
    json_object_array_add(list, replica);
    json_object_object_add(answer, "replicas", list);
    text = render_replicas(answer, &pipe_options);
    assert_non_null(strstr(text, "node[0,3,6,"));
    assert_non_null(strstr(text, ",117]"));
    assert_non_null(strstr(text, "port-15=31015 ..."));
    free(text);
    text = render_replicas(answer, &terminal);
    assert_width(text, 80);
    line = strchr(text, '\n') + 1;
    assert_string_equal(line, "rollout-0  ready  -          -  node[0,3,6,9,12,1...  "
                              "port-0=31000 port-1=310...\n");
    free(text);
    json_object_put(answer);
}

/* What is no report is left out, and nothing in one moves a cursor. */
static void test_reports(void **unused)
{
    json_object *answer = read_json("reports.json"), *all = reports_of(answer, NULL);
    char *text = render_reports(all, true, &pipe_options);

    (void)unused;
    assert_harmless(text);
    assert_golden(text, "reports.txt");
    assert_golden(serialize(all), "reports.out.json");
    json_object_put(all);
    json_object_put(answer);
}

static void test_reports_of_some(void **unused)
{
    json_object *answer = read_json("reports.json");
    const struct {
        const char *name;
        int count;
    } cases[] = {{"rollout", 2}, {"rollout-3", 1}, {"learner", 1}, {"roll", 0}};

    (void)unused;
    for (size_t i = 0; i < COUNT(cases); i++) {
        json_object *some = reports_of(answer, cases[i].name);
        json_object *list = json_object_object_get(some, "reports");

        assert_int_equal(json_object_array_length(list), cases[i].count);
        json_object_put(some);
    }
    json_object_put(answer);
}

/* More tasks than a replica can have. */
static void test_too_many_tasks(void **unused)
{
    json_object *answer = json_tokener_parse("{\"replicas\": [{\"name\": \"a-0\"}]}");
    json_object *list = json_object_object_get(answer, "replicas");
    json_object *tasks = json_object_new_array(), *all;
    char *text;

    (void)unused;
    for (int i = 0; i < 70000; i++)
        json_object_array_add(tasks, json_tokener_parse("{\"node\": \"n1\"}"));
    json_object_object_add(json_object_array_get_idx(list, 0), "tasks", tasks);
    all = replicas_of(answer, NULL, NULL);
    text = render_replicas(all, &pipe_options);
    assert_string_equal(text, "NAME  STATE  SINCE  START  NODES  PORTS\n"
                              "a-0   -      -          -  -      -\n");
    free(text);
    json_object_put(all);
    json_object_put(answer);
}

static void test_endpoints(void **unused)
{
    json_object *all = endpoints(NULL), *targets = endpoints_prometheus(all);

    (void)unused;
    assert_golden(endpoints_text(all, &terminal), "endpoints.txt");
    assert_golden(serialize(all), "endpoints.out.json");
    assert_golden(endpoints_hosts(all), "endpoints.hosts");
    assert_golden(endpoints_haproxy(all), "endpoints.haproxy");
    assert_golden(serialize(targets), "endpoints.prometheus.json");
    json_object_put(targets);
    json_object_put(all);
}

static void test_endpoints_of_role(void **unused)
{
    json_object *some = endpoints("collector"), *none = endpoints("learner");
    char *text = endpoints_hosts(some);

    (void)unused;
    assert_string_equal(text, "10.0.0.1 collector-0\nfd00::2 collector-1\n");
    free(text);
    text = endpoints_haproxy(none);
    assert_string_equal(text, "");
    free(text);
    json_object_put(none);
    json_object_put(some);
}

static void assert_no_endpoint(const char *task, const char *message)
{
    struct error err = {""};
    json_object *answer, *some;
    char text[512];

    snprintf(text, sizeof(text),
             "{\"job\": 12, \"replicas\": [{\"name\": \"a-1\", \"role\": \"a\", \"state\": "
             "\"ready\", \"tasks\": [%s]}]}",
             task);
    answer = json_tokener_parse(text);
    some = replicas_of(answer, NULL, &err);
    assert_null(endpoints_of(some, &err));
    assert_string_equal(err.text, message);
    json_object_put(some);
    json_object_put(answer);
}

/* Files of other programs are made of it. */
static void test_bad_endpoints(void **unused)
{
    (void)unused;
    assert_no_endpoint("{\"task\": 0, \"address\": \"10.0.0.1 b\\n6.6.6.6\"}",
                       "job 12: its elasticrun names no address for task 0 of a-1: '10.0.0.1 "
                       "b?6.6.6.6'");
    assert_no_endpoint("{\"task\": 0}", "job 12: its elasticrun names no address for task 0 of "
                                        "a-1: '(none)'");
    assert_no_endpoint("{\"address\": \"n1\"}", "job 12: its elasticrun names a replica 'a-1' of "
                                                "role 'a', task -1");
    assert_no_endpoint("{\"task\": 0, \"address\": \"fe80::1%\\n\"}",
                       "job 12: its elasticrun names no address for task 0 of a-1: 'fe80::1%?'");
    assert_no_endpoint("{\"task\": 2, \"address\": \"n1\", \"ports\": {\"http\": 0}}",
                       "job 12: its elasticrun names ports of task 2 of a-1 that are none");
    assert_no_endpoint("{\"task\": 2, \"address\": \"n1\", \"ports\": {\"a b\": 1}}",
                       "job 12: its elasticrun names ports of task 2 of a-1 that are none");
}

static void test_hostile(void **unused)
{
    json_object *answer = read_json("roles-hostile.json"), *roles = shape_roles(answer);
    json_object *all = replicas_of(answer, NULL, NULL);
    char *text = render_roles(roles, &pipe_options);

    (void)unused;
    assert_harmless(text);
    assert_golden(text, "roles-hostile.txt");
    text = render_replicas(all, &pipe_options);
    assert_harmless(text);
    assert_golden(text, "replicas-hostile.txt");
    text = serialize(all);
    assert_harmless(text);
    free(text);
    json_object_put(all);
    json_object_put(roles);
    json_object_put(answer);
}

/* An answer without anything in it, and one that is no object. */
static void test_nothing(void **unused)
{
    json_object *empty = json_object_new_object(), *number = json_object_new_int(5);
    json_object *answers[] = {empty, number, NULL};

    (void)unused;
    for (size_t i = 0; i < COUNT(answers); i++) {
        json_object *roles = shape_roles(answers[i]), *all = replicas_of(answers[i], NULL, NULL);
        json_object *some = endpoints_of(all, NULL);
        struct error err = {""};
        char *text = render_roles(roles, &terminal);

        assert_string_equal(text, "NAME  KIND  READY  MIN:MAX\n");
        free(text);
        text = endpoints_text(some, &terminal);
        assert_string_equal(text, "ROLE  REPLICA  TASK  PORT  ADDRESS\n");
        free(text);
        assert_null(replicas_of(answers[i], "a", &err));
        json_object_put(some);
        json_object_put(all);
        json_object_put(roles);
    }
    json_object_put(number);
    json_object_put(empty);
}

static void assert_in_page(const char *page, char *text)
{
    if (strstr(page, text) == NULL)
        fail_msg("selastic(1) and doc/user/roles.md have to have:\n%s", text);
    free(text);
}

/* The examples are what selastic prints. */
static void test_examples(void **unused)
{
    static const char *const pages[] = {"doc/man/selastic.1", "doc/user/roles.md"};

    (void)unused;
    for (size_t i = 0; i < COUNT(pages); i++) {
        json_object *answer = read_json("roles-example.json");
        json_object *roles = shape_roles(answer), *all = replicas_of(answer, "collector", NULL);
        json_object *some = endpoints_of(all, NULL);
        char *page = read_tree_file(pages[i]);

        assert_in_page(page, render_roles(roles, &terminal));
        assert_in_page(page, render_replicas(all, &terminal));
        assert_in_page(page, endpoints_text(some, &terminal));
        free(page);
        json_object_put(some);
        json_object_put(all);
        json_object_put(roles);
        json_object_put(answer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_replicas),
        cmocka_unit_test(test_replicas_of_role),
        cmocka_unit_test(test_role_without_replicas),
        cmocka_unit_test(test_unknown_role),
        cmocka_unit_test(test_many_nodes),
        cmocka_unit_test(test_reports),
        cmocka_unit_test(test_reports_of_some),
        cmocka_unit_test(test_too_many_tasks),
        cmocka_unit_test(test_endpoints),
        cmocka_unit_test(test_endpoints_of_role),
        cmocka_unit_test(test_bad_endpoints),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_examples),
    };

    return cmocka_run_group_tests_name("selastic_roles", tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The job file as struct roles (lib/roles.h): each key, each refusal, templates. */
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/roles_file.h"
#include "common/yaml_file.h"
#include "lib/roles.h"
#include "lib/text.h"
#include "tests/unit/roles_fixture.h"
#include "tests/unit/support.h"

#define HEAD "roles:\n  a:\n    leads: yes\n    run: [a]\n"
/* A role below HEAD; its keys begin in line 7. */
#define ROLE HEAD "  b:\n    run: [b]\n"

/* ---- what is accepted ------------------------------------------------------------------------ */

static const char example[] = "version: 1\n"
                              "clean: none\n"
                              "group: cartpole-sweep\n"
                              "shared: ./run\n"
                              "max-nodes: 20\n"
                              "roles:\n"
                              "  coordinator:\n"
                              "    run: [python3, coordinator.py]\n"
                              "    leads: yes\n"
                              "    cpus: 2\n"
                              "    memory: 2G\n"
                              "    ports: [api]\n"
                              "    api: yes\n"
                              "  learner:\n"
                              "    kind: world\n"
                              "    nodes: 1:2\n"
                              "    run: [python3, learner.py]\n"
                              "  collector:\n"
                              "    replicas: 2:64\n"
                              "    run: [python3, collector.py, --port, \"{port}\"]\n"
                              "    tasks: 4\n"
                              "    per-node: 2\n"
                              "    cpus: 2\n"
                              "    memory: 3G\n"
                              "    gpus: 1\n"
                              "    base: cpu\n"
                              "    pool: [cpu-spot, cpu-other]\n"
                              "    ports: [http, other]\n"
                              "    ready: {http: /healthz, within: 1m, every: 500ms, port: other}\n"
                              "    drain: {signal: INT, within: 2m}\n"
                              "    restart: {max: 7/1800, backoff: 2s..1m}\n"
                              "    after: [coordinator, learner]\n"
                              "    grow: ask\n"
                              "    shield: no\n"
                              "compat: di-engine\n";

static void assert_strings(char *const *strings, const char *joined)
{
    char text[256] = "";

    for (; strings != NULL && *strings != NULL; strings++)
        text_append(text, sizeof(text), "%s%s", text[0] != '\0' ? " " : "", *strings);
    assert_string_equal(text, joined);
}

static void check_collector(const struct role *role)
{
    assert_string_equal(role->name, "collector");
    assert_int_equal(role->kind, ROLE_REPLICAS);
    assert_false(role->leads);
    assert_strings(role->run, "python3 collector.py --port {port}");
    assert_int_equal(role->min, 2);
    assert_int_equal(role->max, 64);
    assert_int_equal(role->gang.tasks, 4);
    assert_int_equal(role->gang.per_node, 2);
    assert_int_equal(role->gang.size.cpus, 2);
    assert_int_equal(role->gang.size.gpus, 1);
    assert_int_equal(role->gang.size.memory, 3072);
    assert_string_equal(role->base, "cpu");
    assert_strings(role->pools, "cpu-spot cpu-other");
    assert_strings(role->ports, "http other");
    assert_int_equal(role->ready.how, ROLE_PROBE_HTTP);
    assert_string_equal(role->ready.what, "/healthz");
    assert_string_equal(role->ready.port, "other");
    assert_near(role->ready.within, 60, 0);
    assert_near(role->ready.every, 0.5, 0);
    assert_int_equal(role->drain.signal, SIGINT);
    assert_near(role->drain.within, 120, 0);
    assert_int_equal(role->restart.max, 7);
    assert_near(role->restart.window, 1800, 0);
    assert_near(role->restart.first_pause, 2, 0);
    assert_near(role->restart.max_pause, 60, 0);
    assert_int_equal(role->after_count, 2);
    assert_int_equal(role->after[0], 0);
    assert_int_equal(role->after[1], 1);
    assert_true(role->asks);
    assert_false(role->shield);
}

static void test_everything(void **state)
{
    struct roles *roles = create(example);
    const struct role *world;

    assert_int_equal(roles->clean, ROLES_CLEAN_NONE);
    assert_string_equal(roles->group, "cartpole-sweep");
    assert_string_equal(roles->shared, "./run");
    assert_int_equal(roles->max_nodes, 20);
    assert_true(roles->di_engine);
    assert_int_equal(roles->count, 3);
    assert_true(roles->list[0].leads);
    assert_true(roles->list[0].api);
    assert_int_equal(roles->list[0].gang.size.memory, 2048);
    world = &roles->list[1];
    assert_int_equal(world->kind, ROLE_WORLD);
    assert_int_equal(world->min, 1);
    assert_int_equal(world->max, 2);
    check_collector(&roles->list[2]);
    assert_int_equal(roles_find(roles, "collector"), 2);
    assert_int_equal(roles_find(roles, "collecto"), -1);
    assert_int_equal(roles_leader(roles), 0);
    assert_int_equal(roles_world(roles), 1);
    roles_destroy(roles);
    roles_destroy(NULL);
}

static void test_defaults(void **state)
{
    struct roles *roles = create(ROLE "  w: {kind: world, run: [w]}\n");
    const struct role *role = &roles->list[1], *world = &roles->list[2];

    assert_int_equal(roles->clean, ROLES_CLEAN_RUNNING);
    assert_null(roles->group);
    assert_null(roles->shared);
    assert_int_equal(roles->max_nodes, 0);
    assert_false(roles->di_engine);
    assert_int_equal(role->min, 1);
    assert_int_equal(role->max, 1);
    assert_int_equal(role->gang.tasks, 1);
    assert_int_equal(role->gang.per_node, 0);
    assert_int_equal(role->gang.size.cpus, 1);
    assert_int_equal(role->gang.size.gpus, 0);
    assert_int_equal(role->gang.size.memory, 0);
    assert_null(role->base);
    assert_null(role->pools);
    assert_null(role->ports);
    assert_false(role->api);
    assert_int_equal(role->ready.how, ROLE_PROBE_NONE);
    assert_near(role->ready.within, 60, 0);
    assert_near(role->ready.every, 1, 0);
    assert_int_equal(role->drain.signal, SIGTERM);
    assert_near(role->drain.within, 30, 0);
    assert_int_equal(role->restart.max, 10);
    assert_near(role->restart.window, 3600, 0);
    assert_near(role->restart.first_pause, 1, 0);
    assert_near(role->restart.max_pause, 60, 0);
    assert_int_equal(role->after_count, 0);
    assert_false(role->asks);
    assert_true(role->shield);
    assert_int_equal(world->min, 1);
    assert_int_equal(world->max, 1);
    assert_int_equal(world->gang.tasks, 1);
    assert_int_equal(world->gang.size.cpus, 0);
    assert_false(world->shield);
    roles_destroy(roles);
}

/* Values of b in one or another form, as roles_json() writes them. */
static void test_forms(void **state)
{
    static const struct {
        const char *keys, *key, *json;
    } cases[] = {
        {"    memory: 3G\n", "memory", "\"3072M\""},
        {"    memory: 3g\n", "memory", "\"3072M\""},
        {"    memory: 100\n", "memory", "\"100M\""},
        {"    memory: 1025K\n", "memory", "\"2M\""},
        {"    memory: 1T\n", "memory", "\"1048576M\""},
        {"    memory: 1024T\n", "memory", "\"1073741824M\""},
        {"    replicas: 3\n", "replicas", "\"3:3\""},
        {"    replicas: 0:10000\n", "replicas", "\"0:10000\""},
        {"    api: On\n", "api", "true"},
        {"    api: FALSE\n", "api", "false"},
        {"    grow: ASK\n", "grow", "\"ask\""},
        {"    ports: a\n", "ports", "[\"a\"]"},
        {"    pool: a\n", "pool", "[\"a\"]"},
        {"    after: a\n", "after", "[\"a\"]"},
        {"    ready: told\n", "ready", "{\"told\":true,\"within\":\"60s\",\"every\":\"1s\"}"},
        {"    ready: {told: yes, within: 2}\n", "ready",
         "{\"told\":true,\"within\":\"2s\",\"every\":\"1s\"}"},
        {"    ready: {tcp: yes, within: 1.5h}\n    ports: [x]\n", "ready",
         "{\"tcp\":true,\"within\":\"5400s\",\"every\":\"1s\"}"},
        {"    ready: {file: up, within: 0.25s, every: 1d}\n", "ready",
         "{\"file\":\"up\",\"within\":\"250ms\",\"every\":\"86400s\"}"},
        {"    ready: {exec: [test, -e, '{task}']}\n", "ready",
         "{\"exec\":[\"test\",\"-e\",\"{task}\"],\"within\":\"60s\",\"every\":\"1s\"}"},
        {"    drain: {signal: SIGUSR1, within: 0}\n", "drain",
         "{\"signal\":\"USR1\",\"within\":\"0s\"}"},
        {"    drain: {signal: 2}\n", "drain", "{\"signal\":\"INT\",\"within\":\"30s\"}"},
        {"    drain: {signal: 40}\n", "drain", "{\"signal\":40,\"within\":\"30s\"}"},
        {"    restart: {max: 0, backoff: 5s}\n", "restart",
         "{\"max\":\"0\",\"backoff\":\"5s..5s\"}"},
        {"    run: [echo, no, 1e3, '{\"a\": 1}', '{{port}}', '{}', '{ x }', '']\n", "run",
         "[\"echo\",\"no\",\"1e3\",\"{\\\"a\\\": 1}\",\"{{port}}\",\"{}\",\"{ x }\",\"\"]"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[512] = ROLE;
        struct roles *roles;
        json_object *json, *value;

        if (strcmp(cases[i].key, "run") == 0)
            strcpy(text, HEAD "  b:\n");
        text_append(text, sizeof(text), "%s", cases[i].keys);
        roles = create(text);
        json = roles_json(roles);
        value = json_object_object_get(
            json_object_object_get(json_object_object_get(json, "roles"), "b"), cases[i].key);
        assert_string_equal(json_object_to_json_string_ext(
                                value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE),
                            cases[i].json);
        json_object_put(json);
        roles_destroy(roles);
    }
}

/* roles_json() is read as the same, by json-c's own parser and by ours. */
static void test_again(void **state)
{
    struct roles *roles = create(example), *again;
    json_object *json = roles_json(roles);
    struct error err = {""};
    char *text = roles_text(roles, &err), *other;

    again = roles_create(json, NULL, NULL, &err);
    assert_string_equal(err.text, "");
    check_collector(&again->list[2]);
    other = roles_text(again, &err);
    assert_string_equal(text, other);
    free(other);
    roles_destroy(again);

    again = roles_text_read(text, &err);
    assert_string_equal(err.text, "");
    check_collector(&again->list[2]);
    other = roles_text(again, &err);
    assert_string_equal(text, other);
    free(other);
    roles_destroy(again);
    free(text);
    json_object_put(json);
    roles_destroy(roles);
}

/* JSON with its own numbers and booleans, from json-c. */
static void test_json(void **state)
{
    static const char text[] =
        "{\"version\": 1, \"roles\": {\"a\": {\"leads\": true, \"run\": [\"a\", 1, 1e3],"
        " \"cpus\": 3, \"ready\": {\"file\": \"x\", \"within\": 1.5}}}}";
    json_object *tree = json_tokener_parse(text);
    struct error err = {""};
    struct roles *roles = roles_create(tree, NULL, NULL, &err);

    assert_string_equal(err.text, "");
    assert_strings(roles->list[0].run, "a 1 1e3");
    assert_int_equal(roles->list[0].gang.size.cpus, 3);
    assert_near(roles->list[0].ready.within, 1.5, 0);
    roles_destroy(roles);
    json_object_put(tree);
    roles = create(text);
    assert_strings(roles->list[0].run, "a 1 1e3");
    roles_destroy(roles);

    tree = json_tokener_parse("{\"roles\": {\"a\": {\"run\": [\"x\"], \"leads\": null}}}");
    assert_null(roles_create(tree, NULL, NULL, &err));
    assert_string_equal(err.text, "roles.a.leads: null is no value for it; write yes or no");
    json_object_put(tree);
    tree = json_tokener_parse("{\"roles\": {\"a\": {\"run\": [\"x\\u0000y\"], \"leads\": 1}}}");
    assert_null(roles_create(tree, NULL, NULL, &err));
    assert_string_equal(err.text, "roles.a.run: a NUL byte in it is not allowed");
    json_object_put(tree);
    assert_null(roles_create(NULL, NULL, NULL, &err));
    assert_string_equal(err.text, "it is not a map; write KEY: VALUE, at least roles");
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void assert_refused(const char *text, const char *message)
{
    struct error err = {""};
    json_object *tree = yaml_parse(text, strlen(text), &err);

    if (tree == NULL)
        fail_msg("%s\n%s", text, err.text);
    if (roles_create(tree, yaml_where, NULL, &err) != NULL)
        fail_msg("accepted:\n%s", text);
    assert_string_equal(err.text, message);
    assert_one_line(err.text);
    assert_null(roles_create(tree, yaml_where, NULL, NULL));
    json_object_put(tree);
}

#define JOB_KEYS                                                                                   \
    "version, clean, group, shared, max-nodes, compat, service, models, fit, handover, roles"
#define ROLE_KEYS                                                                                  \
    "kind, template, run, leads, replicas, tasks, per-node, cpus, gpus, memory, base, pool, "      \
    "ports, api, ready, drain, restart, after, grow, shield"
#define WORLD_KEYS "kind, template, run, leads, nodes, cpus, gpus, memory, pool, api, grow"
#define RUN_FORM   "write the program and its arguments as a list, such as [python3, train.py]"
#define POOL       "write 1 to 63 letters, digits and _ - . +, a letter, digit or _ first"
#define NAME       "write 1 to 31 small letters, digits and '-', a letter first"

static void test_job_refusals(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"version: 1\n",
         "1:1: it has no roles; write roles: and below it NAME: with the keys of each role"},
        {"version: 2\n" HEAD, "1:1: version: '2' is not a known version; write 1"},
        {"clean: some\n" HEAD, "1:1: clean: 'some' is not allowed; write running, none or all"},
        {"clean: [all]\n" HEAD,
         "1:1: clean: a list is no value for it; write running, none or all"},
        {"group: a b\n" HEAD, "1:1: group: 'a b' is not allowed; write 1 to 63 letters, digits and "
                              "_ - . +, and no '-' first"},
        {"shared: ''\n" HEAD, "1:1: shared: '' is not allowed; write a path of 1 to 4095 bytes "
                              "without control characters"},
        {"shared: {a: b}\n" HEAD, "1:1: shared: a map is no value for it; write a text"},
        {"max-nodes: -1\n" HEAD, "1:1: max-nodes: '-1' is not a whole number from 0 to 65533"},
        {"compat: ray\n" HEAD, "1:1: compat: 'ray' is not allowed; write none or di-engine"},
        {"max_nodes: 1\n" HEAD,
         "1:1: max_nodes: there is no such key of the job; did you mean 'max-nodes'?"},
        {"cpus: 1\n" HEAD,
         "1:1: cpus: it is a key of a role and fit, not of the job; keys of the job: " JOB_KEYS},
        {"within: 1\n" HEAD, "1:1: within: it is a key of ready and drain and fit, not of the job; "
                             "keys of the job: " JOB_KEYS},
        {"svc: x\n" HEAD, "1:1: svc: there is no such key of the job; its keys: " JOB_KEYS},
        {"roles: [a]\n", "1:1: roles: it is not a map; write NAME: and the keys of the role"},
        {"roles: {}\n", "1:1: roles: 0 roles; write 1 to 100"},
        {"roles: {A: {run: [a]}}\n", "1:9: roles.A: it is no name of a role; " NAME},
        {"roles: {1a: {run: [a]}}\n", "1:9: roles.1a: it is no name of a role; " NAME},
        {"roles: {abcdefghijklmnopqrstuvwxyz123456: {run: [a]}}\n",
         "1:9: roles.abcdefghijklmnopqrstuvwxyz123456: it is no name of a role; " NAME},
        {"roles: {a: x}\n", "1:9: roles.a: it is not a map; write its keys, at least run"},
        {"roles: {a: {leads: yes}}\n", "1:9: roles.a: it has no run; write the program and its "
                                       "arguments, such as run: [python3, train.py]"},
        {"roles: {a: {run: [a]}}\n", "1:1: roles: none of them leads; give one of them leads: yes"},
        {HEAD "  b: {run: [b], leads: yes}\n",
         "5:17: roles.b.leads: a leads already; only one role leads"},
        {HEAD "  b: {run: [b], kind: world}\n  c: {run: [b], kind: world}\n",
         "6:17: roles.c.kind: b is a world already; a job has at most one"},
        {"max-nodes: 2\n" HEAD "  b: {run: [b], kind: world, nodes: 3:4}\n",
         "1:1: max-nodes: 2 is less than the 3 nodes that b begins with"},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_refused(cases[i].text, cases[i].message);
}

/* Keys of b, in line 7. test_places has their columns. */
static void test_role_refusals(void **state)
{
    static const struct {
        const char *keys, *message;
    } cases[] = {
        {"cpu: 2", "cpu: there is no such key of a role; did you mean 'cpus'?"},
        {"max: 2",
         "max: it is a key of restart and scale, not of a role; keys of a role: " ROLE_KEYS},
        {"pods: 2", "pods: there is no such key of a role; its keys: " ROLE_KEYS},
        {"kind: pod", "kind: 'pod' is not allowed; write replicas, world, router or shards"},
        {"template: x", "template: there are no templates here; write the role's keys"},
        {"leads: maybe", "leads: 'maybe' is not allowed; write yes or no"},
        {"replicas: many", "replicas: 'many' is not a number of replicas; write N or MIN:MAX, each "
                           "from 0 to 10000"},
        {"replicas: 1:2:3", "replicas: '1:2:3' is not a number of replicas; write N or MIN:MAX, "
                            "each from 0 to 10000"},
        {"replicas: 1:10001", "replicas: '1:10001' is not a number of replicas; write N or "
                              "MIN:MAX, each from 0 to 10000"},
        {"replicas: 3:2", "replicas: MIN 3 is larger than MAX 2; write MIN:MAX"},
        {"replicas: 0", "replicas: 0 is no role at all; write a MAX of at least 1"},
        {"nodes: 2", "nodes: only a role of kind world has it; write kind: world, or replicas"},
        {"tasks: 0", "tasks: '0' is not a whole number from 1 to 1024"},
        {"per-node: 2", "per-node: 2 on a node is more than the 1 tasks of a replica"},
        {"cpus: 1.5", "cpus: '1.5' is not a whole number from 0 to 65535"},
        {"cpus: []", "cpus: a list is no value for it; write a whole number from 0 to 65535"},
        {"cpus: 0", "cpus: a task without CPUs and GPUs has no place; write at least 1"},
        {"gpus: 1025", "gpus: '1025' is not a whole number from 0 to 1024"},
        {"memory: 3GB", "memory: '3GB' is no amount of memory; write memory such as 3G or 512M; K, "
                        "M, G and T are known, and without one of them it is M"},
        {"memory: G", "memory: 'G' is no amount of memory; write memory such as 3G or 512M; K, M, "
                      "G and T are known, and without one of them it is M"},
        {"memory: 1025T", "memory: '1025T' is more than 1024T; write less"},
        {"memory: 99999999999999999999999999T",
         "memory: '99999999999999999999999999T' is more than 1024T; write less"},
        {"base: -x", "base: '-x' is not allowed; " POOL ""},
        {"ports: [a, B]", "ports: 'B' is not allowed; " NAME},
        {"ports: [a, a]", "ports: 'a' is there twice; name each once"},
        {"ports: []", "ports: 0 values; write 1 to 16"},
        {"ports: {a: 1}", "ports: a map is no value for it; write a name"},
        {"api: 1", "api: '1' is not allowed; write yes or no"},
        {"ready: yes", "ready: it is not a map; write a map such as {http: /healthz, within: 60s}, "
                       "or told"},
        {"ready: {within: 5s}", "ready: nothing says how it is known; write one of http, tcp, "
                                "file, exec and told"},
        {"ready: {signal: TERM}", "ready.signal: it is a key of drain, not of ready; keys of "
                                  "ready: http, tcp, file, exec, told, port, within, every"},
        {"ready: {http: /x}", "ready: the role has no ports to ask; write ports: [NAME]"},
        {"ready: {http: x}", "ready.http: 'x' is not allowed; write a path such as /healthz, "
                             "without blanks"},
        {"ready: {tcp: no}", "ready.tcp: 'no' says nothing; write yes, or leave the key out"},
        {"ready: {file: x, told: yes}",
         "ready.told: a second way to know that a task is ready; write one of http, tcp, file, "
         "exec and told"},
        {"ready: {file: x, port: a}", "ready.port: only http and tcp ask a port; leave it out"},
        {"ready: {tcp: yes, port: b}\n    ports: [a]",
         "ready.port: there is no port 'b'; ports: a"},
        {"ready: {exec: true}", "ready.exec: 'true' is one text; " RUN_FORM},
        {"ready: {exec: [a, '{x}']}", "ready.exec: there is no {x}; write {port}, {port:NAME}, "
                                      "{replica} or {task}, or {{x}} for that text"},
        {"ready: {file: x, within: 0}", "ready.within: '0' is not a time from 1ms to 365 days; "
                                        "write a time such as 500ms, 30s, 10m, 2h or 1d"},
        {"ready: {file: x, every: 99ms}", "ready.every: '99ms' is not a time from 100ms to 365 "
                                          "days; write a time such as 500ms, 30s, 10m, 2h or 1d"},
        {"drain: TERM", "drain: it is not a map; write a map such as {signal: TERM, within: 30s}"},
        {"drain: {signal: KILL}", "drain.signal: 'KILL' is not a signal that a program can catch, "
                                  "by its name such as TERM or INT, or by its number"},
        {"drain: {signal: none}", "drain.signal: 'none' is not a signal that a program can catch, "
                                  "by its name such as TERM or INT, or by its number"},
        {"drain: {within: 1 week}", "drain.within: '1 week' is not a time from 0s to 365 days; "
                                    "write a time such as 30s, 10m, 2h or 1d"},
        {"drain: {within: 366d}", "drain.within: '366d' is not a time from 0s to 365 days; write a "
                                  "time such as 30s, 10m, 2h or 1d"},
        {"restart: {max: x}", "restart.max: 'x' is not a number of restarts; write N, from 0 to "
                              "1000000, or N/SECONDS for N within any so many seconds"},
        {"restart: {backoff: 60s..1s}",
         "restart.backoff: '60s..1s' is not FIRST..MOST; write two times from 100ms on, the "
         "shorter one first, such as 1s..60s"},
        {"restart: {backof: 1s}",
         "restart.backof: there is no such key of restart; did you mean 'backoff'?"},
        {"after: [x]", "after: there is no role 'x'; roles: a, b"},
        {"after: [b]", "after: it waits for b; none of them would ever start"},
        {"grow: no", "grow: 'no' is not allowed; write auto or ask"},
        {"shield: 2", "shield: '2' is not allowed; write yes or no"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[512] = ROLE, message[640] = "";
        struct error err = {""};
        json_object *tree;

        text_append(text, sizeof(text), "    %s\n", cases[i].keys);
        text_append(message, sizeof(message), " roles.b.%s", cases[i].message);
        tree = yaml_parse(text, strlen(text), &err);
        assert_string_equal(err.text, "");
        if (roles_create(tree, yaml_where, NULL, &err) != NULL)
            fail_msg("accepted: %s", cases[i].keys);
        json_object_put(tree);
        assert_int_equal(strncmp(err.text, "7:", 2), 0);
        assert_string_equal(strchrnul(err.text, ' '), message);
        assert_one_line(err.text);
    }
}

static void test_places(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {HEAD "  b:\n    run: python3 x.py\n",
         "6:5: roles.b.run: 'python3 x.py' is one text; " RUN_FORM},
        {HEAD "  b:\n    run: []\n", "6:5: roles.b.run: 0 values; write 1 to 1000"},
        {HEAD "  b:\n    run: ['', a]\n", "6:5: roles.b.run: the program has no name; " RUN_FORM},
        {HEAD "  b:\n    run: [a, [b]]\n",
         "6:14: roles.b.run: a list is no value for it; write a text"},
        {HEAD "  b:\n    run: [a, '{port}']\n",
         "6:14: roles.b.run: {port}, but the role has no ports; write ports: [NAME]"},
        {HEAD "  b:\n    ports: [x, y]\n    run: [a, 'p={port:x},{port:z}']\n",
         "7:14: roles.b.run: {port:z}: there is no such port; ports: x, y"},
        {HEAD "  b:\n    run: [a, '{prot}']\n",
         "6:14: roles.b.run: there is no {prot}; write {port}, {port:NAME}, {replica} or {task}, "
         "or {{prot}} for that text"},
        {HEAD "  b:\n    run: [a, '{task}']\n    kind: world\n",
         "6:14: roles.b.run: a role of kind world has no {task}; leave it out, or write {{task}} "
         "for that text"},
        {HEAD "  b:\n    run: [a]\n    kind: world\n    replicas: 2\n",
         "8:5: roles.b.replicas: a role of kind world has nodes instead; write nodes: N or "
         "MIN:MAX"},
        {HEAD "  b:\n    run: [a]\n    kind: world\n    drain: {}\n",
         "8:5: roles.b.drain: a role of kind world does not have it; leave it out"},
        {HEAD "  b:\n    run: [a]\n    kind: world\n    whatever: 1\n",
         "8:5: roles.b.whatever: there is no such key of a role; its keys: " WORLD_KEYS},
        {HEAD "  b:\n    run: [a]\n    kind: world\n    nodes: 0:2\n",
         "8:5: roles.b.nodes: '0:2' is not a number of nodes; write N or MIN:MAX, each from 1 to "
         "65533"},
        {HEAD "    replicas: 2\n", "5:5: roles.a.replicas: the role that leads has 1 replica; "
                                   "write 1"},
        {HEAD "    ready: {file: x,\n      every: x}\n",
         "6:7: roles.a.ready.every: 'x' is not a time from 100ms to 365 days; write a time such as "
         "500ms, 30s, 10m, 2h or 1d"},
        {HEAD "    pool: [p,\n      q q]\n", "6:7: roles.a.pool: 'q q' is not allowed; " POOL ""},
        {HEAD "    after: [c]\n  b: {run: [b], after: [a]}\n  c: {run: [c], after: b}\n",
         "5:5: roles.a.after: it waits for c, which waits for b, which waits for a; none of them "
         "would ever start"},
        {HEAD "  b: {run: [b], after: [c]}\n  c: {run: [c], after: d}\n  d: {run: [d], after: c}\n",
         "6:17: roles.c.after: it waits for d, which waits for c; none of them would ever start"},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_refused(cases[i].text, cases[i].message);
}

/* As many roles as there may be, one after the other, and one too many. */
static void test_many(void **state)
{
    char text[8192] = "roles:\n  r0: {leads: yes, run: [a]}\n";
    struct roles *roles;

    for (int i = 1; i < ROLES_MAX; i++)
        text_append(text, sizeof(text), "  r%d: {run: [a], after: [r%d]}\n", i, i - 1);
    roles = create(text);
    assert_int_equal(roles->count, ROLES_MAX);
    roles_destroy(roles);
    text_append(text, sizeof(text), "  r%d: {run: [a]}\n", ROLES_MAX);
    assert_refused(text, "1:1: roles: 101 roles; write 1 to 100");

    /* A circle of all of them. */
    snprintf(text, sizeof(text), "roles:\n  r0: {leads: yes, run: [a], after: r%d}\n",
             ROLES_MAX - 1);
    for (int i = 1; i < ROLES_MAX; i++)
        text_append(text, sizeof(text), "  r%d: {run: [a], after: [r%d]}\n", i, i - 1);
    {
        struct error err = {""};
        json_object *tree = yaml_parse(text, strlen(text), &err);

        assert_null(roles_create(tree, yaml_where, NULL, &err));
        assert_non_null(strstr(err.text, "roles.r0.after: it waits for r99, which waits for r98"));
        json_object_put(tree);
    }
}

/* ---- arguments, nodes ------------------------------------------------------------------------ */

static void test_argument(void **state)
{
    static const struct {
        const char *text, *argument;
    } cases[] = {
        {"plain", "plain"},
        {"", ""},
        {"{port}", "7001"},
        {"--port={port:y},{port:x}", "--port=7002,7001"},
        {"{replica}/{task}", "b-3/2"},
        {"{{port}} {{port:x}} {{any}}", "{port} {port:x} {any}"},
        {"{} { port } {\"a\": {\"b\": 1}} {", "{} { port } {\"a\": {\"b\": 1}} {"},
        {"{{{task}}}", "{{task}}"},
    };
    const int ports[] = {7001, 7002};
    const struct role_task task = {"b-3", 2, ports, NULL};
    struct roles *roles = create(ROLE "    ports: [x, y]\n");

    for (size_t i = 0; i < COUNT(cases); i++) {
        char *argument = role_argument(&roles->list[1], cases[i].text, &task);

        assert_string_equal(argument, cases[i].argument);
        free(argument);
    }
    roles_destroy(roles);
}

static void test_nodes(void **state)
{
    static const struct {
        const char *keys, *message;
        struct slots_size node;
    } cases[] = {
        {"    cpus: 8\n", "", {8, 0, 0}},
        {"    cpus: 12\n", "b needs 12 CPUs on a node, those of spot have 8", {8, 4, 99999}},
        {"    cpus: 4\n    tasks: 4\n    per-node: 3\n",
         "b needs 12 CPUs on a node, those of spot have 8",
         {8, 4, 99999}},
        {"    gpus: 2\n", "b needs 2 GPUs on a node, those of spot have 1", {8, 1, 99999}},
        {"    memory: 4G\n",
         "b needs 4096 MiB of memory on a node, those of spot have 4000 MiB",
         {8, 1, 4000}},
        {"    cpus: 4\n    tasks: 100\n", "", {8, 4, 99999}},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[512] = ROLE;
        struct error err = {""};
        struct roles *roles;
        int rc;

        text_append(text, sizeof(text), "%s", cases[i].keys);
        roles = create(text);
        rc = role_check_node(&roles->list[1], &cases[i].node, "spot", &err);
        assert_string_equal(err.text, cases[i].message);
        assert_int_equal(rc, cases[i].message[0] != '\0' ? -1 : 0);
        roles_destroy(roles);
    }
}

/* ---- templates ------------------------------------------------------------------------------- */

static char dir[] = "/tmp/test_roles.XXXXXX";

static int make_dir(void **state)
{
    return mkdtemp(dir) != NULL ? 0 : -1;
}

static int remove_dir(void **state)
{
    static const char *const files[] = {"job.yaml",  "good.yaml",   "bad.yaml",
                                        "torn.yaml", "nested.yaml", "aggregator.yaml"};
    char path[128];

    for (size_t i = 0; i < COUNT(files); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
        unlink(path);
    }
    return rmdir(dir);
}

static const char *write_file(const char *name, const char *text)
{
    static char path[128];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    return path;
}

/* What the file is refused with, %s being the directory. */
static void assert_file_refused(const char *text, const char *roles_dir, const char *message)
{
    const char *path = write_file("job.yaml", text);
    char expected[640] = "";
    struct error err = {""};

    text_append(expected, sizeof(expected), "%s:", path);
    for (const char *at = message, *next; *at != '\0'; at = next) {
        next = strchrnul(at, '%');
        text_append(expected, sizeof(expected), "%.*s%s", (int)(next - at), at,
                    *next != '\0' ? dir : "");
        next += *next != '\0' ? 1 : 0;
    }
    assert_null(roles_file_load(path, roles_dir, &err));
    assert_string_equal(err.text, expected);
    assert_null(roles_file_load(path, roles_dir, NULL));
}

static void test_template(void **state)
{
    static const char text[] = HEAD "  b:\n    template: good\n    cpus: 3\n";
    struct error err = {""};
    struct roles *roles;

    write_file("good.yaml", "run: [aggregator, '{port}']\ncpus: 2\nmemory: 1G\nports: [x]\n"
                            "drain: {within: 5s}\n");
    roles = roles_file_load(write_file("job.yaml", text), dir, &err);
    assert_string_equal(err.text, "");
    assert_strings(roles->list[1].run, "aggregator {port}");
    assert_int_equal(roles->list[1].gang.size.cpus, 3);
    assert_int_equal(roles->list[1].gang.size.memory, 1024);
    assert_near(roles->list[1].drain.within, 5, 0);
    roles_destroy(roles);
}

/* With compat: di-engine a job with learners gets the aggregators of the site, as many as there may
 * be learners. */
static void test_aggregators(void **state)
{
    static const char learner[] = "  learner: {run: [l], replicas: 0:7}\n",
                      compat[] = "compat: di-engine\n";
    static const struct {
        const char *roles;
        bool compat, site;
        int cpus; /* of the aggregators; 0: there are none */
    } cases[] = {
        {learner, true, true, 2},
        {learner, false, true, 0},
        {learner, true, false, 0},
        {"  actor: {run: [l], replicas: 0:7}\n", true, true, 0},
        {"  learner: {run: [l], replicas: 0:7}\n  aggregator: {run: [x], cpus: 5}\n", true, true,
         5},
        {"  learner: {run: [l], replicas: 0:7}\n  aggregator: {run: [x], cpus: 5, replicas: 0:7}\n",
         true, true, 5},
        {"  learner: {run: [l], kind: world}\n  aggregator: {run: [x], cpus: 5}\n", true, true, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[400];
        struct error err = {""};
        struct roles *roles, *again;
        char *json;

        write_file("aggregator.yaml", "run: [aggregator]\ncpus: 2\nports: [slave, master]\n");
        snprintf(text, sizeof(text), "%s" HEAD "%s", cases[i].compat ? compat : "", cases[i].roles);
        roles = roles_file_load(write_file("job.yaml", text), cases[i].site ? dir : NULL, &err);
        assert_string_equal(err.text, "");
        assert_true(roles->pairs.any == (cases[i].cpus > 0));
        /* The same after its way to the job. */
        json = roles_text(roles, &err);
        again = roles_text_read(json, &err);
        assert_string_equal(err.text, "");
        for (int k = 0; k < 2 && cases[i].cpus > 0; k++) {
            const struct roles *is = k == 0 ? roles : again;
            const struct role *aggregator = &is->list[is->pairs.owner];

            assert_string_equal(aggregator->name, "aggregator");
            assert_string_equal(is->list[is->pairs.owned].name, "learner");
            assert_int_equal(aggregator->gang.size.cpus, cases[i].cpus);
            assert_int_equal(aggregator->min, 0);
            assert_int_equal(aggregator->max, 7);
            assert_true(aggregator->asks);
        }
        free(json);
        roles_destroy(again);
        roles_destroy(roles);
    }
    assert_refused("compat: di-engine\n" HEAD
                   "  learner: {run: [l], replicas: 0:7}\n  aggregator: {run: [x], replicas: 2}\n",
                   "7:26: roles.aggregator.replicas: learners say how many aggregators there are; "
                   "leave it out");
}

static void test_template_refusals(void **state)
{
    write_file("good.yaml", "run: [aggregator, '{port}']\n");
    write_file("bad.yaml", "run: [a]\ncpus: x\n");
    write_file("torn.yaml", "run: [a\n");
    write_file("nested.yaml", "template: good\n");
    assert_file_refused(HEAD "  b: {template: ../x}\n", dir,
                        "5:7: roles.b.template: '../x' is no name of a template; " NAME);
    assert_file_refused(HEAD "  b: {template: [x]}\n", dir,
                        "5:7: roles.b.template: it is not a text; write the name of a template");
    assert_file_refused(HEAD "  b: {template: x}\n", NULL,
                        "5:7: roles.b.template: there is no template 'x': elastic.conf has no "
                        "roles_dir");
    assert_file_refused(
        HEAD "  b: {template: none}\n", dir,
        "5:7: roles.b.template: cannot read %/none.yaml: No such file or directory");
    assert_file_refused(HEAD "  b: {template: bad}\n", dir,
                        "5:7: roles.b.template: %/bad.yaml:2:1: cpus: 'x' is not a whole number "
                        "from 0 to 65535");
    assert_file_refused(HEAD "  b: {template: torn}\n", dir,
                        "5:7: roles.b.template: %/torn.yaml:2:1: did not find expected ',' or ']', "
                        "while parsing a flow sequence");
    assert_file_refused(HEAD "  b: {template: nested}\n", dir,
                        "5:7: roles.b.template: %/nested.yaml:1:1: template: there are no "
                        "templates here; write the role's keys");
    /* What only the role as a whole is wrong in is said of the role. */
    assert_file_refused(HEAD "  b: {template: good}\n", dir,
                        "5:3: roles.b.run: {port}, but the role has no ports; write ports: "
                        "[NAME]");
    assert_file_refused("a\n", dir,
                        "1:1: a text, where keys and values should be: write KEY: VALUE");
}

/* Roles that are within the limits each, and too long together. */
static void test_too_long(void **state)
{
    char *text = calloc(1, 200000), *at = text, expected[256];
    struct error err = {""};
    const char *path;

    assert_non_null(text);
    at += sprintf(at, HEAD);
    for (int i = 0; i < 99; i++) {
        at += sprintf(at, "  r%d:\n    run: [", i);
        for (int k = 0; k < 600; k++)
            *at++ = 'x';
        at += sprintf(at, "]\n    cpus: %d\n", i + 1);
    }
    path = write_file("job.yaml", text);
    assert_null(roles_file_load(path, dir, &err));
    snprintf(expected, sizeof(expected), "%s: the roles with all their values have ", path);
    assert_int_equal(strncmp(err.text, expected, strlen(expected)), 0);
    assert_non_null(strstr(err.text, " bytes; 65536 travel with a job"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything),    cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_forms),         cmocka_unit_test(test_again),
        cmocka_unit_test(test_json),          cmocka_unit_test(test_job_refusals),
        cmocka_unit_test(test_role_refusals), cmocka_unit_test(test_places),
        cmocka_unit_test(test_many),          cmocka_unit_test(test_argument),
        cmocka_unit_test(test_nodes),         cmocka_unit_test(test_template),
        cmocka_unit_test(test_aggregators),   cmocka_unit_test(test_template_refusals),
        cmocka_unit_test(test_too_long),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("roles", tests, make_dir, remove_dir);
}

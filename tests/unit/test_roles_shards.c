/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A job file with a service: its roles of kind shards, and what is refused. */
#include "common/roles_file.h"
#include "lib/model_load.h"
#include "lib/roles_program.h"
#include "lib/text.h"
#include "tests/unit/roles_fixture.h"

#define TOP "service: adapters\nmodels: {repository: ./m}\n"
#define SHARD                                                                                      \
    "roles:\n  server:\n    kind: shards\n    run: [serve]\n    ports: [http]\n"                   \
    "    ready: {http: /ok}\n"
#define JOB   TOP SHARD "    capacity: 36G\n"
#define OTHER "  a:\n    run: [a]\n"

static void test_values(void **state)
{
    struct roles *roles = create(TOP SHARD "    capacity: 36G\n    shards: 1:3\n    replicas: 4\n"
                                           "    window: 2s\n    load: vllm-lora\n"
                                           "    update: {max-surge: 1, fail-fast: 0}\n" OTHER);
    const struct role *role = &roles->list[roles_shard(roles, 3)];

    (void)state;
    assert_string_equal(roles->service, "adapters");
    assert_string_equal(roles->models.repository, "./m");
    assert_near(roles->models.every, 10, 0);
    assert_int_equal(roles->count, 4);
    assert_int_equal(roles_shards(roles), roles_find(roles, "server-1"));
    assert_int_equal(roles_shard(roles, 4), -1);
    assert_int_equal(roles_shard(roles, 0), -1);
    assert_string_equal(role->name, "server-3");
    assert_string_equal(role->shards.of, "server");
    assert_int_equal(role->kind, ROLE_SHARDS);
    assert_int_equal(role->min, 0);
    assert_int_equal(role->max, 4);
    assert_true(role->asks);
    assert_int_equal(role->shards.max, 3);
    assert_int_equal(role->shards.capacity, 36 * 1024);
    assert_int_equal(role->shards.surge.value, 1);
    assert_false(role->shards.surge.percent);
    assert_int_equal(role->shards.unavailable.value, 50);
    assert_true(role->shards.unavailable.percent);
    assert_int_equal(role->shards.fail_fast, 0);
    assert_near(role->shards.window, 2, 0);
    assert_int_equal(role->shards.load, MODEL_LOAD_VLLM_LORA);
    assert_int_equal(roles->list[roles_find(roles, "a")].shards.number, 0);
    roles_destroy(roles);
}

/* As it travels with the job it has the role once. */
static void test_again(void **state)
{
    struct roles *roles = create(JOB "    shards: 5\n    update: {max-unavailable: 0}\n" OTHER);
    struct error err = {""};
    char *text = roles_text(roles, &err), *other;
    struct roles *again = roles_text_read(text, &err);

    (void)state;
    assert_string_equal(err.text, "");
    assert_null(strstr(text, "server-"));
    assert_int_equal(again->count, 6);
    assert_string_equal(again->list[roles_shard(again, 5)].name, "server-5");
    other = roles_text(again, &err);
    assert_string_equal(text, other);
    free(other);
    free(text);
    roles_destroy(again);
    roles_destroy(roles);
}

/* The command of the shards may be another one in a job that runs, and nothing else. */
static void test_program(void **state)
{
    static const struct {
        const char *next, *want; /* want: the beginning of the message; NULL: it may be */
    } cases[] = {
        {JOB OTHER, NULL},
        {TOP "roles:\n  server:\n    kind: shards\n    run: [env, A=b, other]\n    ports: [http]\n"
             "    ready: {http: /ok}\n    capacity: 36G\n" OTHER,
         NULL},
        {TOP SHARD "    capacity: 37G\n" OTHER,
         "roles.server.capacity is \"37888M\", and \"36864M\" in the job that runs: only run of "
         "its shards may be another one; the next job of the service reads the rest"},
        {"service: other\nmodels: {repository: ./m}\n" SHARD "    capacity: 36G\n" OTHER,
         "service is \"other\", and \"adapters\" in the job that runs: "},
        {JOB "  a:\n    run: [b]\n", "roles.a.run is [\"b\"], and [\"a\"] in the job that runs: "},
        {JOB OTHER "  b:\n    run: [b]\n", "roles.b is {"},
        {JOB, "roles.a is not set, and {"},
        {"roles:\n  a:\n    run: [a]\n    leads: yes\n", "it has no role of kind shards"},
    };
    struct roles *job = create(JOB OTHER);
    char *program = roles_program(job), *text;
    json_object *run;

    (void)state;
    assert_string_equal(program, "{\"run\":[\"serve\"]}");
    run = roles_program_run(program);
    assert_string_equal(json_object_to_json_string_ext(run, JSON_C_TO_STRING_PLAIN), "[\"serve\"]");
    json_object_put(run);
    assert_null(roles_program_run("[\"serve\"]"));
    run = json_object_new_array();
    json_object_array_add(run, json_object_new_string("other"));
    text = roles_program_text(job, run);
    assert_non_null(strstr(text, "\"run\":[\"other\"]"));
    json_object_put(run);
    free(text);
    assert_null(roles_program_run(NULL));
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct roles *next = create(cases[i].next);
        struct error err = {""};
        int rc = roles_program_check(job, next, &err);

        assert_int_equal(rc, cases[i].want != NULL ? -1 : 0);
        if (cases[i].want != NULL && strncmp(err.text, cases[i].want, strlen(cases[i].want)) != 0)
            fail_msg("%s\ninstead of\n%s", err.text, cases[i].want);
        roles_destroy(next);
    }
    free(program);
    roles_destroy(job);
}

/* Also of what may be left out. */
static void test_idle_again(void **state)
{
    static const char *const scales[] = {
        "    scale: {idle: 30m}\n",
        "    scale: {max: 3, sessions: 2}\n",
        "    scale: {max: 3, sessions: 2, idle: 30m}\n",
        "",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(scales); i++) {
        char file[600], *text;
        struct error err = {""};
        struct roles *roles, *again;
        const struct role *role, *other;

        snprintf(file, sizeof(file), "%s%s%s", JOB, scales[i], OTHER);
        roles = create(file);
        text = roles_text(roles, &err);
        again = roles_text_read(text, &err);
        assert_string_equal(err.text, "");
        role = &roles->list[roles_shards(roles)];
        other = &again->list[roles_shards(again)];
        assert_near(role->shards.idle, other->shards.idle, 0);
        assert_int_equal(role->shards.sessions, other->shards.sessions);
        assert_int_equal(role->shards.most, other->shards.most);
        free(text);
        roles_destroy(again);
        roles_destroy(roles);
    }
}

static void test_router(void **state)
{
    struct roles *roles = create(
        JOB "  front:\n    kind: router\n    route-by: path:/v2/models/\n    tokens: none\n");
    const struct role *role = &roles->list[roles_router(roles)];
    struct error err = {""};
    char *text = roles_text(roles, &err), *other;
    struct roles *again = roles_text_read(text, &err);

    (void)state;
    assert_string_equal(err.text, "");
    assert_string_equal(role->run[0], ROLES_ROUTER);
    assert_string_equal(role->run[1], "adapters");
    assert_string_equal(role->run[4], "--no-tokens");
    assert_null(role->run[5]);
    assert_string_equal(role->ports[0], "http");
    assert_int_equal(role->ready.how, ROLE_PROBE_TCP);
    assert_int_equal(role->min, 1);
    assert_int_equal(role->max, 1);
    other = roles_text(again, &err);
    assert_string_equal(text, other);
    assert_string_equal(again->list[roles_router(again)].router.by, "path:/v2/models/");
    free(other);
    free(text);
    roles_destroy(again);
    roles_destroy(roles);
}

static void test_arguments(void **state)
{
    struct roles *roles = create(JOB "    shards: 2\n");
    const int ports[] = {31000};
    const struct role_task task = {"server-2-0", 0, ports, "/m.json"};
    char *text = role_argument(&roles->list[1], "{shard} {models} {port} {{shard}}", &task);

    (void)state;
    assert_string_equal(text, "shard_2 /m.json 31000 {shard}");
    free(text);
    roles_destroy(roles);
}

static void test_refusals(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {SHARD "    capacity: 1G\n",
         "1:1: server is of kind shards, but the service has no name; write service: NAME"},
        {"service: adapters\n" SHARD "    capacity: 1G\n",
         "1:1: the service has no models; write models: {repository: DIRECTORY}"},
        {TOP "roles:\n  a:\n    run: [a]\n    leads: yes\n",
         "1:1: service: no role is of kind shards; give one of them kind: shards, or leave service "
         "out"},
        {"models: {repository: x}\nroles:\n  a:\n    run: [a]\n    leads: yes\n",
         "1:1: models: no role is of kind shards; leave models out"},
        {"service: Big\n" SHARD, "1:1: service: 'Big' is not allowed; write 1 to 31 small letters, "
                                 "digits and '-', a letter "
                                 "first"},
        {"service: ../x\n" SHARD,
         "1:1: service: '../x' is not allowed; write 1 to 31 small letters, digits and '-', a "
         "letter first"},
        {"handover: 1m\n" JOB, "1:1: handover: that is too short; write 2m or more"},
        {"handover: soon\n" JOB, "1:1: handover: 'soon' is not a time from 0s to 365 days; write a "
                                 "time such as 30s, 10m, 2h or 1d"},
        {"service: a\nmodels: {every: 1s}\n" SHARD,
         "2:1: models: it has no repository; write repository: and a directory"},
        {"service: a\nmodels: x\n" SHARD,
         "2:1: models: it is not a map; write a map such as {repository: ./models, every: 10s}"},
        {"service: a\nmodels: {repository: \"s3:/b\"}\n" SHARD,
         "2:10: models.repository: s3:/b: a place on S3 is s3://BUCKET/PREFIX"},
        {"service: a\nmodels: {repository: x, copies: /c}\n" SHARD,
         "2:25: models.copies: there are copies only of a repository s3://…; leave it out"},
        {"service: a\nmodels: {repository: x, copies-max: 1G}\n" SHARD,
         "2:25: models.copies-max: there are copies only of a repository s3://…; leave it out"},
        {"service: a\nmodels: {repository: s3://bucket/p}\nfit: {run: [a]}\n" SHARD
         "    capacity: 1G\n",
         "3:1: fit: a fit needs models in a directory, and not on S3"},
        {"service: a\nmodels: {repository: x, every: 10ms}\n" SHARD,
         "2:25: models.every: '10ms' is not a time from 1s to 365 days; write a time such as "
         "30s, 10m, 2h or 1d"},
        {TOP SHARD, "4:3: roles.server.capacity: a shard has no room for models; write capacity: "
                    "and memory such as 36G"},
        {JOB "    scale: {sessions: 8}\n", "10:5: roles.server.scale: max and sessions go "
                                           "together; write both, or none"},
        {JOB "    scale: {max: 8}\n", "10:5: roles.server.scale: max and sessions go together; "
                                      "write both, or none"},
        {JOB "    replicas: 3\n    scale: {max: 2, sessions: 8}\n",
         "11:5: roles.server.scale: max 2 is less than replicas, 3, which is the least"},
        {JOB "    load: triton\n", "10:5: roles.server.load: 'triton' is not allowed; write file, "
                                   "oip or vllm-lora"},
        {TOP "roles:\n  server:\n    kind: shards\n    run: [a]\n    ports: [a]\n    ready: told\n"
             "    capacity: 1G\n    load: oip\n",
         "10:5: roles.server.load: models are loaded at the port that ready asks; write ready: "
         "{http: PATH}, or {tcp: yes}"},
        {JOB "    shards: 0\n",
         "10:5: roles.server.shards: '0' is not allowed; write N or 1:N, N from 1 to 64"},
        {JOB "    shards: 2:5\n",
         "10:5: roles.server.shards: '2:5' is not allowed; write N or 1:N, N from 1 to 64"},
        {JOB "    shards: 65\n",
         "10:5: roles.server.shards: '65' is not allowed; write N or 1:N, N from 1 to 64"},
        {JOB "    replicas: 1:2\n",
         "10:5: roles.server.replicas: each shard has as many replicas, none of which is "
         "guaranteed; write N"},
        {JOB "    leads: yes\n",
         "10:5: roles.server.leads: a role of kind shards does not have it; leave it out"},
        {JOB "    grow: auto\n",
         "10:5: roles.server.grow: a role of kind shards does not have it; leave it out"},
        {JOB "    base: cpu\n",
         "10:5: roles.server.base: a role of kind shards does not have it; leave it out"},
        {JOB "    nodes: 2\n",
         "10:5: roles.server.nodes: only a role of kind world has it; write kind: world, or "
         "replicas"},
        {JOB OTHER "    window: 1m\n",
         "12:5: roles.a.window: only a role of kind shards has it; write kind: shards, or leave it "
         "out"},
        {JOB "    update: 50%\n",
         "10:5: roles.server.update: it is not a map; write a map such as {max-surge: 50%, "
         "max-unavailable: 50%}"},
        {JOB "    update: {max-surge: 101%}\n",
         "10:14: roles.server.update.max-surge: '101%' is not a number from 0 to 10000, or 0% to "
         "100%"},
        {JOB "    update: {max-surge: 0, max-unavailable: 0}\n",
         "10:5: roles.server.update: max-surge and max-unavailable are both 0 of 1 replicas, of "
         "which one stays ready: no replica can be replaced; raise one of them"},
        {TOP "roles:\n  server:\n    kind: shards\n    run: [a]\n    ready: told\n"
             "    capacity: 1G\n",
         "4:3: roles.server: its replicas have no port for requests; write ports: [NAME]"},
        {TOP "roles:\n  server:\n    kind: shards\n    run: [a]\n    ports: [a]\n"
             "    capacity: 1G\n",
         "4:3: roles.server: nothing says when a replica has its models; write ready: {http: "
         "PATH}, or another way"},
        {JOB "  router:\n    kind: router\n    run: [x]\n",
         "12:5: roles.router.run: a role of kind router does not have it; leave it out"},
        {JOB "  a:\n    kind: router\n  b:\n    kind: router\n",
         "13:5: roles.b.kind: a is a router already; a job has at most one"},
        {JOB "  router:\n    kind: router\n    listen: 65536\n",
         "12:5: roles.router.listen: '65536' is not a whole number from 0 to 65535"},
        {JOB "  router:\n    kind: router\n    route-by: body\n",
         "12:5: roles.router.route-by: 'body' is not allowed; write header:NAME, "
         "path:/BEFORE/THE/KEY/ or json:$.MEMBER"},
        {JOB "  router:\n    kind: router\n    tokens: '{x}'\n",
         "12:5: roles.router.tokens: braces are not allowed; write another path, or none"},
        {JOB OTHER "    listen: 80\n",
         "12:5: roles.a.listen: only a role of kind router has it; write kind: router, or leave it "
         "out"},
        {"roles:\n  a:\n    run: [a]\n    leads: yes\n  r:\n    kind: router\n",
         "5:3: roles.r: it is of kind router, but the job has no service"},
        {JOB "  other:\n    kind: shards\n    run: [x]\n    ports: [a]\n    ready: {http: /}\n"
             "    capacity: 1G\n",
         "11:5: roles.other.kind: server is of kind shards already; a job has at most one"},
        {JOB "  server-1:\n    run: [x]\n",
         "10:3: roles.server-1: a shard has the name server-1, too; give the role another one"},
        {JOB OTHER "    after: [server]\n",
         "12:5: roles.a.after: none of the shards has to be there; leave 'server' out"},
        {JOB "fit: {cpus: 1}\n",
         "10:1: fit: it has no run; write the training and its arguments, such "
         "as run: [python3, train.py], or role: NAME, or trainer: SERVICE@USER"},
        {JOB "fit: {run: [x], cpus: 0}\n",
         "10:1: fit: a training without CPUs and GPUs has no place; write at least 1"},
        {JOB "fit: {run: [x], replace: some}\n",
         "10:17: fit.replace: 'some' is not allowed; write rolling, all or load"},
        {JOB "fit: {run: [x], state: s}\n",
         "10:17: fit.state: there is no such key of fit; did you mean 'stage' or 'states'?"},
        {JOB "fit: {run: [x], within: 1h}\n",
         "10:17: fit.within: it is not a map; write a map such as {start: 1h, fit: 12h, target: "
         "1h}"},
        {JOB "  fit:\n    run: [x]\nfit: {run: [x]}\n",
         "12:1: fit: a role has the name fit, too; give the role another one"},
        {"fit: {run: [x]}\nroles:\n  a:\n    run: [a]\n    leads: yes\n",
         "1:1: fit: only a service is trained; write service: NAME"},
        {JOB "fit: {role: other}\n",
         "10:7: fit.role: there is no role 'other'; roles that can train: none"},
        {JOB OTHER "fit: {role: other}\n",
         "12:7: fit.role: there is no role 'other'; roles that can train: a"},
        {JOB "fit: {role: server}\n",
         "10:7: fit.role: server serves, and does not train; name a role of kind replicas or "
         "world"},
        {JOB OTHER "fit: {run: [x], role: a}\n",
         "12:17: fit.role: the training is run already; write one of them"},
        {JOB OTHER "fit: {role: a, gpus: 1}\n",
         "12:16: fit.gpus: it goes with run; the role says that, leave it out"},
        {JOB OTHER "fit: {role: a, allow: [me]}\n",
         "12:16: fit.allow: a role trains for its own service only; write run instead of role, or "
         "leave it out"},
        {JOB OTHER "    leads: yes\nfit: {role: a}\n",
         "12:5: roles.a.leads: a is there only while a fit needs it; leave leads out"},
        {JOB OTHER "    replicas: 4\nfit: {role: a}\n",
         "12:5: roles.a.replicas: a training has one replica; write tasks: 4 for so many "
         "processes"},
        {JOB OTHER "  b:\n    run: [b]\n    after: [a]\nfit: {role: a}\n",
         "14:5: roles.b.after: a is there only while a fit needs it; leave it out"},
        {JOB OTHER "    tasks: 4\nfit: {role: a, stage: [x]}\n",
         "13:16: fit.stage: it gets the data onto one node; give a per-node: 4, or leave it out"},
        {JOB OTHER "    kind: world\nfit: {role: a, stage: [x]}\n",
         "13:16: fit.stage: it gets the data onto one node, and a is a world; leave it out"},
        {JOB "fit: {run: [x], call: /fit}\n",
         "10:17: fit.call: only a role is called; write role: NAME, too"},
        {JOB OTHER "fit: {role: a, call: fit}\n",
         "12:16: fit.call: 'fit' is no path of a server; write one such as /fit, without spaces "
         "and {}#?"},
        {JOB OTHER "fit: {role: a, call: /fit}\n",
         "12:16: fit.call: nothing says when a can be called; give it ports: [NAME], and ready: "
         "{http: PATH}, or another way"},
        {JOB OTHER "    kind: world\nfit: {role: a, call: /fit}\n",
         "13:16: fit.call: a is a world, which is not called; leave it out"},
        {JOB "  b:\n    run: [x, '{models}']\n",
         "11:14: roles.b.run: only a role of kind shards has {models}; write {{models}} for that "
         "text"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct error err = {""};
        json_object *tree = yaml_parse(cases[i].text, strlen(cases[i].text), &err);
        struct roles *roles;

        assert_non_null(tree);
        roles = roles_create(tree, yaml_where, NULL, &err);
        if (roles != NULL)
            fail_msg("accepted:\n%s", cases[i].text);
        if (strcmp(err.text, cases[i].message) != 0)
            fail_msg("%s\n%s\ninstead of\n%s", cases[i].text, err.text, cases[i].message);
        json_object_put(tree);
    }
}

/* The map fit makes a role that the job file does not have. */
static void test_fit(void **state)
{
    struct roles *roles = create(JOB "    shards: 2\nfit: {run: [python3, t.py], cpus: 3, gpus: 1, "
                                     "memory: 2G, pool: [spot],\n"
                                     "  replace: all, keep: 4, within: {fit: 2h}}\n");
    struct error err = {""};
    char *text = roles_text(roles, &err), *other;
    struct roles *again = roles_text_read(text, &err);

    (void)state;
    for (struct roles *r = roles; r != NULL; r = r == roles ? again : NULL) {
        const struct role *fit = &r->list[roles_find(r, "fit")];

        assert_int_equal(r->count, 3);
        assert_true(fit->trains);
        assert_string_equal(fit->run[0], "elastic-fit");
        assert_string_equal(fit->run[2], "adapters");
        assert_int_equal(fit->min, 0);
        assert_int_equal(fit->max, 1);
        assert_true(fit->asks);
        assert_int_equal(fit->gang.size.cpus, 3);
        assert_int_equal(fit->gang.size.gpus, 1);
        assert_int_equal(fit->gang.size.memory, 2048);
        assert_string_equal(fit->pools[0], "spot");
        assert_string_equal(r->fit.run[1], "t.py");
        assert_near(r->fit.within.fit, 7200, 0);
        assert_near(r->fit.within.start, 3600, 0);
        assert_int_equal(r->fit.keep, 4);
        assert_int_equal(r->list[0].shards.surge.value, 1);
        assert_int_equal(r->list[1].shards.unavailable.value, 100);
    }
    other = roles_text(again, &err);
    assert_string_equal(text, other);
    free(other);
    free(text);
    roles_destroy(again);
    roles_destroy(roles);
}

/* Servers are replaced as their role says. What it does not say depends on the fit. */
static void test_fit_replacement(void **state)
{
    static const struct {
        const char *text;
        struct rollout_amount surge, unavailable;
    } cases[] = {
        {OTHER, {50, true}, {50, true}},
        {OTHER "fit: {run: [t]}\n", {50, true}, {50, true}},
        {OTHER "fit: {trainer: base@anna}\n", {1, false}, {0, false}},
        {"    update: {fail-fast: 1}\n" OTHER "fit: {trainer: base@anna}\n",
         {1, false},
         {0, false}},
        {"    update: {max-surge: 2}\n" OTHER "fit: {trainer: base@anna}\n",
         {2, false},
         {50, true}},
        {"    update: {max-unavailable: 1}\n" OTHER "fit: {trainer: base@anna}\n",
         {50, true},
         {1, false}},
        {OTHER "fit: {trainer: base@anna, replace: load}\n", {50, true}, {50, true}},
        {"    update: {max-surge: 2}\n" OTHER "fit: {trainer: base@anna, replace: all}\n",
         {1, false},
         {100, true}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[1024];
        struct roles *roles;
        const struct role *role;

        snprintf(text, sizeof(text), JOB "    shards: 2\n%s", cases[i].text);
        roles = create(text);
        role = &roles->list[roles_shard(roles, 2)];
        assert_int_equal(role->shards.surge.value, cases[i].surge.value);
        assert_int_equal(role->shards.surge.percent, cases[i].surge.percent);
        assert_int_equal(role->shards.unavailable.value, cases[i].unavailable.value);
        assert_int_equal(role->shards.unavailable.percent, cases[i].unavailable.percent);
        roles_destroy(roles);
    }
}

/* A role of the file is the training: its text stays as it is, and its tasks run elastic-fit. */
static void test_fit_role(void **state)
{
    static const struct {
        const char *text, *training;
        int min, max;
    } cases[] = {
        {"    tasks: 3\n    run: [t, '{task}']\nfit: {role: a}\n",
         "elastic-fit train adapters -- t {task}", 0, 1},
        {"    ports: [x, y]\n    ready: {tcp: yes, port: y}\n    run: [t]\n"
         "fit: {role: a, call: /fit, stage: [s]}\n",
         "elastic-fit train adapters --call=/fit --port={port:y} -- t", 0, 1},
        {"    kind: world\n    nodes: 2:3\n    run: [t]\nfit: {role: a, keep: 2}\n",
         "elastic-fit become adapters -- t", 2, 3},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *whole, *text, *other, training[256] = "";
        struct error err = {""};
        struct roles *roles, *again;

        assert_true(asprintf(&whole, "%s  a:\n%s", JOB, cases[i].text) > 0);
        roles = create(whole);
        text = roles_text(roles, &err);
        again = roles_text_read(text, &err);
        if (again == NULL)
            fail_msg("%s: %s", text, err.text);
        for (struct roles *r = roles; r != NULL; r = r == roles ? again : NULL) {
            const struct role *a = &r->list[roles_find(r, "a")];

            assert_int_equal(roles_trainer(r), roles_find(r, "a"));
            assert_true(roles_are_trained(r) && a->trains);
            assert_int_equal(roles_leader(r), roles_shards(r));
            assert_string_equal(a->run[0], "t");
            assert_int_equal(a->min, cases[i].min);
            assert_int_equal(a->max, cases[i].max);
            training[0] = '\0';
            for (char **word = a->training; *word != NULL; word++)
                text_append(training, sizeof(training), "%s%s", word == a->training ? "" : " ",
                            *word);
            assert_string_equal(training, cases[i].training);
        }
        other = roles_text(again, &err);
        assert_string_equal(text, other);
        free(other);
        free(text);
        free(whole);
        roles_destroy(again);
        roles_destroy(roles);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),     cmocka_unit_test(test_again),
        cmocka_unit_test(test_idle_again), cmocka_unit_test(test_router),
        cmocka_unit_test(test_program),    cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_fit),        cmocka_unit_test(test_fit_replacement),
        cmocka_unit_test(test_fit_role),   cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a task of a replica finds in its environment (lib/role_task.h). */
#include "common/yaml_file.h"
#include "lib/role_task.h"
#include "lib/world.h"
#include "lib/world_names.h"
#include "tests/unit/support.h"

static const char *const ROLES =
    "roles:\n"
    "  web-shop: {leads: yes, run: [serve, \"{port}\", \"{port:data-in}\", \"{replica}/{task}\"],\n"
    "             tasks: 4, cpus: 6, ports: [http, data-in]}\n"
    "  plain: {run: [plain]}\n";

static struct roles *create(void)
{
    struct error err = {""};
    json_object *tree = yaml_parse(ROLES, strlen(ROLES), &err);
    struct roles *roles = tree != NULL ? roles_create(tree, yaml_where, NULL, &err) : NULL;

    json_object_put(tree);
    if (roles == NULL)
        fail_msg("%s", err.text);
    return roles;
}

static void assert_strings(char *const *strings, const char *const *expected, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_non_null(strings[i]);
        assert_string_equal(strings[i], expected[i]);
    }
    assert_null(strings[count]);
}

static void test_environment(void **state)
{
    static const char *const expected[] = {
        "ELASTIC_ROLE=web-shop",
        "ELASTIC_REPLICA=web-shop-12",
        "ELASTIC_REPLICA_INDEX=12",
        "OMP_NUM_THREADS=6",
        "ELASTIC_TASK=3",
        "ELASTIC_TASKS=4",
        "ELASTIC_START=5000000000",
        "ELASTIC_PORT=20001",
        "ELASTIC_PORT_HTTP=20001",
        "ELASTIC_PORT_DATA_IN=20002",
        "ELASTIC_READY_FILE=/r/ready",
        "ELASTIC_SHARED_DIR=/s",
        "ELASTIC_API=http://127.0.0.1:60000",
        "ELASTIC_API_SOCKET=/r/api",
        "CUDA_VISIBLE_DEVICES=1,3",
        "ROCR_VISIBLE_DEVICES=",
    };
    const int ports[] = {20001, 20002};
    const struct role_task task = {.replica = "web-shop-12", .task = 3, .ports = ports};
    const struct role_task_place place = {
        .start = 5000000000,
        .ready_file = "/r/ready",
        .shared = "/s",
        .cuda = "1,3",
        .rocr = "",
        .api = "http://127.0.0.1:60000",
        .api_socket = "/r/api",
    };
    struct roles *roles = create();
    char **env = role_task_environment(&roles->list[0], &task, &place);

    (void)state;
    assert_strings(env, expected, COUNT(expected));
    strings_free(env);
    roles_destroy(roles);
}

static void test_least(void **state)
{
    static const char *const expected[] = {
        "ELASTIC_ROLE=plain", "ELASTIC_REPLICA=plain-0", "ELASTIC_REPLICA_INDEX=0",
        "OMP_NUM_THREADS=1",  "ELASTIC_TASK=0",          "ELASTIC_TASKS=1",
        "ELASTIC_START=1",
    };
    const struct role_task task = {.replica = "plain-0"};
    const struct role_task_place place = {.start = 1};
    struct roles *roles = create();
    char **env = role_task_environment(&roles->list[1], &task, &place);

    (void)state;
    assert_strings(env, expected, COUNT(expected));
    strings_free(env);
    roles_destroy(roles);
}

/* A replica of a shard. */
static void test_shard(void **state)
{
    static const char *const expected[] = {"ELASTIC_MODELS=/m.json", "ELASTIC_SHARD=shard_2"};
    const struct role_task task = {.replica = "plain-0", .models = "/m.json"};
    const struct role_task_place place = {.start = 1};
    struct roles *roles = create();
    struct role role = roles->list[1];
    char **env;

    (void)state;
    role.shards.number = 2;
    env = role_task_environment(&role, &task, &place);
    assert_strings(env + strings_count(env) - COUNT(expected), expected, COUNT(expected));
    strings_free(env);
    roles_destroy(roles);
}

static void test_world(void **state)
{
    static const char *const expected[] = {"ELASTIC_ROLE=plain", "ELASTIC_SHARED_DIR=/s",
                                           "CUDA_VISIBLE_DEVICES=1,3"};
    const struct role_task_place place = {.shared = "/s", .cuda = "1,3"};
    struct roles *roles = create();
    char **env = role_world_environment(&roles->list[1], &place);

    (void)state;
    assert_strings(env, expected, COUNT(expected));
    strings_free(env);
    roles_destroy(roles);
}

/* What programs of DI-engine look for. */
static void test_di_engine(void **state)
{
    static const struct {
        const char *role, *expected[8];
    } cases[] = {
        {"coordinator",
         {"KUBERNETES_POD_NAMESPACE=4711", "KUBERNETES_POD_NAME=coordinator-0",
          "KUBERNETES_SERVER_URL=http://127.0.0.1:60000", "START_RANK=2", "COORDINATOR_PORT=20001",
          "KUBERNETES_COORDINATOR_URL=coordinator-0.4711:20001"}},
        {"aggregator",
         {"KUBERNETES_POD_NAMESPACE=4711", "KUBERNETES_POD_NAME=aggregator-0",
          "KUBERNETES_SERVER_URL=http://127.0.0.1:60000", "START_RANK=2", "AGGREGATOR_PORT=20001",
          "KUBERNETES_AGGREGATOR_URL=aggregator-0.4711:20001"}},
        {"collector",
         {"KUBERNETES_POD_NAMESPACE=4711", "KUBERNETES_POD_NAME=collector-0",
          "KUBERNETES_SERVER_URL=http://127.0.0.1:60000", "START_RANK=2", "COLLECTOR_PORT=20001"}},
        {"learner",
         {"KUBERNETES_POD_NAMESPACE=4711", "KUBERNETES_POD_NAME=learner-0",
          "KUBERNETES_SERVER_URL=http://127.0.0.1:60000", "START_RANK=2", "LEARNER_PORT=20001"}},
        {"other",
         {"KUBERNETES_POD_NAMESPACE=4711", "KUBERNETES_POD_NAME=other-0",
          "KUBERNETES_SERVER_URL=http://127.0.0.1:60000", "START_RANK=2"}},
    };
    const int ports[] = {20001, 20002};
    const struct role_task_place place = {
        .start = 1, .api = "http://127.0.0.1:60000", .namespace = "4711", .first_task = 2};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char name[32], replica[40], *port_names[] = {(char[]){"http"}, (char[]){"grpc"}, NULL};
        const struct role role = {.name = name, .ports = port_names, .gang.tasks = 4};
        const struct role_task task = {.replica = replica, .task = 3, .ports = ports};
        char **env;

        snprintf(name, sizeof(name), "%s", cases[i].role);
        snprintf(replica, sizeof(replica), "%s-0", name);
        env = role_task_environment(&role, &task, &place);
        /* Behind "ELASTIC_API", at the end. */
        for (size_t k = 0; cases[i].expected[k] != NULL; k++)
            assert_string_equal(env[10 + k], cases[i].expected[k]);
        assert_int_equal(strings_count(env), 10 + strings_count((char *const *)cases[i].expected));
        strings_free(env);
    }
}

/* A process of a learner adds its rank to LEARNER_PORT, on whatever node it is. */
static void test_of_an_aggregator(void **state)
{
    static const char *const expected[] = {
        "START_RANK=2", "KUBERNETES_AGGREGATOR_URL=aggregator-5.4711:30000", "LEARNER_PORT=19998"};
    const int ports[] = {20001};
    const struct role_task_place place = {.start = 1,
                                          .namespace = "4711",
                                          .first_task = 2,
                                          .owner = "aggregator-5",
                                          .owner_port = 30000};
    char *port_names[] = {(char[]){"http"}, NULL};
    const struct role role = {.name = (char[]){"learner"}, .ports = port_names, .gang.tasks = 4};
    const struct role_task task = {.replica = "learner-1", .task = 3, .ports = ports};
    char **env = role_task_environment(&role, &task, &place);
    size_t count = strings_count(env);

    (void)state;
    for (size_t i = 0; i < COUNT(expected); i++)
        assert_string_equal(env[count - COUNT(expected) + i], expected[i]);
    strings_free(env);
}

static void test_command(void **state)
{
    static const char *const expected[] = {"serve", "20001", "20002", "web-shop-1/2"};
    const int ports[] = {20001, 20002};
    const struct role_task task = {.replica = "web-shop-1", .task = 2, .ports = ports};
    struct roles *roles = create();
    char **argv = role_task_command(&roles->list[0], roles->list[0].run, &task);

    (void)state;
    assert_strings(argv, expected, COUNT(expected));
    strings_free(argv);
    roles_destroy(roles);
}

static bool is_named(const char *assignment)
{
    size_t len = strcspn(assignment, "=");

    for (const char *const *name = world_names; *name != NULL; name++)
        if (strlen(*name) == len && strncmp(*name, assignment, len) == 0)
            return true;
    return strncmp(assignment, WORLD_NAMES_PORT, strlen(WORLD_NAMES_PORT)) == 0;
}

/* A user who starts a job from within a task does not hand the task's on. */
static void test_no_task_inherits_another_ones(void **state)
{
    const int ports[] = {20001, 20002};
    const struct role_task task = {.replica = "web-shop-12", .task = 3, .ports = ports};
    const struct role_task_place place = {.start = 5, .ready_file = "/r/ready", .shared = "/s"};
    struct roles *roles = create();
    char **old = role_task_environment(&roles->list[0], &task, &place), **env;
    struct world *world = world_create(1, 1);
    const struct world_place worker = {.run_dir = "/r"};

    (void)state;
    for (char **each = old; *each != NULL; each++)
        assert_true(is_named(*each) || strcmp(*each, "OMP_NUM_THREADS=6") == 0);
    assert_int_equal(world_set_node(world, 0, "n1", 1), 0);
    env = world_environment(world, &worker, old, NULL);
    for (char **each = env; *each != NULL; each++)
        for (char **given = old; *given != NULL; given++)
            assert_true(strcmp(*each, *given) != 0 || !is_named(*given));
    strings_free(env);
    strings_free(old);
    world_destroy(world);
    roles_destroy(roles);
}

static void test_names_are_sorted(void **state)
{
    (void)state;
    assert_true(is_named(WORLD_CHECKPOINT_URL "=s3://b/p"));
    for (const char *const *name = world_names; name[1] != NULL; name++)
        assert_true(strcmp(name[0], name[1]) < 0);
}

/* Who changes his sbatch or srun says what is in the environment that slurmstepd looks at. */
static void test_names_of_ports(void **state)
{
    char *env[] = {"ELASTIC_PORT_BARE",
                   "ELASTIC_PORT=1",
                   "ELASTIC_PORT_=2",
                   "A=ELASTIC_PORT_B=3",
                   "ELASTIC_PORT_A=",
                   "ELASTIC_PORT_A=x=",
                   "=",
                   "ELASTIC_PORT_LAST=4",
                   NULL};
    static const char *const expected[] = {"ELASTIC_PORT_", "ELASTIC_PORT_A", "ELASTIC_PORT_A",
                                           "ELASTIC_PORT_LAST"};
    char *names[COUNT(expected) + 1];

    (void)state;
    for (int max = 0; max <= (int)COUNT(names); max++) {
        int count = world_names_ports(env, names, max);

        assert_int_equal(count, max < (int)COUNT(expected) ? max : (int)COUNT(expected));
        for (int i = 0; i < count; i++) {
            assert_string_equal(names[i], expected[i]);
            free(names[i]);
        }
    }
    assert_int_equal(world_names_ports(NULL, names, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_least),
        cmocka_unit_test(test_shard),
        cmocka_unit_test(test_world),
        cmocka_unit_test(test_di_engine),
        cmocka_unit_test(test_of_an_aggregator),
        cmocka_unit_test(test_command),
        cmocka_unit_test(test_no_task_inherits_another_ones),
        cmocka_unit_test(test_names_are_sorted),
        cmocka_unit_test(test_names_of_ports),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

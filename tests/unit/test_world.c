/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Worlds, the environment of their workers, host files (lib/world.c, lib/world_env.c). */
#include "tests/unit/support.h"

#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/world.h"

/* Nodes "a:2 b:1 …", all else as a leader fills it in. */
static struct world *make_world(const char *nodes)
{
    struct world *world;
    int count = 1, index = 0, used, slots;
    char name[300];

    for (const char *c = nodes; *c != '\0'; c++)
        count += *c == ' ';
    world = world_create(4, count);
    assert_non_null(world);
    for (const char *at = nodes; sscanf(at, " %299[^: ]:%d%n", name, &slots, &used) == 2;
         at += used)
        assert_int_equal(world_set_node(world, index++, name, slots), 0);
    assert_int_equal(index, count);
    world->kind = strdup("grow");
    world->reason = strdup("two nodes joined");
    world->master_addr = strdup("10.0.0.1");
    world->master_port = 29500;
    world->restarts = 3;
    return world;
}

static const struct world_place full_place = {
    .job_id = "12",
    .incarnation = "12.1",
    .step_id = "3",
    .min_nodes = 2,
    .max_nodes = 8,
    .max_restarts = 5,
    .event_file = "/r/worker.event",
    .error_file = "/r/worker.error",
    .run_dir = "/r",
    .state_dir = "/s",
    .checkpoint_dir = "/s/checkpoint",
    .scale_config = "{\"lr\":0.1}",
    .scale_configs = "{\"4\":{\"lr\":0.1}}",
    .lib = "/lib/libelastic.so.0",
    .release = "0.1.0",
    .python = "/share/python",
    .store = "/r/store",
    .attempt = 7,
};

/* The value of a name, NULL if it is not there; fails if it is there twice. */
static const char *value_of(char *const *env, const char *name)
{
    const char *found = NULL;
    size_t len = strlen(name);

    for (; *env != NULL; env++) {
        if (strncmp(*env, name, len) != 0 || (*env)[len] != '=')
            continue;
        if (found != NULL)
            fail_msg("%s is set twice", name);
        found = *env + len + 1;
    }
    return found;
}

static void assert_value(char *const *env, const char *name, const char *expected)
{
    const char *value = value_of(env, name);

    if (expected == NULL ? value != NULL : value == NULL || strcmp(value, expected) != 0)
        fail_msg("%s is \"%s\", expected \"%s\"", name, value != NULL ? value : "(unset)",
                 expected != NULL ? expected : "(unset)");
}

static char **environment_of(const char *nodes, int node_index, int local_rank, char *const *user,
                             char *const *own)
{
    struct world *world = make_world(nodes);
    struct world_place place = full_place;
    char **env;

    place.node_index = node_index;
    place.local_rank = local_rank;
    env = world_environment(world, &place, user, own);
    assert_non_null(env);
    world_destroy(world);
    return env;
}

/* ---- ranks ----------------------------------------------------------------------------------- */

static void test_ranks(void **state)
{
    struct world *world = make_world("n1:2 n2:3 n3:1");

    (void)state;
    assert_int_equal(world_size(world), 6);
    assert_int_equal(world_first_rank(world, 0), 0);
    assert_int_equal(world_first_rank(world, 1), 2);
    assert_int_equal(world_first_rank(world, 2), 5);
    for (int i = 0; i < 6; i++)
        assert_int_equal(world_node_of(world, i), i < 2 ? 0 : i < 5 ? 1 : 2);
    assert_int_equal(world_node_of(world, 6), -1);
    assert_int_equal(world_node_of(world, -1), -1);
    assert_int_equal(world_node_of(world, UINT32_MAX), -1); /* a wildcard of PMIx */
    world_destroy(world);
    world_destroy(NULL);
    assert_null(world_create(1, 0));
    assert_null(world_create(1, 1 << 20));
}

static void test_names_of_nodes(void **state)
{
    static const struct {
        const char *name;
        bool good;
    } cases[] = {
        {"n1", true},         {"node-001.cluster_A", true},
        {"N", true},          {"", false},
        {NULL, false},        {"n 1", false},
        {"n1;rm", false},     {"n1'", false},
        {"$(reboot)", false}, {"n1\n", false},
        {"n[1-2]", false},    {"a,b", false},
        {"-n", false},        {"n:1", false},
        {"n/1", false},       {"n\xc3\xa9", false},
    };
    struct world *world = world_create(1, 1);
    char longest[255];

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(world_set_node(world, 0, cases[i].name, 1), cases[i].good ? 0 : -1);
    memset(longest, 'n', sizeof(longest));
    longest[253] = '\0';
    assert_int_equal(world_set_node(world, 0, longest, 1), 0);
    memset(longest, 'n', 254);
    longest[254] = '\0';
    assert_int_equal(world_set_node(world, 0, longest, 1), -1);
    assert_int_equal(world_set_node(world, 0, "n", 0), -1);
    assert_int_equal(world_set_node(world, 0, "n", 4097), -1);
    assert_int_equal(world_set_node(world, 1, "n", 1), -1);
    assert_int_equal(world_set_node(world, -1, "n", 1), -1);
    world_destroy(world);
}

/* ---- environment ----------------------------------------------------------------------------- */

/* Nodes with 2, 3 and 1 workers: what the second worker of the second node gets, and others
 * where they differ. */
static void test_environment(void **state)
{
    static const struct {
        const char *name, *value;
    } cases[] = {
        {"RANK", "3"},
        {"LOCAL_RANK", "1"},
        {"WORLD_SIZE", "6"},
        {"LOCAL_WORLD_SIZE", "3"},
        {"GROUP_RANK", "1"},
        {"GROUP_WORLD_SIZE", "3"},
        {"ROLE_RANK", "3"},
        {"ROLE_WORLD_SIZE", "6"},
        {"ROLE_NAME", "default"},
        {"MASTER_ADDR", "10.0.0.1"},
        {"MASTER_PORT", "29500"},
        {"TORCHELASTIC_RESTART_COUNT", "3"},
        {"TORCHELASTIC_MAX_RESTARTS", "5"},
        {"TORCHELASTIC_RUN_ID", "12.1"},
        {"TORCHELASTIC_ERROR_FILE", "/r/worker.error"},
        {"TORCHELASTIC_USE_AGENT_STORE", "False"},
        {"OMP_NUM_THREADS", "1"},
        {"HOROVOD_RANK", "3"},
        {"HOROVOD_SIZE", "6"},
        {"HOROVOD_LOCAL_RANK", "1"},
        {"HOROVOD_LOCAL_SIZE", "3"},
        {"HOROVOD_CROSS_RANK", "1"},
        {"HOROVOD_CROSS_SIZE", "2"}, /* n3 has no second worker */
        {"HOROVOD_HOSTNAME", "n2"},
        {"SLURM_JOB_ID", "12"},
        {"SLURM_JOBID", "12"},
        {"SLURM_PROCID", "3"},
        {"SLURM_LOCALID", "1"},
        {"SLURM_NODEID", "1"},
        {"SLURM_STEP_ID", "3"},
        {"SLURM_NTASKS", "6"},
        {"SLURM_NPROCS", "6"},
        {"SLURM_NNODES", "3"},
        {"SLURM_JOB_NUM_NODES", "3"},
        {"SLURM_NODELIST", "n[1-3]"},
        {"SLURM_JOB_NODELIST", "n[1-3]"},
        {"SLURM_STEP_NODELIST", "n[1-3]"},
        {"SLURM_STEP_NUM_NODES", "3"},
        {"SLURM_STEP_NUM_TASKS", "6"},
        {"SLURM_TASKS_PER_NODE", "2,3,1"},
        {"SLURM_STEP_TASKS_PER_NODE", "2,3,1"},
        {"SLURMD_NODENAME", "n2"},
        {"ELASTIC_JOB_ID", "12"},
        {"ELASTIC_INCARNATION", "12.1"},
        {"ELASTIC_GENERATION", "4"},
        {"ELASTIC_NODES", "3"},
        {"ELASTIC_MIN_NODES", "2"},
        {"ELASTIC_MAX_NODES", "8"},
        {"ELASTIC_KIND", "grow"},
        {"ELASTIC_REASON", "two nodes joined"},
        {"ELASTIC_EVENT_FILE", "/r/worker.event"},
        {"ELASTIC_STATE_DIR", "/s"},
        {"ELASTIC_CHECKPOINT_DIR", "/s/checkpoint"},
        {"ELASTIC_CHECKPOINT_URL", "s3://b/p"},
        {"ELASTIC_RUN_DIR", "/r"},
        {"ELASTIC_SCALE_CONFIG", "{\"lr\":0.1}"},
        {"ELASTIC_SCALE_CONFIGS", "{\"4\":{\"lr\":0.1}}"},
        {"ELASTIC_LIB", "/lib/libelastic.so.0"},
        {"ELASTIC_RELEASE", "0.1.0"},
        {"ELASTIC_STORE", "/r/store"},
        {"ELASTIC_ATTEMPT", "7"},
        {"ELASTIC_REPLICA_NODES", "1"},
        {"ELASTIC_UNIT", "1"},
        {"ELASTIC_UNITS", "3"},
        {"ELASTIC_UNIT_RANK", "1"},
        {"ELASTIC_UNIT_SIZE", "3"},
        {"ELASTIC_BIND", "/r,/s,/lib/libelastic.so.0,/share/python"},
    };
    char *of_elasticrun[] = {"ELASTIC_CHECKPOINT_URL=s3://b/p", NULL}, *nothing[] = {NULL};
    char **env = environment_of("n1:2 n2:3 n3:1", 1, 1, of_elasticrun, nothing);
    size_t count = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_value(env, cases[i].name, cases[i].value);
    while (env[count] != NULL)
        count++;
    assert_int_equal(count, COUNT(cases)); /* and nothing that is not in the table */
    strings_free(env);
}

static void test_what_a_container_binds(void **state)
{
    static const struct {
        const char *state_dir, *checkpoint_dir, *python, *bind;
    } cases[] = {
        {"/s", "/s/checkpoint", NULL, "/r,/s,/lib/libelastic.so.0"},
        {"/s", "/s2/c", NULL, "/r,/s,/s2/c,/lib/libelastic.so.0"},
        {"/s", "/s", NULL, "/r,/s,/s,/lib/libelastic.so.0"},
        /* --bind would take them apart. */
        {"/a,b", "/a:b", "/p q", "/r,/lib/libelastic.so.0,/p q"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct world *world = make_world("n1:1");
        struct world_place place = full_place;
        char *user[] = {"ELASTIC_BIND=/old", NULL}, **env;

        place.state_dir = cases[i].state_dir;
        place.checkpoint_dir = cases[i].checkpoint_dir;
        place.python = cases[i].python;
        env = world_environment(world, &place, user, NULL);
        assert_value(env, "ELASTIC_BIND", cases[i].bind);
        strings_free(env);
        world_destroy(world);
    }
}

static void test_ranks_in_environment(void **state)
{
    static const struct {
        int node, local;
        const char *rank, *cross_rank, *cross_size;
    } cases[] = {
        {0, 0, "0", "0", "3"}, {0, 1, "1", "0", "2"}, {1, 0, "2", "1", "3"},
        {1, 2, "4", "0", "1"}, {2, 0, "5", "2", "3"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char **env = environment_of("n1:2 n2:3 n3:1", cases[i].node, cases[i].local, NULL, NULL);

        assert_value(env, "RANK", cases[i].rank);
        assert_value(env, "SLURM_PROCID", cases[i].rank);
        assert_value(env, "HOROVOD_CROSS_RANK", cases[i].cross_rank);
        assert_value(env, "HOROVOD_CROSS_SIZE", cases[i].cross_size);
        strings_free(env);
    }
}

/* Two nodes are a unit (--elastic-replica=2). */
static void test_units_in_environment(void **state)
{
    static const struct {
        int node, local;
        const char *unit, *rank, *size;
    } cases[] = {
        {0, 0, "0", "0", "5"},
        {1, 2, "0", "4", "5"},
        {2, 0, "1", "0", "4"},
        {3, 2, "1", "3", "4"},
    };
    char *user[] = {"ELASTIC_UNIT=7", "ELASTIC_REPLICA_NODES=9", NULL};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct world *world = make_world("n1:2 n2:3 n3:1 n4:3");
        struct world_place place = full_place;
        char **env;

        world->replica = 2;
        place.node_index = cases[i].node;
        place.local_rank = cases[i].local;
        env = world_environment(world, &place, user, NULL);
        assert_value(env, "ELASTIC_REPLICA_NODES", "2");
        assert_value(env, "ELASTIC_UNIT", cases[i].unit);
        assert_value(env, "ELASTIC_UNITS", "2");
        assert_value(env, "ELASTIC_UNIT_RANK", cases[i].rank);
        assert_value(env, "ELASTIC_UNIT_SIZE", cases[i].size);
        strings_free(env);
        world_destroy(world);
    }
}

/* … which a member hears of with its world. */
static void test_units_in_messages(void **state)
{
    struct world *world = make_world("n1:2 n2:3"), *back;
    struct error err = {""};
    json_object *msg;

    (void)state;
    world->replica = 2;
    msg = world_to_json(world);
    back = world_from_json(msg, &err);
    assert_non_null(back);
    assert_int_equal(back->replica, 2);
    world_destroy(back);
    /* The world of a gang travels with the number of its replica. */
    json_object_object_add(msg, "replica", json_object_new_int(3));
    back = world_from_json(msg, &err);
    assert_non_null(back);
    assert_int_equal(back->replica, 2);
    world_destroy(back);
    json_object_object_add(msg, "unit_nodes", json_object_new_int(3));
    assert_null(world_from_json(msg, &err));
    assert_string_equal(err.text, "unit_nodes: a number that divides the 2 nodes is expected");
    json_object_object_add(msg, "unit_nodes", json_object_new_int(0));
    assert_null(world_from_json(msg, &err));
    json_object_put(msg);
    world_destroy(world);
}

static void test_lists(void **state)
{
    static const struct {
        const char *nodes, *list, *tasks;
    } cases[] = {
        {"n1:1", "n1", "1"},
        {"n1:2 n2:2 n3:2 n4:1", "n[1-4]", "2(x3),1"},
        {"n1:4 n2:4", "n[1-2]", "4(x2)"},
        {"n3:1 n1:1 n2:1", "n[3,1-2]", "1(x3)"}, /* rank order, never sorted */
        {"n2:1 n1:1", "n[2,1]", "1(x2)"},
        {"n1:1 n2:1 n3:1 n7:1", "n[1-3,7]", "1(x4)"},
        {"n08:1 n09:1 n10:1 n11:1", "n[08-11]", "1(x4)"},
        {"n08:1 n9:1 n010:1", "n[08,9,010]", "1(x3)"},
        {"n98:1 n99:1 n100:1", "n[98-100]", "1(x3)"},
        {"n098:1 n099:1 n0100:1", "n[098-099,0100]", "1(x3)"},
        {"n1-ib:1 n2-ib:1", "n1-ib,n2-ib", "1(x2)"}, /* Slurm cannot read it folded */
        {"n8:1 n9:1 n10:1", "n[8-10]", "1(x3)"},
        {"a1:1 b2:1", "a1,b2", "1(x2)"},
        {"a:1 b:2", "a,b", "1,2"},
        {"r1-n1:1 r1-n2:1 r2-n3:1", "r1-n[1-2],r2-n3", "1(x3)"},
        {"1:1 2:1", "[1-2]", "1(x2)"},
        {"x99999999999999999998:1 x99999999999999999999:1",
         "x99999999999999999998,x99999999999999999999", "1(x2)"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char **env = environment_of(cases[i].nodes, 0, 0, NULL, NULL);

        assert_value(env, "SLURM_JOB_NODELIST", cases[i].list);
        assert_value(env, "SLURM_TASKS_PER_NODE", cases[i].tasks);
        strings_free(env);
    }
}

/* What stays of the user's, what goes, and what comes from the member's own job. */
static void test_user_environment(void **state)
{
    static const struct {
        const char *user; /* "NAME=VALUE", or NULL */
        const char *own;
        const char *name, *expected;
    } cases[] = {
        /* the user's own */
        {"HOME=/home/u", "HOME=/else", "HOME", "/home/u"},
        {"PATH=/bin", NULL, "PATH", "/bin"},
        {"EMPTY=", NULL, "EMPTY", ""},
        {"WITH=a=b", NULL, "WITH", "a=b"},
        {"SLURMY=x", NULL, "SLURMY", "x"},
        {"PMIX=x", NULL, "PMIX", "x"},
        {"OMPI_MCA_btl=tcp", NULL, "OMPI_MCA_btl", "tcp"},
        {"NCCL_DEBUG=INFO", NULL, "NCCL_DEBUG", "INFO"},
        {"ELASTIC_CONF=/e", NULL, "ELASTIC_CONF", "/e"},
        {NULL, "EXTRA=1", "EXTRA", NULL},
        /* of the base job as a whole */
        {"SLURM_CLUSTER_NAME=c", NULL, "SLURM_CLUSTER_NAME", "c"},
        {"SLURM_CONF=/etc/x", NULL, "SLURM_CONF", "/etc/x"},
        {"SLURM_SUBMIT_DIR=/d", "SLURM_SUBMIT_DIR=/e", "SLURM_SUBMIT_DIR", "/d"},
        {"SLURM_SUBMIT_HOST=h", NULL, "SLURM_SUBMIT_HOST", "h"},
        {"SLURM_JOB_ACCOUNT=a", NULL, "SLURM_JOB_ACCOUNT", "a"},
        {"SLURM_JOB_PARTITION=p", "SLURM_JOB_PARTITION=elastic", "SLURM_JOB_PARTITION", "p"},
        {"SLURM_JOB_NAME=j", NULL, "SLURM_JOB_NAME", "j"},
        {"SLURM_ARRAY_TASK_ID=3", NULL, "SLURM_ARRAY_TASK_ID", "3"},
        {"SLURM_CPUS_PER_TASK=8", NULL, "SLURM_CPUS_PER_TASK", "8"},
        {"SLURM_RESTART_COUNT=1", NULL, "SLURM_RESTART_COUNT", "1"},
        /* of its step, or of launchers */
        {"SLURM_STEP_ID=0", NULL, "SLURM_STEP_ID", "3"}, /* the world's */
        {"SLURM_STEPID=0", NULL, "SLURM_STEPID", NULL},
        {"SLURM_GTIDS=0", NULL, "SLURM_GTIDS", NULL},
        {"SLURM_TASK_PID=7", NULL, "SLURM_TASK_PID", NULL},
        {"SLURM_CPU_BIND=quiet,mask_cpu:0x1", NULL, "SLURM_CPU_BIND", NULL},
        {"SLURM_CPU_BIND_LIST=0x1", NULL, "SLURM_CPU_BIND_LIST", NULL},
        {"SLURM_SRUN_COMM_HOST=h", NULL, "SLURM_SRUN_COMM_HOST", NULL},
        {"SLURM_SRUN_COMM_PORT=1", NULL, "SLURM_SRUN_COMM_PORT", NULL},
        {"SLURM_STEP_LAUNCHER_PORT=1", NULL, "SLURM_STEP_LAUNCHER_PORT", NULL},
        {"SLURM_LAUNCH_NODE_IPADDR=1", NULL, "SLURM_LAUNCH_NODE_IPADDR", NULL},
        {"SLURM_DISTRIBUTION=block", NULL, "SLURM_DISTRIBUTION", NULL},
        {"SLURM_MPI_TYPE=none", NULL, "SLURM_MPI_TYPE", NULL},
        {"SLURM_JOB_CPUS_PER_NODE=4(x2)", NULL, "SLURM_JOB_CPUS_PER_NODE", NULL},
        {"SLURM_NO_KILL=1", NULL, "SLURM_NO_KILL", NULL},
        {"SLURM_RLIMIT_NOFILE=1", NULL, "SLURM_RLIMIT_NOFILE", NULL},
        {"SLURMD_DEBUG=2", NULL, "SLURMD_DEBUG", NULL},
        {"_SLURM_SPANK_OPTION_elastic_elastic=2:6", NULL, "_SLURM_SPANK_OPTION_elastic_elastic",
         NULL},
        {"SPANK_FOO=1", NULL, "SPANK_FOO", NULL},
        {"PMI_RANK=0", NULL, "PMI_RANK", NULL},
        {"PMI2_X=0", NULL, "PMI2_X", NULL},
        {"PMIX_NAMESPACE=n", NULL, "PMIX_NAMESPACE", NULL},
        {"OMPI_COMM_WORLD_RANK=0", NULL, "OMPI_COMM_WORLD_RANK", NULL},
        /* ours, also where there is a value of the user's */
        {"RANK=9", "RANK=8", "RANK", "0"},
        {"WORLD_SIZE=9", NULL, "WORLD_SIZE", "3"},
        {"SLURM_JOB_ID=99", "SLURM_JOB_ID=98", "SLURM_JOB_ID", "12"},
        {"ELASTIC_EVENT_FILE=/old", NULL, "ELASTIC_EVENT_FILE", "/r/worker.event"},
        {"OMP_NUM_THREADS=4", NULL, "OMP_NUM_THREADS", "4"},
        {"OMP_NUM_THREADS=", NULL, "OMP_NUM_THREADS", ""},
        /* of the node: the member's own job's, or none */
        {"CUDA_VISIBLE_DEVICES=0,1", "CUDA_VISIBLE_DEVICES=2,3", "CUDA_VISIBLE_DEVICES", "2,3"},
        {"CUDA_VISIBLE_DEVICES=0,1", NULL, "CUDA_VISIBLE_DEVICES", NULL},
        {NULL, "ROCR_VISIBLE_DEVICES=0", "ROCR_VISIBLE_DEVICES", "0"},
        {NULL, "ZE_AFFINITY_MASK=0", "ZE_AFFINITY_MASK", "0"},
        {NULL, "GPU_DEVICE_ORDINAL=0", "GPU_DEVICE_ORDINAL", "0"},
        {"SLURM_JOB_GPUS=0", "SLURM_JOB_GPUS=3", "SLURM_JOB_GPUS", "3"},
        {"SLURM_STEP_GPUS=0", "SLURM_STEP_GPUS=3", "SLURM_STEP_GPUS", "3"},
        {"SLURM_CPUS_ON_NODE=4", "SLURM_CPUS_ON_NODE=8", "SLURM_CPUS_ON_NODE", "8"},
        {"TMPDIR=/tmp/12", "TMPDIR=/tmp/17", "TMPDIR", "/tmp/17"},
        {"TMPDIR=/tmp/12", NULL, "TMPDIR", NULL},
        {"SLURMD_NODENAME=base", "SLURMD_NODENAME=n7", "SLURMD_NODENAME", "n7"},
        {"SLURMD_NODENAME=base", NULL, "SLURMD_NODENAME", "n1"},
        /* no assignment at all */
        {"NONSENSE", NULL, "NONSENSE", NULL},
        {"=x", NULL, "", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *user[] = {(char *)(uintptr_t)cases[i].user, NULL},
             *own[] = {(char *)(uintptr_t)cases[i].own, NULL};
        char **env = environment_of("n1:2 n2:1", 0, 0, user, own);

        assert_value(env, cases[i].name, cases[i].expected);
        strings_free(env);
    }
}

static void test_omp_threads(void **state)
{
    static const struct {
        const char *nodes;
        int cpus; /* of the role */
        const char *user, *added, *expected;
    } cases[] = {
        {"n1:1 n2:4", 0, NULL, NULL, NULL},
        {"n1:2", 0, NULL, NULL, "1"},
        {"n1:1 n2:4", 6, NULL, NULL, "6"},
        {"n1:1", 1, NULL, NULL, "1"},
        {"n1:2", 7, NULL, NULL, "3"},
        {"n1:4", 2, NULL, NULL, "1"},
        {"n1:2", 6, "OMP_NUM_THREADS=5", NULL, "5"},
        {"n1:2", 6, NULL, "OMP_NUM_THREADS=4", "4"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *user[] = {(char *)(uintptr_t)cases[i].user, NULL},
             *added[] = {(char *)(uintptr_t)cases[i].added, NULL};
        const struct world_place place = {.cpus = cases[i].cpus, .added = added};
        struct world *world = make_world(cases[i].nodes);
        char **env = world_environment(world, &place, user, NULL);

        assert_value(env, "OMP_NUM_THREADS", cases[i].expected);
        strings_free(env);
        world_destroy(world);
    }
}

/* What does not apply is left out, and an older value does not take its place. */
static void test_place_without(void **state)
{
    struct world *world = make_world("n1:1");
    struct world_place place = {.job_id = "12", .incarnation = "12.0"};
    char *user[] = {"ELASTIC_LIB=/old", "ELASTIC_CHECKPOINT_DIR=/old",
                    "TORCHELASTIC_ERROR_FILE=/old", "ELASTIC_SCALE_CONFIGS={}", NULL};
    char **env = world_environment(world, &place, user, NULL);

    (void)state;
    assert_value(env, "ELASTIC_LIB", NULL);
    assert_value(env, "ELASTIC_CHECKPOINT_DIR", NULL);
    assert_value(env, "TORCHELASTIC_ERROR_FILE", NULL);
    assert_value(env, "ELASTIC_SCALE_CONFIG", "{}");
    assert_value(env, "ELASTIC_SCALE_CONFIGS", NULL);
    strings_free(env);
    world_destroy(world);
}

/* What others add gives way to what the user and the world say, and the user's own of a
 * launcher's names is gone before. */
static void test_added(void **state)
{
    struct world *world = make_world("n1:1");
    char *added[] = {"PMIX_RANK=0", "OMPI_MCA_a=ours", "OMPI_MCA_b=ours", "RANK=9", NULL};
    struct world_place place = {.job_id = "12", .incarnation = "12.0", .added = added};
    char *user[] = {"PMIX_RANK=7", "PMIX_NAMESPACE=other", "OMPI_MCA_b=theirs", NULL};
    char **env = world_environment(world, &place, user, NULL);

    (void)state;
    assert_value(env, "PMIX_RANK", "0");
    assert_value(env, "PMIX_NAMESPACE", NULL);
    assert_value(env, "OMPI_MCA_a", "ours");
    assert_value(env, "OMPI_MCA_b", "theirs");
    assert_value(env, "RANK", "0");
    assert_value(env, "SLURM_STEP_ID", "0");
    strings_free(env);
    world_destroy(world);
}

/* A large environment, as users' modules make them. */
static void test_many_variables(void **state)
{
    enum { MANY = 5000 };
    char **user = calloc(MANY + 1, sizeof(*user)), **env;

    (void)state;
    for (int i = 0; i < MANY; i++)
        assert_true(asprintf(&user[i], "V%d=%d", i, i) > 0);
    env = environment_of("n1:1", 0, 0, user, NULL);
    assert_value(env, "V0", "0");
    assert_value(env, "V4999", "4999");
    assert_value(env, "RANK", "0");
    strings_free(env);
    strings_free(user);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* The same names and workers in the same order. */
static void assert_same_nodes(const struct world *a, const struct world *b)
{
    assert_int_equal(a->node_count, b->node_count);
    for (int i = 0; i < a->node_count; i++) {
        assert_string_equal(a->nodes[i].name, b->nodes[i].name);
        assert_int_equal(a->nodes[i].slots, b->nodes[i].slots);
    }
}

static void assert_unfolds(const struct world *world, bool suffixes)
{
    char *names = world_fold_names(world, suffixes), *slots = world_fold_slots(world);
    struct error err = {""};
    struct world *back = world_unfold(7, names, slots, &err);

    assert_string_equal(err.text, "");
    assert_non_null(back);
    assert_int_equal(back->generation, 7);
    assert_same_nodes(world, back);
    world_destroy(back);
    free(names);
    free(slots);
}

static void test_fold(void **state)
{
    static const struct {
        const char *nodes, *list;
    } cases[] = {
        {"n1-ib:1 n2-ib:1 n7-ib:1", "n[1-2,7]-ib"},
        {"n1-ib0:1 n1-ib1:1 n2-ib0:1", "n1-ib[0-1],n2-ib0"},
        {"r1n09.a.org:1 r1n10.a.org:1 r2n1.a.org:1 r2n2.a.org:1",
         "r1n[09-10].a.org,r2n[1-2].a.org"},
        {"login:1 gpu1:1 gpu2:1 cpu1:1", "login,gpu[1-2],cpu1"},
        {"n:1 n1:1 n2:1 nx:1", "n,n[1-2],nx"},
        {"a1b:1 a2c:1", "a1b,a2c"},
        {"n1:1 n1:1", "n[1,1]"},
        {"n999999999:1 n1000000000:1", "n999999999,n1000000000"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct world *world = make_world(cases[i].nodes);
        char *names = world_fold_names(world, true);

        assert_string_equal(names, cases[i].list);
        assert_unfolds(world, true);
        assert_unfolds(world, false);
        free(names);
        world_destroy(world);
    }
}

static int below(unsigned *seed, int limit)
{
    return (int)((unsigned)rand_r(seed) % (unsigned)limit);
}

/* Worlds of names that are like each other in many ways. */
static void test_fold_random(void **state)
{
    static const char *const prefixes[] = {"n", "n0", "node-", "r1n", "", "a.b", "n1x"};
    static const char *const suffixes[] = {"", "", "", "-ib", "x", ".org", "-0"};
    unsigned seed = 1;

    (void)state;
    for (int round = 0; round < 3000; round++) {
        struct world *world = world_create(1, 1 + below(&seed, 40));
        int prefix = 0, suffix = 0, number = 0, width = 1, slots = 1;

        for (int i = 0; i < world->node_count; i++) {
            char name[64];

            if (i == 0 || below(&seed, 8) == 0) {
                prefix = below(&seed, COUNT(prefixes));
                suffix = below(&seed, COUNT(suffixes));
            }
            if (below(&seed, 6) == 0)
                number = below(&seed, 120);
            if (below(&seed, 12) == 0)
                width = 1 + below(&seed, 10);
            if (below(&seed, 4) == 0)
                slots = 1 + below(&seed, WORLD_SLOTS_MAX);
            snprintf(name, sizeof(name), "%s%0*d%s", prefixes[prefix], width, number++,
                     suffixes[suffix]);
            assert_int_equal(world_set_node(world, i, name, slots), 0);
        }
        assert_unfolds(world, true);
        assert_unfolds(world, false);
        world_destroy(world);
    }
}

/* What a world of many nodes takes does not grow with them. */
static void test_fold_many(void **state)
{
    struct world *world = world_create(1, 65533);
    char *names, *slots;

    (void)state;
    for (int i = 0; i < world->node_count; i++) {
        char name[16];

        snprintf(name, sizeof(name), "n%d", i + 1);
        world_set_node(world, i, name, 8);
    }
    names = world_fold_names(world, true);
    slots = world_fold_slots(world);
    assert_string_equal(names, "n[1-65533]");
    assert_string_equal(slots, "8(x65533)");
    assert_unfolds(world, true);
    free(names);
    free(slots);
    world_destroy(world);
}

/* A text of n characters c, then the rest. */
static char *text_of(char c, int n, const char *rest)
{
    char *text = malloc((size_t)n + strlen(rest) + 1);

    memset(text, c, (size_t)n);
    strcpy(text + n, rest);
    return text;
}

static void test_unfold_refused(void **state)
{
#define LIST "nodes: a list as Slurm writes it is expected, got "
#define NAME "nodes: a name of [A-Za-z0-9._-] is expected, got "
    static const struct {
        const char *names, *slots, *message;
    } cases[] = {
        {"", "1", NAME},
        {",", "1", NAME ""},
        {"a,", "1", NAME ""},
        {"-a", "1", NAME "-a"},
        {"a b", "1", NAME "a b"},
        {"n[1-999999999]", "1", "nodes: more than 65533"},
        {"n[0-65533]", "1", "nodes: more than 65533"},
        {"m[1-65533],n1", "1", "nodes: more than 65533"},
        {"m[1-65000],n[1-600]", "1", "nodes: more than 65533"},
        {"n[1-2147483648]", "1", LIST "1-2147483648]"},
        {"n[00000000001]", "1", LIST "00000000001]"},
        {"n[2-1]", "1", LIST "2-1]"},
        {"n[08-9]", "1", LIST "08-9]"},
        {"n[8-010]", "1", LIST "8-010]"},
        {"n[1-]", "1", LIST "1-]"},
        {"n[-1]", "1", LIST "-1]"},
        {"n[1--2]", "1", LIST "1--2]"},
        {"n[1-2-3]", "1", LIST "1-2-3]"},
        {"n[]", "1", LIST "]"},
        {"n[1,]", "1", LIST "]"},
        {"n[,1]", "1", LIST ",1]"},
        {"n[a]", "1", LIST "a]"},
        {"n[1", "1", LIST "n[1"},
        {"n[1[2]]", "1", LIST "n[1[2]]"},
        {"n[1]]", "1", LIST "n[1]]"},
        {"n[1][2]", "1", LIST "n[1][2]"},
        {"n]", "1", LIST "n]"},
        {"n[1] ,m", "1", NAME "n1 "},
        {"-n[1]", "1", NAME "-n1"},
        {"a", "", "slots: 1 to 4096 for a node are expected, got "},
        {"a", "0", "slots: 1 to 4096 for a node are expected, got 0"},
        {"a", "4097", "slots: 1 to 4096 for a node are expected, got 4097"},
        {"a", "-1", "slots: 1 to 4096 for a node are expected, got -1"},
        {"a", "1,", "slots: 1 to 4096 for a node are expected, got "},
        {"a", "1,1", "slots: for more than the 1 nodes"},
        {"a", "1(x2)", "slots: for more than the 1 nodes"},
        {"a", "1(x0)", "slots: a list as Slurm writes it is expected, got (x0)"},
        {"a", "1(x99999)", "slots: a list as Slurm writes it is expected, got (x99999)"},
        {"a", "1(x1", "slots: a list as Slurm writes it is expected, got (x1"},
        {"a", "1 ", "slots: a list as Slurm writes it is expected, got  "},
        {"a,b", "1", "slots: for 1 of 2 nodes"},
    };
    char *longest = text_of('n', WORLD_NAME_MAX, ""), *one_more = text_of('n', 254, ""),
         *far_more = text_of('n', 70000, "[1]"), *suffix = text_of('n', WORLD_NAME_MAX - 2, "[10]"),
         *behind = text_of('[', 300, "");

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct error err = {""};

        assert_null(world_unfold(1, cases[i].names, cases[i].slots, &err));
        assert_string_equal(err.text, cases[i].message);
    }
    assert_null(world_unfold(1, one_more, "1", NULL));
    assert_null(world_unfold(1, far_more, "1", NULL));
    assert_null(world_unfold(1, behind, "1", NULL));
    for (int i = 0; i < 2; i++) {
        struct world *world = world_unfold(1, i == 0 ? longest : suffix, "1", NULL);

        assert_non_null(world);
        assert_int_equal(strlen(world->nodes[0].name), WORLD_NAME_MAX);
        world_destroy(world);
    }
    free(longest);
    free(one_more);
    free(far_more);
    free(suffix);
    free(behind);
}

static void test_json_both_ways(void **state)
{
    struct world *world = make_world("n2:2 n1:1"), *back;
    json_object *msg = world_to_json(world);
    struct error err = {""};

    (void)state;
    assert_string_equal(
        json_object_to_json_string_ext(msg, JSON_C_TO_STRING_PLAIN),
        "{\"gen\":4,\"world\":3,\"nodes\":\"n[2,1]\",\"slots\":\"2,1\","
        "\"master_addr\":\"10.0.0.1\",\"master_port\":29500,\"restarts\":3,\"kind\":\"grow\","
        "\"reason\":\"two nodes joined\"}");
    back = world_from_json(msg, &err);
    assert_string_equal(err.text, "");
    assert_non_null(back);
    assert_int_equal(back->generation, 4);
    assert_int_equal(back->node_count, 2);
    assert_string_equal(back->nodes[0].name, "n2");
    assert_int_equal(back->nodes[0].slots, 2);
    assert_string_equal(back->kind, "grow");
    assert_string_equal(back->reason, "two nodes joined");
    assert_string_equal(back->master_addr, "10.0.0.1");
    assert_int_equal(back->master_port, 29500);
    assert_int_equal(back->restarts, 3);
    json_object_put(msg);
    world_destroy(world);
    world_destroy(back);
}

#define NODES "\"nodes\":\"a\",\"slots\":\"1\""
#define HEAD  "{\"gen\":1,\"world\":1,"
#define REST                                                                                       \
    ",\"master_addr\":\"h\",\"master_port\":1,\"restarts\":0,\"kind\":\"k\",\"reason\":\"r\"}"

static void test_json_refused(void **state)
{
    static const struct {
        const char *text, *message; /* "": accepted */
    } cases[] = {
        {HEAD NODES REST, ""},
        {HEAD NODES ",\"master_addr\":\"fe80::1%eth0\",\"master_port\":1,\"restarts\":0,\"kind\":"
                    "\"k\",\"reason\":\"r\"}",
         ""},
        {"[]", "gen: a number of 0 or more is expected"},
        {"{\"gen\":-1," NODES REST, "gen: a number of 0 or more is expected"},
        {"{\"gen\":\"1\"," NODES REST, "gen: a number of 0 or more is expected"},
        {"{\"gen\":1,\"world\":2," NODES REST, "world: 1 is expected, the sum of the nodes' slots"},
        {"{\"gen\":1," NODES REST, "world: 1 is expected, the sum of the nodes' slots"},
        {HEAD "\"nodes\":[],\"slots\":\"1\"" REST, "nodes and slots: texts are expected"},
        {HEAD "\"nodes\":\"a\",\"slots\":1" REST, "nodes and slots: texts are expected"},
        {HEAD "\"nodes\":\"a\"" REST, "nodes and slots: texts are expected"},
        {HEAD "\"nodes\":\"a\\u0000b\",\"slots\":\"1\"" REST,
         "nodes and slots: texts are expected"},
        {HEAD "\"nodes\":\"a'b\",\"slots\":\"1\"" REST, NAME "a'b"},
        {HEAD "\"nodes\":\"n[1-999999999]\",\"slots\":\"1\"" REST, "nodes: more than 65533"},
        {"{\"gen\":1,\"world\":2,\"nodes\":\"a,a\",\"slots\":\"1(x2)\"" REST,
         "node a is listed twice"},
        {HEAD NODES ",\"master_addr\":\"a "
                    "b\",\"master_port\":1,\"restarts\":0,\"kind\":\"k\",\"reason\":\"r\"}",
         "master_addr: a host name or address is expected"},
        {HEAD NODES ",\"master_addr\":\"h\",\"master_port\":-1,\"restarts\":0,\"kind\":\"k\","
                    "\"reason\":\"r\"}",
         "master_port: a number of 0 to 65535 is expected"},
        {HEAD NODES ",\"master_addr\":\"h\",\"master_port\":65536,\"restarts\":0,\"kind\":\"k\","
                    "\"reason\":\"r\"}",
         "master_port: a number of 0 to 65535 is expected"},
        {HEAD NODES ",\"master_addr\":\"h\",\"master_port\":1,\"restarts\":-1,\"kind\":\"k\","
                    "\"reason\":\"r\"}",
         "restarts: a number of 0 to 1000000 is expected"},
        {HEAD NODES
         ",\"master_addr\":\"h\",\"master_port\":1,\"restarts\":0,\"kind\":7,\"reason\":\"r\"}",
         "kind and reason: texts are expected"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        json_object *msg = json_tokener_parse(cases[i].text);
        struct error err = {""};
        struct world *world;

        assert_non_null(msg);
        world = world_from_json(msg, &err);
        assert_string_equal(err.text, cases[i].message);
        assert_true((world != NULL) == (cases[i].message[0] == '\0'));
        world_destroy(world);
        json_object_put(msg);
    }
}

/* A reason is shown to users, and given to workers, as one line. */
static void test_reason_is_one_line(void **state)
{
    json_object *msg = json_tokener_parse(
        HEAD NODES ",\"master_addr\":\"h\",\"master_port\":1,\"restarts\":0,\"kind\":\"k\","
                   "\"reason\":\"a\\nb\\u001b[1m \xc3\xa9\"}");
    struct world *world = world_from_json(msg, NULL);

    (void)state;
    assert_string_equal(world->reason, "a b [1m \xc3\xa9");
    world_destroy(world);
    json_object_put(msg);
}

static void test_generation_json(void **state)
{
    struct world *world = make_world("n2:2 n1:1");
    char *text = world_generation_json(world, "12.0", 1700000000.25);
    json_object *obj = json_tokener_parse(text);

    (void)state;
    assert_non_null(obj);
    assert_string_equal(
        json_object_to_json_string_ext(obj, JSON_C_TO_STRING_PLAIN),
        "{\"generation\":4,\"incarnation\":\"12.0\",\"time\":1700000000.250,\"kind\":\"grow\","
        "\"reason\":\"two nodes joined\",\"nodes\":[{\"name\":\"n2\",\"slots\":2},"
        "{\"name\":\"n1\",\"slots\":1}],\"world_size\":3,\"master_addr\":\"10.0.0.1\",\"master_"
        "port\":29500}");
    assert_int_equal(text[strlen(text) - 1], '\n');
    json_object_put(obj);
    free(text);
    world_destroy(world);
}

/* ---- host files ------------------------------------------------------------------------------ */

static void test_host_files(void **state)
{
    struct world *world = make_world("n2:2 n10:1 n1:4");
    char *openmpi = world_hostfile_openmpi(world), *mpich = world_hostfile_mpich(world);

    (void)state;
    assert_string_equal(openmpi, "n1 slots=4\nn10 slots=1\nn2 slots=2\n");
    assert_string_equal(mpich, "n1:4\nn10:1\nn2:2\n");
    free(openmpi);
    free(mpich);
    world_destroy(world);
}

/* What Horovod does: run it. */
static void test_discover_hosts(void **state)
{
    struct world *world = make_world("n2:2 n10.site_a-b:1 n1:4");
    char *text = world_discover_hosts(world), path[] = "/tmp/elastic-test-XXXXXX", out[256] = "";
    int fd = mkstemp(path);
    FILE *pipe;
    size_t got;

    (void)state;
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, 0700), 0);
    close(fd);
    pipe = popen(path, "re");
    got = fread(out, 1, sizeof(out) - 1, pipe);
    assert_int_equal(pclose(pipe), 0);
    out[got] = '\0';
    assert_string_equal(out, "n1:4\nn10.site_a-b:1\nn2:2\n");
    unlink(path);
    free(text);
    world_destroy(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_names_of_nodes),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_what_a_container_binds),
        cmocka_unit_test(test_ranks_in_environment),
        cmocka_unit_test(test_units_in_environment),
        cmocka_unit_test(test_units_in_messages),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_user_environment),
        cmocka_unit_test(test_omp_threads),
        cmocka_unit_test(test_place_without),
        cmocka_unit_test(test_added),
        cmocka_unit_test(test_many_variables),
        cmocka_unit_test(test_fold),
        cmocka_unit_test(test_fold_random),
        cmocka_unit_test(test_fold_many),
        cmocka_unit_test(test_unfold_refused),
        cmocka_unit_test(test_json_both_ways),
        cmocka_unit_test(test_json_refused),
        cmocka_unit_test(test_reason_is_one_line),
        cmocka_unit_test(test_generation_json),
        cmocka_unit_test(test_host_files),
        cmocka_unit_test(test_discover_hosts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/admission of jobs with roles: which are let in, and how large their extensions may be. */
#include "lib/admission.h"
#include "lib/roles.h"
#include "tests/unit/support.h"

#define OPTION "_SLURM_SPANK_OPTION_elastic_elastic_roles=/home/a/rl.yaml"
#define EXTEND "_SLURM_SPANK_OPTION_elastic_elastic_extend=12"
#define POOL   "_SLURM_SPANK_OPTION_elastic_elastic_pool="
#define TEXT   ROLES_VARIABLE "="
#define NODES  ROLES_NODES_VARIABLE "="
#define LEADER "\"a\":{\"leads\":true,\"run\":[\"a\"]}"
/* A job file with more roles, ",\"b\":{...}". */
#define ROLES(more) TEXT "{\"roles\":{" LEADER more "}}"
#define B(keys)     ",\"b\":{\"run\":[\"b\"]," keys "}"

#define ENV_MAX 6
#define NO      ADMISSION_UNSET

static const char conf_text[] = "max_nodes = 16\n"
                                "[pool spot]\npartition = low\nconstraint = spot\nmax_nodes = 5\n"
                                "[pool cpu]\npartition = thin\nqos = cheap\n";

static struct conf *parse_conf(const char *text)
{
    struct error err = {""};
    struct conf *conf = conf_parse("elastic.conf", text, strlen(text), &err);

    if (!conf)
        fail_msg("%s", err.text);
    return conf;
}

static struct admission_env env_of(const char *const entries[ENV_MAX])
{
    struct admission_env env = {.entries = (char *const *)entries};

    while (env.count < ENV_MAX && entries[env.count])
        env.count++;
    return env;
}

static struct admission_request request_of(const char *const env[ENV_MAX])
{
    return (struct admission_request){
        .env = env_of(env),
        .uid = 1000,
        .min_nodes = NO,
        .max_nodes = NO,
        .tasks = NO,
        .tasks_per_node = NO,
        .cpus_per_task = NO,
        .min_cpus = NO,
        .requeue = NO,
        .time_limit = NO,
        .time_min = NO,
        .base_left = NO,
        .partition_nodes = NO,
    };
}

static void test_what_says_that_a_job_has_roles(void **state)
{
    static const struct {
        const char *env[ENV_MAX];
        enum admission_role role;
        bool roles;
    } rows[] = {
        {{OPTION}, ADMISSION_BASE, true},
        {{"SPANK_" NODES "3"}, ADMISSION_BASE, true},
        {{TEXT "{}"}, ADMISSION_BASE, true},
        {{"ELASTIC_ROLE=a", "ELASTIC_ROLES_NODE=1"}, ADMISSION_RIGID, false},
        {{"ELASTIC_SIZES=1:2"}, ADMISSION_BASE, false},
        {{EXTEND, POOL "cpu"}, ADMISSION_EXTENSION, false},
        {{EXTEND, NODES "1"}, ADMISSION_EXTENSION, true},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct admission_env env = env_of(rows[i].env);

        assert_int_equal(admission_role(&env), rows[i].role);
        assert_int_equal(admission_has_roles(&env), rows[i].roles);
    }
}

static void test_the_max_is_that_of_the_job_file(void **state)
{
    static const struct {
        const char *env[ENV_MAX];
        int max; /* -1: said */
        const char *said;
    } rows[] = {
        {{"ELASTIC_SIZES=2:8"}, 8, NULL},
        {{"SPANK_" NODES "20", TEXT "{}"}, 20, NULL},
        {{NODES "0"}, 0, NULL},
        {{NODES "65533"}, 65533, NULL},
        {{NODES "65534"},
         -1,
         "ELASTIC_ROLES_NODES is '65534'; spank_elastic.so writes a whole "
         "number from 0 to 65533, max-nodes of the job file"},
        {{NODES "-1"}, -1, "ELASTIC_ROLES_NODES is '-1'"},
        {{OPTION}, -1, "ELASTIC_ROLES_NODES is ''"},
        {{"A=b"}, -1, "not an elastic job"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct admission_env env = env_of(rows[i].env);
        struct error err = {""};
        int max = -1, rc = admission_max(&env, &max, &err);

        assert_int_equal(rc, rows[i].max < 0 ? -1 : 0);
        assert_int_equal(max, rows[i].max);
        if (rows[i].said)
            assert_non_null(strstr(err.text, rows[i].said));
    }
}

static void test_a_base_is_as_large_as_slurm_makes_it(void **state)
{
    static const char *const env[ENV_MAX] = {
        OPTION, "SPANK_" NODES "9",
        TEXT "{\"max-nodes\":9,\"group\":\"sweep-5\",\"roles\":{" LEADER "}}",
        "ELASTIC_REQUEUE=fault", "ELASTIC_GRACE=7"};
    struct conf *conf = parse_conf(conf_text);
    struct admission_request request = request_of(env);
    struct admission_changes changes;
    struct error err = {""};

    request.tasks = request.tasks_per_node = 2;
    if (admission_base(conf, &request, &changes, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(changes.min_nodes, NO);
    assert_int_equal(changes.max_nodes, NO);
    assert_int_equal(changes.tasks, NO);
    assert_int_equal(changes.kill_on_node_fail, 0);
    assert_int_equal(changes.requeue, 1);
    assert_string_equal(changes.admin_comment, "elastic=roles group=sweep-5");
    assert_null(changes.warning);
    admission_changes_clear(&changes);
    conf_destroy(conf);
}

static void test_bad_bases_are_refused(void **state)
{
    static const struct bad_base {
        const char *env[ENV_MAX];
        const char *said; /* all of it, or its beginning */
        enum admission_refusal refusal;
        int max_nodes, partition_nodes;
        bool array;
        const char *comment;
    } rows[] = {
        {{OPTION},
         "--elastic-roles: ELASTIC_ROLES has 0 bytes; spank_elastic.so writes the job file there, "
         "with at most 65536",
         .refusal = ADMISSION_REFUSE_VALUE},
        {{TEXT "{}"},
         "--elastic-roles: ELASTIC_ROLES_NODES is ''; ",
         .refusal = ADMISSION_REFUSE_VALUE},
        {{NODES "0", TEXT "roles:"},
         "--elastic-roles: ELASTIC_ROLES: ",
         .refusal = ADMISSION_REFUSE_VALUE},
        {{NODES "0", TEXT "{\"roles\":{}}"},
         "--elastic-roles: ELASTIC_ROLES: ",
         .refusal = ADMISSION_REFUSE_VALUE},
        {{NODES "3", ROLES("")},
         "--elastic-roles: ELASTIC_ROLES_NODES is 3, and max-nodes of ELASTIC_ROLES is 0; both "
         "have to be the same",
         .refusal = ADMISSION_REFUSE_VALUE},
        {{NODES "17", TEXT "{\"max-nodes\":17,\"roles\":{" LEADER "}}"},
         "--elastic-roles: max-nodes: 17 is larger than the 16 nodes that this site allows an "
         "elastic job (max_nodes in elastic.conf)",
         .refusal = ADMISSION_REFUSE_VALUE},
        {{NODES "0", ROLES(B("\"base\":\"moon\""))},
         "--elastic-roles: roles.b.base: 'moon' is no pool; pools of this site: spot, cpu",
         .refusal = ADMISSION_REFUSE_VALUE},
        {{NODES "0", ROLES(B("\"pool\":[\"spot\",\"moon\"]"))},
         "--elastic-roles: roles.b.pool: 'moon' is no pool; pools of this site: spot, cpu",
         .refusal = ADMISSION_REFUSE_VALUE},
        {{NODES "0", ROLES(""), "ELASTIC_SIZES=1:2"},
         "--elastic does not go together with --elastic-roles: the job file says how many replicas "
         "there are; leave one of them out",
         .refusal = ADMISSION_REFUSE_VALUE},
        {{NODES "0", ROLES(""), "ELASTIC_GRACE=x"},
         "--elastic-grace=x: ",
         .refusal = ADMISSION_REFUSE_VALUE},
        {{NODES "0", ROLES(""), "ELASTIC_POOL=moon"},
         "--elastic-pool=moon: unknown pool",
         .refusal = ADMISSION_REFUSE_VALUE},
        {{NODES "0", ROLES("")},
         "--elastic-roles does not work with --array; submit the tasks of the array as jobs",
         .refusal = ADMISSION_REFUSE_KIND,
         .array = true},
        {{NODES "0", ROLES("")},
         "the comment 'elastic-extension-of=1.0' is that of an extension job",
         .refusal = ADMISSION_REFUSE_KIND,
         .comment = "elastic-extension-of=1.0"},
        /* Nodes of the partition have 8 CPUs and 1000 MiB. */
        {{NODES "0", ROLES(B("\"cpus\":9"))},
         "--elastic-roles: b needs 9 CPUs on a node, those of batch have 8",
         .refusal = ADMISSION_REFUSE_NODES},
        {{NODES "0", ROLES(B("\"memory\":\"2G\",\"cpus\":1"))},
         "--elastic-roles: b needs 2048 MiB of memory on a node, those of batch have 1000 MiB",
         .refusal = ADMISSION_REFUSE_NODES},
        {{NODES "0", ROLES(B("\"replicas\":\"16:20\""))},
         "--elastic-roles: the replicas that the job guarantees need 17 CPUs, and its base can "
         "have 2 nodes of batch with at most 8 each; guarantee fewer, or ask for more nodes "
         "(--nodes)",
         .refusal = ADMISSION_REFUSE_NODES,
         .max_nodes = 2},
        {{NODES "0", ROLES(B("\"replicas\":3,\"memory\":\"500M\""))},
         "--elastic-roles: the replicas that the job guarantees need 1500 MiB of memory, and its "
         "base can have 1 node of batch with at most 1000 each; ",
         .refusal = ADMISSION_REFUSE_NODES,
         .partition_nodes = 1},
    };
    struct conf *conf = parse_conf(conf_text);

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct admission_request request = request_of(rows[i].env);
        struct admission_changes changes;
        struct error err = {""};

        request.partitions = "batch";
        request.partition_node = (struct slots_size){.cpus = 8, .memory = 1000};
        request.array = rows[i].array;
        request.comment = rows[i].comment;
        if (rows[i].max_nodes)
            request.max_nodes = rows[i].max_nodes;
        if (rows[i].partition_nodes)
            request.partition_nodes = rows[i].partition_nodes;
        assert_int_equal(admission_base(conf, &request, &changes, &err), -1);
        if (strncmp(err.text, rows[i].said, strlen(rows[i].said)) != 0)
            fail_msg("row %zu: '%s'", i, err.text);
        assert_int_equal(changes.refusal, rows[i].refusal);
    }
    conf_destroy(conf);
}

/* What may work is let in; a word is said where it looks like a mistake. */
static void test_bases_that_may_hold_what_is_guaranteed(void **state)
{
    static const struct {
        const char *env[ENV_MAX];
        int min_nodes, max_nodes, tasks, per_node, cpus_per_task, min_cpus;
        int node_cpus; /* of the partition */
        bool whole;
        const char *warning; /* its end */
    } rows[] = {
        {{NODES "0", ROLES("")}, NO, NO, NO, NO, NO, NO, 8, false, NULL},
        {{NODES "0", ROLES(B("\"replicas\":\"1:9\""))},
         NO,
         NO,
         NO,
         NO,
         NO,
         NO,
         8,
         false,
         "warning: the job asks for 1 CPU, and the replicas that it guarantees need 2: some of "
         "them may wait for ever; `selastic plan FILE --partition=P` prints options that are "
         "enough"},
        {{NODES "0", ROLES(B("\"replicas\":3"))}, 2, 2, 2, NO, NO, 3, 8, false, "need 4: "},
        {{NODES "0", ROLES(B("\"replicas\":3"))}, 2, 2, 2, NO, NO, 4, 8, false, NULL},
        {{NODES "0", ROLES(B("\"replicas\":3"))}, 2, 2, NO, 2, NO, NO, 8, false, NULL},
        {{NODES "0", ROLES(B("\"replicas\":3"))}, NO, NO, NO, NO, 4, NO, 8, false, NULL},
        {{NODES "0", ROLES(B("\"replicas\":3"))}, NO, NO, 4, NO, NO, NO, 8, false, NULL},
        {{NODES "0", ROLES(B("\"replicas\":3"))}, NO, NO, NO, NO, NO, NO, 8, true, NULL},
        {{NODES "0", ROLES(B("\"replicas\":15"))}, 2, 2, NO, NO, NO, NO, 8, true, NULL},
        /* Nothing is known of the nodes. */
        {{NODES "0", ROLES(B("\"cpus\":99"))}, NO, NO, NO, NO, 100, NO, 0, false, NULL},
        {{NODES "0", ROLES(B("\"replicas\":9999,\"memory\":\"1024T\""))},
         NO,
         NO,
         NO,
         NO,
         NO,
         10000,
         0,
         false,
         NULL},
        /* Nor of their memory alone. */
        {{NODES "0", ROLES(B("\"memory\":\"1024T\",\"replicas\":3"))},
         NO,
         NO,
         NO,
         NO,
         4,
         NO,
         8,
         false,
         NULL},
        /* What is not guaranteed, or may be in a pool. */
        {{NODES "0", ROLES(B("\"replicas\":\"0:9\",\"cpus\":99"))},
         NO,
         NO,
         NO,
         NO,
         NO,
         NO,
         8,
         false,
         NULL},
        {{NODES "0", ROLES(B("\"cpus\":99,\"base\":\"cpu\""))},
         NO,
         NO,
         NO,
         NO,
         NO,
         NO,
         8,
         false,
         NULL},
        /* slurmctld does not say which GPUs there are. */
        {{NODES "0", ROLES(B("\"gpus\":99"))}, NO, NO, NO, NO, 2, NO, 8, false, NULL},
    };
    struct conf *conf = parse_conf(conf_text);

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct admission_request request = request_of(rows[i].env);
        struct admission_changes changes;
        struct error err = {""};

        request.partitions = "batch";
        request.partition_node = (struct slots_size){.cpus = rows[i].node_cpus};
        request.min_nodes = rows[i].min_nodes;
        request.max_nodes = rows[i].max_nodes;
        request.tasks = rows[i].tasks;
        request.tasks_per_node = rows[i].per_node;
        request.cpus_per_task = rows[i].cpus_per_task;
        request.min_cpus = rows[i].min_cpus;
        request.whole_nodes = rows[i].whole;
        if (admission_base(conf, &request, &changes, &err) < 0)
            fail_msg("row %zu: %s", i, err.text);
        if (rows[i].warning ? !changes.warning || !strstr(changes.warning, rows[i].warning)
                            : changes.warning != NULL)
            fail_msg("row %zu: '%s'", i, changes.warning ? changes.warning : "(none)");
        admission_changes_clear(&changes);
    }
    conf_destroy(conf);
}

static void test_a_warning_comes_after_that_of_the_policy(void **state)
{
    static const char *const env[ENV_MAX] = {NODES "0", ROLES(B("\"cpus\":3")), "ELASTIC_WAKE=yes"};
    struct conf *conf = parse_conf(conf_text);
    struct admission_request request = request_of(env);
    struct admission_changes changes;
    struct error err = {""};

    assert_int_equal(admission_base(conf, &request, &changes, &err), 0);
    assert_non_null(strstr(changes.warning, "warning: --elastic-wake=yes has no effect: no pool of "
                                            "the job has wake = yes; the job asks for 1 CPU, "));
    admission_changes_clear(&changes);
    conf_destroy(conf);
}

/* ---- extensions ------------------------------------------------------------------------------ */

static void test_so_many_nodes_may_an_extension_get(void **state)
{
    static const struct {
        int min, max, tasks, most;
    } rows[] = {
        {NO, NO, NO, 1}, {NO, NO, 8, 8}, {1, 0, 8, 8}, {2, 4, 8, 4}, {2, 2, 1, 2},
        {3, 0, 2, 3},    {2, 2, 16, 2},  {0, 0, 0, 1}, {5, 4, 1, 5}, {1, NO, -2, 1},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        assert_int_equal(admission_most_nodes(rows[i].min, rows[i].max, rows[i].tasks),
                         rows[i].most);
}

/* The base has 2 nodes. */
static struct admission_job base_with(const char *const env[ENV_MAX])
{
    return (struct admission_job){
        .id = 12,
        .uid = 1000,
        .known = true,
        .running = true,
        .role = env_of(env).count > 0 ? ADMISSION_BASE : ADMISSION_RIGID,
        .env = env_of(env),
        .name = "rl",
        .nodes = "n[1-2]",
        .features = "a100",
        .node_count = 2,
        .minutes_left = 90,
    };
}

static void test_an_extension_of_a_role_has_its_own_resources(void **state)
{
    static const char *const env[ENV_MAX] = {EXTEND, POOL "cpu"};
    static const char *const base_env[ENV_MAX] = {NODES "0", ROLES("")};
    struct conf *conf = parse_conf("[pool spot]\nconstraint = spot\n"
                                   "[pool cpu]\npartition = thin\nqos = cheap\n");
    struct admission_request request = request_of(env);
    struct admission_job base = base_with(base_env);
    struct admission_siblings siblings = {.node_count = 4, .nodes = "n[5-6]"};
    struct admission_changes changes;
    struct error err = {""};

    request.comment = "elastic-extension-of=12.0";
    request.tasks = 8;
    request.features = "thin";
    if (admission_extension(conf, &request, &base, &siblings, &changes, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(changes.partition, "thin");
    assert_string_equal(changes.qos, "cheap");
    assert_null(changes.name); /* the leader has named it after the role */
    /* Not those of the base's nodes; and what is left of them may be used. */
    assert_null(changes.features);
    assert_null(changes.excluded);
    assert_int_equal(changes.min_nodes, NO);
    assert_int_equal(changes.max_nodes, NO);
    assert_int_equal(changes.counted, 8);
    assert_false(changes.few_nodes);
    assert_int_equal(changes.requeue, 0);
    assert_int_equal(changes.time_limit, 90);
    admission_changes_clear(&changes);

    request.env = env_of((const char *const[ENV_MAX]){EXTEND, POOL "spot"});
    assert_int_equal(admission_extension(conf, &request, &base, &siblings, &changes, &err), 0);
    assert_string_equal(changes.features, "spot");
    admission_changes_clear(&changes);
    conf_destroy(conf);
}

#define TOO_MANY(nodes, has)                                                                       \
    nodes " more nodes are too many; job 12 has 2, its extensions have or wait for " has

static void test_the_limits_hold_for_nodes_that_nobody_knows_yet(void **state)
{
    static const char site[] = "max_nodes = 10\n[pool small]\nmax_nodes = 3\n[pool large]\n";
    static const char open[] = "[pool small]\nmax_nodes = 3\n[pool large]\n";
    static const struct {
        const char *conf, *base[ENV_MAX], *pool;
        int min_nodes, max_nodes, tasks;
        int64_t siblings, in_pool;
        int least, most, counted; /* that it is held to */
        const char *said;
    } rows[] = {
        /* No limit; that of the job file; that of the site. */
        {open, {NODES "0"}, POOL "large", NO, NO, 80, 90, 90, NO, NO, 80, NULL},
        {open, {NODES "6"}, POOL "large", NO, NO, 4, 0, 0, 1, 4, 4, NULL},
        {open, {NODES "6"}, POOL "large", NO, NO, 5, 0, 0, 1, 4, 4, NULL},
        {open, {NODES "6"}, POOL "large", NO, NO, 5, 3, 3, 1, 1, 1, NULL},
        {open,
         {NODES "6"},
         POOL "large",
         NO,
         NO,
         5,
         4,
         4,
         0,
         0,
         0,
         TOO_MANY("1", "4, and its MAX is 6")},
        {site, {NODES "0"}, POOL "large", NO, NO, 9, 0, 0, 1, 8, 8, NULL},
        {site,
         {NODES "0"},
         POOL "large",
         NO,
         NO,
         1,
         8,
         8,
         0,
         0,
         0,
         TOO_MANY("1", "8, and its MAX is 10")},
        {site, {NODES "6"}, POOL "large", NO, NO, 9, 0, 0, 1, 4, 4, NULL},
        /* Nodes that the extension names. */
        {open, {NODES "6"}, POOL "large", 2, 3, 8, 0, 0, 2, 3, 3, NULL},
        {open, {NODES "6"}, POOL "large", 2, 3, 8, 2, 2, 2, 2, 2, NULL},
        {open,
         {NODES "6"},
         POOL "large",
         2,
         NO,
         8,
         3,
         3,
         0,
         0,
         0,
         TOO_MANY("2", "3, and its MAX is 6")},
        {open, {NODES "6"}, POOL "large", 2, 2, NO, 0, 0, 2, 2, 2, NULL},
        /* Of the pool. */
        {open, {NODES "0"}, POOL "small", NO, NO, 8, 1, 1, 1, 2, 2, NULL},
        {open, {NODES "0"}, POOL "small", NO, NO, 2, 9, 1, 1, 2, 2, NULL},
        {open, {NODES "4"}, POOL "small", NO, NO, 8, 1, 0, 1, 1, 1, NULL},
        {open,
         {NODES "0"},
         POOL "small",
         NO,
         NO,
         8,
         3,
         3,
         0,
         0,
         0,
         "1 more nodes are too many; job 12 has or waits for 3 of pool small, and max_nodes of "
         "this pool is 3"},
        /* A MAX that nobody can read. */
        {open,
         {NODES "x"},
         POOL "large",
         NO,
         NO,
         8,
         0,
         0,
         0,
         0,
         0,
         "job 12: ELASTIC_ROLES_NODES is 'x'"},
        /* srun elasticrun --roles in a job that Slurm does not know as elastic. */
        {open, {NULL}, NULL, NO, NO, 8, 0, 0, NO, NO, NO, NULL},
        {site, {NULL}, NULL, NO, NO, 8, 0, 0, 1, 8, 8, NULL},
        {site, {NULL}, NULL, NO, NO, 9, 1, 0, 1, 7, 7, NULL},
        {site,
         {NULL},
         NULL,
         NO,
         NO,
         9,
         8,
         0,
         0,
         0,
         0,
         TOO_MANY("1", "8, and max_nodes of the site is 10")},
        {site, {NULL}, NULL, 2, 3, 9, 0, 0, 0, 0, 0, "--nodes=2-3; an extension needs a fixed"},
        /* A job with sizes has extensions of whole nodes. */
        {open, {"ELASTIC_SIZES=2:8"}, POOL "large", NO, NO, 8, 0, 0, 1, 1, 1, NULL},
        {open, {"ELASTIC_SIZES=2:8"}, POOL "large", 1, 4, 8, 0, 0, 0, 0, 0, "--nodes=1-4; an ext"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *env[ENV_MAX] = {rows[i].base[0] ? EXTEND : NULL, rows[i].pool};
        struct conf *conf = parse_conf(rows[i].conf);
        struct admission_request request = request_of(env);
        struct admission_job base = base_with(rows[i].base);
        struct admission_siblings siblings = {.node_count = rows[i].siblings,
                                              .pool_count = rows[i].in_pool};
        struct admission_changes changes;
        struct error err = {""};
        int rc;

        request.comment = "elastic-extension-of=12.0";
        request.min_nodes = rows[i].min_nodes;
        request.max_nodes = rows[i].max_nodes;
        request.tasks = rows[i].tasks;
        rc = admission_extension(conf, &request, &base, &siblings, &changes, &err);
        if (rc != (rows[i].said ? -1 : 0))
            fail_msg("row %zu: %d %s", i, rc, err.text);
        if (rows[i].said) {
            if (!strstr(err.text, rows[i].said))
                fail_msg("row %zu: %s", i, err.text);
            assert_int_equal(changes.refusal, ADMISSION_REFUSE_NODES);
        } else {
            if (changes.min_nodes != rows[i].least || changes.max_nodes != rows[i].most ||
                changes.counted != rows[i].counted)
                fail_msg("row %zu: %d-%d, %d", i, changes.min_nodes, changes.max_nodes,
                         changes.counted);
            assert_int_equal(changes.few_nodes,
                             rows[i].least != NO && !admission_env_get(&base.env, "ELASTIC_SIZES"));
            admission_changes_clear(&changes);
        }
        conf_destroy(conf);
    }
}

/* ---- updates --------------------------------------------------------------------------------- */

static void test_a_base_that_runs_keeps_its_nodes(void **state)
{
    static const struct {
        struct admission_update update;
        const char *said; /* NULL: allowed */
    } rows[] = {
        {{ADMISSION_BASE, .pending = true, .min_nodes = 3, .max_nodes = 5, .listed = NO}, NULL},
        {{ADMISSION_BASE, .min_nodes = 2, .max_nodes = 2, .listed = NO, .min = 2}, NULL},
        {{ADMISSION_BASE, .min_nodes = NO, .max_nodes = NO, .listed = NO, .min = 2}, NULL},
        {{ADMISSION_BASE, .min_nodes = 1, .max_nodes = NO, .listed = NO, .min = 2},
         "the base of a job with roles keeps its 2 nodes; use selastic scale, which changes its "
         "replicas"},
        {{ADMISSION_BASE, .min_nodes = NO, .max_nodes = NO, .listed = 1, .min = 2}, "keeps its 2"},
        {{ADMISSION_BASE, .pending = true, .min_nodes = NO, .max_nodes = NO, .listed = NO,
          .comment = "elastic-extension-of=1.0"},
         "only when it is submitted"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct admission_update update = rows[i].update;
        struct error err = {""};

        update.roles = true;
        assert_int_equal(admission_update(&update, &err), rows[i].said ? -1 : 0);
        if (rows[i].said && !strstr(err.text, rows[i].said))
            fail_msg("row %zu: '%s'", i, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_says_that_a_job_has_roles),
        cmocka_unit_test(test_the_max_is_that_of_the_job_file),
        cmocka_unit_test(test_a_base_is_as_large_as_slurm_makes_it),
        cmocka_unit_test(test_bad_bases_are_refused),
        cmocka_unit_test(test_bases_that_may_hold_what_is_guaranteed),
        cmocka_unit_test(test_a_warning_comes_after_that_of_the_policy),
        cmocka_unit_test(test_so_many_nodes_may_an_extension_get),
        cmocka_unit_test(test_an_extension_of_a_role_has_its_own_resources),
        cmocka_unit_test(test_the_limits_hold_for_nodes_that_nobody_knows_yet),
        cmocka_unit_test(test_a_base_that_runs_keeps_its_nodes),
    };

    return cmocka_run_group_tests_name("admission_roles", tests, NULL, NULL);
}

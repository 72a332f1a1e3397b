/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sbatch command line of an extension job follows its base and its pool. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/leader/extension_argv.h"
#include "agent/leader/inherit.h"
#include "agent/leader/leader_internal.h"
#include "lib/json_get.h"
#include "lib/roles.h"

static struct leader_options leader_options = {.job = 12, .restarts = 1, .state_dir = "/state"};
static char partition[] = "spot";
static char *exclude[] = {"n1", "n2", NULL};

static struct job_info base_info(void)
{
    return (struct job_info){.id = 12,
                             .name = (char *)"train",
                             .num_nodes = 2,
                             .cpus_per_node = 4,
                             .time_limit = 60,
                             .end = 1000 + 3600,
                             .exclusive = false};
}

static bool has(char **argv, const char *word)
{
    for (char **arg = argv; *arg != NULL; arg++)
        if (strcmp(*arg, word) == 0)
            return true;
    return false;
}

static bool has_prefix(char **argv, const char *word)
{
    for (char **arg = argv; *arg != NULL; arg++)
        if (strncmp(*arg, word, strlen(word)) == 0)
            return true;
    return false;
}

static void test_plain(void **state)
{
    struct pool pool = {.name = "spot", .partition = partition, .time_min = 15};
    struct job_info base = base_info();
    char **argv = extension_argv(&leader_options, &base,
                                 &(struct extension_request){.pool = &pool,
                                                             .nodes = 2,
                                                             .delay = 0,
                                                             .most = UINT32_MAX,
                                                             .used = exclude,
                                                             .avoid = NULL},
                                 1000);

    (void)state;
    assert_non_null(argv);
    assert_string_equal(argv[0], "sbatch");
    assert_true(has(argv, "--parsable"));
    assert_true(has(argv, "--nodes=2"));
    assert_true(has(argv, "--partition=spot"));
    assert_true(has(argv, "--comment=elastic-extension-of=12.1"));
    assert_true(has(argv, "--exclude=n1,n2"));
    assert_true(has(argv, "--time=60"));
    assert_false(has_prefix(argv, "--time-min")); /* backfill would give it no more than that */
    assert_true(has(argv, "--cpus-per-task=4"));
    assert_false(has_prefix(argv, "--begin"));
    assert_true(has(argv, "--output=/dev/null")); /* the state directory may be gone */
    assert_false(has(argv, "--exclusive"));
    assert_false(has_prefix(argv, "--qos"));
    strings_free(argv);
}

static void test_everything_of_the_base(void **state)
{
    struct pool pool = {.name = "spot",
                        .partition = partition,
                        .qos = (char *)"cheap",
                        .constraint = (char *)"ib",
                        .time_min = 15};
    struct job_info base = base_info();
    char **argv;

    (void)state;
    base.exclusive = true;
    base.features = (char *)"a100|h100";
    base.account = (char *)"ml";
    base.reservation = (char *)"maint";
    base.request.gres_per_node = (char *)"gpu:2";
    base.request.mem_per_node = 4096;
    argv = extension_argv(&leader_options, &base,
                          &(struct extension_request){.pool = &pool,
                                                      .nodes = 1,
                                                      .delay = 4.2,
                                                      .most = UINT32_MAX,
                                                      .used = exclude,
                                                      .avoid = NULL},
                          1000 + 3600 - 600);
    assert_non_null(argv);
    assert_true(has(argv, "--qos=cheap"));
    assert_true(has(argv, "--constraint=(a100|h100)&(ib)"));
    assert_true(has(argv, "--account=ml"));
    assert_true(has(argv, "--reservation=maint"));
    assert_true(has(argv, "--gres=gpu:2"));
    assert_true(has(argv, "--mem=4096M"));
    assert_true(has(argv, "--exclusive"));
    assert_false(has_prefix(argv, "--cpus-per-task"));
    assert_false(has_prefix(argv, "--exclude=")); /* whole nodes cannot be shared anyway */
    strings_free(argv);
    argv = extension_argv(&leader_options, &base,
                          &(struct extension_request){.pool = &pool,
                                                      .nodes = 1,
                                                      .delay = 4.2,
                                                      .most = UINT32_MAX,
                                                      .used = exclude,
                                                      .avoid = "n7,n8"},
                          1000 + 3600 - 600);
    assert_true(has(argv, "--exclude=n7,n8")); /* … but these are to be left out */
    assert_true(has(argv, "--begin=now+5"));
    assert_true(has(argv, "--time=10")); /* the base's remainder */
    strings_free(argv);
}

static void test_unlimited(void **state)
{
    struct pool pool = {.name = "spot", .partition = partition, .time_min = 15};
    struct job_info base = base_info();
    char **argv;

    (void)state;
    base.time_limit = UINT32_MAX;
    argv = extension_argv(
        &leader_options, &base,
        &(struct extension_request){
            .pool = &pool, .nodes = 1, .delay = 0, .most = UINT32_MAX, .used = NULL, .avoid = NULL},
        1000);
    assert_non_null(argv);
    assert_false(has_prefix(argv, "--time"));
    strings_free(argv);
}

static void test_no_longer_than_the_pool_allows(void **state)
{
    static const struct {
        uint32_t limit, most;
        int left; /* minutes */
        const char *time;
    } table[] = {
        {60, UINT32_MAX, 60, "--time=60"}, {60, 30, 60, "--time=30"},
        {60, 30, 10, "--time=10"},         {60, 30, 0, "--time=30"},
        {UINT32_MAX, 30, 0, "--time=30"},  {UINT32_MAX, UINT32_MAX, 0, NULL},
    };
    struct pool pool = {.name = "spot", .partition = partition, .time_min = 15};

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct job_info base = base_info();
        char **argv;

        base.time_limit = table[i].limit;
        base.end = 1000 + 60 * table[i].left;
        argv = extension_argv(&leader_options, &base,
                              &(struct extension_request){.pool = &pool,
                                                          .nodes = 1,
                                                          .delay = 0,
                                                          .most = table[i].most,
                                                          .used = NULL,
                                                          .avoid = NULL},
                              1000);
        assert_true(table[i].time != NULL ? has(argv, table[i].time)
                                          : !has_prefix(argv, "--time="));
        strings_free(argv);
    }
}

/* Memory is always asked for, in the base's spelling: the pool's default may be another. */
static void test_memory(void **state)
{
    static const struct {
        struct job_request request;
        const char *option;
    } table[] = {
        {{.mem_per_node = 4096}, "--mem=4096M"},
        {{.mem_per_node = 0}, "--mem=0M"},
        {{.mem_per_cpu = 700}, "--mem-per-cpu=700M"},
        {{.mem_per_gpu = 900}, "--mem-per-gpu=900M"},
    };
    struct pool pool = {.name = "spot", .partition = partition, .time_min = 15};

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct job_info base = base_info();
        char **argv;
        int count = 0;

        base.request = table[i].request;
        argv = extension_argv(&leader_options, &base,
                              &(struct extension_request){.pool = &pool,
                                                          .nodes = 1,
                                                          .delay = 0,
                                                          .most = UINT32_MAX,
                                                          .used = NULL,
                                                          .avoid = NULL},
                              1000);
        for (char **arg = argv; *arg != NULL; arg++)
            count += strncmp(*arg, "--mem", 5) == 0;
        assert_int_equal(count, 1);
        assert_true(has(argv, table[i].option));
        strings_free(argv);
    }
}

/* Does an argument give this option a value, or is it the option? */
static bool has_option(char **argv, const char *name)
{
    char word[64];

    snprintf(word, sizeof(word), "--%s", name);
    if (has(argv, word))
        return true;
    strcat(word, "=");
    return has_prefix(argv, word);
}

/* Has any of these bases an extension with the option? */
static bool inherited(const struct job_info *bases, int count, const char *name)
{
    struct pool pool = {
        .name = "spot", .partition = partition, .qos = (char *)"cheap", .constraint = (char *)"ib"};
    bool found = false;

    for (int i = 0; i < count; i++) {
        char **argv = extension_argv(&leader_options, &bases[i],
                                     &(struct extension_request){.pool = &pool,
                                                                 .nodes = 1,
                                                                 .delay = 5,
                                                                 .most = UINT32_MAX,
                                                                 .used = exclude,
                                                                 .avoid = "n7"},
                                     1000);
        found = found || has_option(argv, name);
        strings_free(argv);
    }
    return found;
}

/* Each row does what it says, whatever the base has. */
static void test_table_of_options(void **state)
{
    struct job_info bases[5];

    (void)state;
    for (int i = 0; i < 5; i++)
        bases[i] = base_info();
    bases[0].exclusive = true;
    bases[0].account = bases[0].reservation = bases[0].features = bases[0].excluded = (char *)"x";
    bases[0].request = (struct job_request){.mem_per_node = 1,
                                            .tmp_disk = 1,
                                            .nice = 1,
                                            .threads_per_core = 1,
                                            .core_spec = 1,
                                            .gres_flags = "enforce-binding",
                                            .gres_per_node = (char *)"gpu:1",
                                            .prefer = (char *)"x",
                                            .wckey = (char *)"x"};
    bases[1].request.sharing = "--oversubscribe";
    bases[2].request.sharing = "--exclusive=user";
    bases[3].request.mem_per_cpu = 1;
    bases[4].request.mem_per_gpu = 1;
    for (const struct inherit_option *row = inherit_options; row->name != NULL; row++) {
        const char *name = row->as != NULL ? row->as : row->name;

        if (inherited(bases, 5, name) != (row->rule != INHERIT_NONE))
            fail_msg("--%s", row->name);
        assert_true((row->why == NULL) == (row->rule <= INHERIT_WORLD));
        for (const struct inherit_option *other = row + 1; other->name != NULL; other++)
            assert_string_not_equal(row->name, other->name);
    }
}

static bool in_table(const char *name)
{
    static const char *const no_request[] = {"help",  "parsable", "quiet",  "test-only",
                                             "usage", "verbose",  "version"};

    for (size_t i = 0; i < sizeof(no_request) / sizeof(no_request[0]); i++)
        if (strcmp(name, no_request[i]) == 0)
            return true;
    for (const struct inherit_option *row = inherit_options; row->name != NULL; row++)
        if (strcmp(name, row->name) == 0)
            return true;
    return false;
}

/* What the installed sbatch knows is in the table. It wants a slurm.conf even for its help. */
static void test_all_options_of_sbatch_are_in_the_table(void **state)
{
    char path[] = "/tmp/test_extension_argv.XXXXXX", command[128], line[512];
    int fd = mkstemp(path), count = 0;
    FILE *help;

    (void)state;
    assert_true(fd >= 0);
    assert_true(dprintf(fd, "ClusterName=x\nSlurmctldHost=localhost\n") > 0);
    close(fd);
    snprintf(command, sizeof(command), "SLURM_CONF=%s sbatch --help 2>/dev/null", path);
    help = popen(command, "r");
    assert_non_null(help);
    while (fgets(line, sizeof(line), help) != NULL) {
        const char *option = strstr(line, "--");
        char name[64];

        if (option == NULL ||
            strspn(line, " -abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ,") <
                (size_t)(option - line))
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)strspn(option + 2, "abcdefghijklmnopqrstuvwxyz-"),
                 option + 2);
        if (!in_table(name))
            fail_msg("--%s is not in the table", name);
        count++;
    }
    pclose(help);
    unlink(path);
    if (count == 0)
        skip(); /* no sbatch */
}

/* Replicas have needs of their own, and Slurm chooses their nodes. */
static void test_of_a_role(void **state)
{
    struct pool pool = {.name = "cheap", .partition = partition, .time_min = 15};
    struct role role = {.name = (char *)"collector"};
    struct extension_request request = {
        .pool = &pool,
        .most = UINT32_MAX,
        .used = exclude,
        .role = &role,
        .gang = {{.cpus = 2, .gpus = 1, .memory = 3001}, 4, 0, false},
        .replicas = 3,
        .nodes_most = 5};
    struct job_info base = base_info();
    char **argv;

    (void)state;
    base.account = (char *)"science";
    base.request.mem_per_node = 7;
    base.request.gres_per_node = (char *)"gpu:8";
    base.exclusive = true;
    argv = extension_argv(&leader_options, &base, &request, 1000);
    assert_true(has(argv, "--job-name=train+collector"));
    assert_true(has(argv, "--ntasks=12"));
    assert_true(has(argv, "--nodes=1-5"));
    assert_true(has(argv, "--cpus-per-task=2"));
    assert_true(has(argv, "--gpus-per-task=1"));
    assert_true(has(argv, "--mem-per-cpu=1501M"));
    assert_true(has(argv, "--account=science"));
    assert_false(has_prefix(argv, "--mem="));
    assert_false(has_prefix(argv, "--gres"));
    assert_false(has(argv, "--exclusive"));
    assert_false(has_prefix(argv, "--ntasks-per-node"));
    strings_free(argv);

    request.gang.per_node = 2;
    request.gang.size = (struct slots_size){.gpus = 1};
    request.nodes_most = 0;
    argv = extension_argv(&leader_options, &base, &request, 1000);
    assert_true(has(argv, "--ntasks-per-node=2"));
    strings_free(argv);
    request.gang.per_node = 8; /* replicas may share a node all the same */
    argv = extension_argv(&leader_options, &base, &request, 1000);
    assert_false(has_prefix(argv, "--ntasks-per-node"));
    assert_true(has(argv, "--cpus-per-task=1"));
    assert_false(has_prefix(argv, "--nodes"));
    assert_false(has_prefix(argv, "--mem"));
    strings_free(argv);
}

/* The plugin's own options are used only where the plugin is. */
static void test_levels(void **state)
{
    struct pool pool = {.name = "cheap", .partition = partition, .time_min = 15};
    struct job_info base = base_info();
    char **argv;

    (void)state;
    unsetenv("ELASTIC_SPANK");
    argv = extension_argv(
        &leader_options, &base,
        &(struct extension_request){
            .pool = &pool, .nodes = 1, .delay = 0, .most = UINT32_MAX, .used = NULL, .avoid = NULL},
        1000);
    assert_false(has_prefix(argv, "--elastic"));
    strings_free(argv);
    setenv("ELASTIC_SPANK", "0.1.0", 1);
    argv = extension_argv(
        &leader_options, &base,
        &(struct extension_request){
            .pool = &pool, .nodes = 1, .delay = 0, .most = UINT32_MAX, .used = NULL, .avoid = NULL},
        1000);
    assert_true(has(argv, "--elastic-extend=12"));
    assert_true(has(argv, "--elastic-pool=cheap"));
    strings_free(argv);
    unsetenv("ELASTIC_SPANK");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_everything_of_the_base),
        cmocka_unit_test(test_unlimited),
        cmocka_unit_test(test_no_longer_than_the_pool_allows),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_table_of_options),
        cmocka_unit_test(test_all_options_of_sbatch_are_in_the_table),
        cmocka_unit_test(test_of_a_role),
        cmocka_unit_test(test_levels),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("extension_argv", tests, NULL, NULL);
}

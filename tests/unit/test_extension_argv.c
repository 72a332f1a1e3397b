/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sbatch command line of an extension job follows its base and its pool. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/leader/extension_argv.h"
#include "agent/leader/leader_internal.h"
#include "lib/json_get.h"

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
    char **argv = extension_argv(&leader_options, &base, &pool, 2, 0, 1000, exclude, NULL);

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
    base.gres_per_node = (char *)"gpu:2";
    base.mem_per_node = 4096;
    argv = extension_argv(&leader_options, &base, &pool, 1, 4.2, 1000 + 3600 - 600, exclude, NULL);
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
    argv = extension_argv(&leader_options, &base, &pool, 1, 4.2, 1000 + 3600 - 600, exclude,
                          "n7,n8");
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
    argv = extension_argv(&leader_options, &base, &pool, 1, 0, 1000, NULL, NULL);
    assert_non_null(argv);
    assert_false(has_prefix(argv, "--time"));
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
    argv = extension_argv(&leader_options, &base, &pool, 1, 0, 1000, NULL, NULL);
    assert_false(has_prefix(argv, "--elastic"));
    strings_free(argv);
    setenv("ELASTIC_SPANK", "0.1.0", 1);
    argv = extension_argv(&leader_options, &base, &pool, 1, 0, 1000, NULL, NULL);
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
        cmocka_unit_test(test_levels),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("extension_argv", tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elasticrun's command line: ours and torchrun's spellings, and what is refused. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/options.h"
#include "agent/place.h"
#include "lib/roles.h"
#include "lib/text.h"

static enum options_result parse(struct options *o, struct error *err, const char *line)
{
    static char copy[512];
    static char *argv[32];
    int argc = 0;

    strcpy(copy, line);
    err->text[0] = '\0';
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " "))
        argv[argc++] = word;
    argv[argc] = NULL;
    return options_parse(o, argc, argv, err);
}

static void test_commands(void **state)
{
    static const struct {
        const char *line;
        const char *argv[8];
    } table[] = {
        {"elasticrun python train.py --lr 1", {"python", "train.py", "--lr", "1"}},
        {"elasticrun train.py --label", {"python3", "-u", "train.py", "--label"}},
        {"elasticrun -m pkg.train -x", {"python3", "-u", "-m", "pkg.train", "-x"}},
        {"elasticrun --no-python ./train.py", {"./train.py"}},
        {"elasticrun --nproc_per_node 2 -- ./a.out --elastic=1:2", {"./a.out", "--elastic=1:2"}},
        {"elasticrun --nnodes=1:4 --rdzv-backend c10d --rdzv_endpoint=h:1 train.py",
         {"python3", "-u", "train.py"}},
    };
    struct options o;
    struct error err;

    (void)state;
    unsetenv("PYTHON_EXEC");
    for (size_t row = 0; row < sizeof(table) / sizeof(table[0]); row++) {
        size_t i;

        if (parse(&o, &err, table[row].line) != OPTIONS_RUN)
            fail_msg("%s: %s", table[row].line, err.text);
        for (i = 0; table[row].argv[i] != NULL; i++)
            assert_string_equal(o.argv[i], table[row].argv[i]);
        assert_null(o.argv[i]);
        options_clear(&o);
    }
}

static void test_values(void **state)
{
    struct options o;
    struct error err;

    (void)state;
    assert_int_equal(parse(&o, &err,
                           "elasticrun --elastic=2:6:2 --elastic-grace=30 --elastic-grow-delay 5 "
                           "--elastic-pool=a,b "
                           "--elastic-signal=USR1 --elastic-grow=ask --nproc-per-node=gpu "
                           "--max-restarts=7 --label "
                           "--bind=none --early-start=no --mode=restart "
                           "--state-dir=/s --checkpoint-dir /c x"),
                     OPTIONS_RUN);
    assert_int_equal(o.policy.sizes.step, 2);
    assert_int_equal(o.policy.grace, 30);
    assert_int_equal(o.policy.grow_delay, 5);
    assert_int_equal(o.policy.snooze, POLICY_UNSET);
    assert_int_equal(o.policy.grow, POLICY_GROW_ASK);
    assert_int_equal(o.policy.pool_count, 2);
    assert_int_equal(o.nproc_kind, NPROC_GPU);
    assert_int_equal(o.policy.restarts.restarts, 7);
    assert_true(o.label && !o.bind && !o.early_start && o.mode == MODE_RESTART && !o.extension);
    assert_string_equal(o.state_dir, "/s");
    assert_string_equal(o.checkpoint_dir, "/c");
    assert_null(o.pre_train);
    options_clear(&o);
}

/* HyperPod's spelling. */
static void test_scripts(void **state)
{
    struct options o;
    struct error err;

    (void)state;
    assert_int_equal(parse(&o, &err,
                           "elasticrun --pre-train-script=pre.sh --pre-train-args='a','b' "
                           "--post-train-script post.sh x"),
                     OPTIONS_RUN);
    assert_int_equal(strings_count(o.pre_train), 2);
    assert_string_equal(o.pre_train[0], "pre.sh");
    assert_string_equal(o.pre_train[1], "a,b");
    assert_int_equal(strings_count(o.post_train), 1);
    assert_string_equal(o.post_train[0], "post.sh");
    options_clear(&o);
}

/* Each option of the table is one of elasticrun, and a wrong value of it is refused by this
 * name. */
static void test_table(void **state)
{
    char line[128];
    struct options o;
    struct error err;

    (void)state;
    for (const struct policy_option *option = policy_options; option->json != NULL; option++) {
        const char *wrong = option->form == POLICY_FORM_LINE ? "" : "?!";

        if (option->option == NULL)
            continue;
        snprintf(line, sizeof(line), "elasticrun --%s=%s x", option->option, wrong);
        assert_int_equal(parse(&o, &err, line), OPTIONS_ERROR);
        snprintf(line, sizeof(line), "--%s=%s: ", option->option, wrong);
        if (strstr(err.text, line) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", err.text, line);
        options_clear(&o);
    }
}

static void test_refused(void **state)
{
    static const struct {
        const char *line, *says;
    } table[] = {
        {"elasticrun", "no command"},
        {"elasticrun --fail-pattern=( x", "--fail-pattern: "},
        {"elasticrun --fail-pattern= x", "every line would match"},
        {"elasticrun --label", "no command"},
        {"elasticrun --pre-train-script= x", "--pre-train-script=: must be the name of a file"},
        {"elasticrun --pre-train-args=a x", "--pre-train-args=a goes with --pre-train-script only"},
        {"elasticrun --post-train-script=a --post-train-args='a x",
         "--post-train-args: a quote or a \\ is open at its end"},
        {"elasticrun --elastic=8:2 x", "8"},
        {"elasticrun --elastic-grace=-1 x", "-1"},
        {"elasticrun --elastic-grow=5 x", "--elastic-grow=5: '5' is not allowed"},
        {"elasticrun --nproc-per-node=0 x",
         "--nproc-per-node=0: must be a whole number from 1 to 4096, auto, gpu or cpu"},
        {"elasticrun --nproc-per-node=two x", "two"},
        {"elasticrun --max-restarts=1e9 x",
         "--max-restarts=1e9: '1e9' is not a number of restarts"},
        {"elasticrun --max-restarts= x", "--max-restarts=:"},
        {"elasticrun --bind=all x", "--bind=all: must be auto or none"},
        {"elasticrun --early-start=1 x", "--early-start=1: must be auto or no"},
        {"elasticrun --mode=warm x", "--mode=warm: must be auto, live or restart"},
        {"elasticrun --no-such x", "--no-such: unknown option"},
        {"elasticrun --elastic-grace", "--elastic-grace"},
    };
    struct options o;
    struct error err;

    (void)state;
    for (size_t row = 0; row < sizeof(table) / sizeof(table[0]); row++) {
        if (parse(&o, &err, table[row].line) != OPTIONS_ERROR)
            fail_msg("accepted: %s", table[row].line);
        if (strstr(err.text, table[row].says) == NULL || strchr(err.text, '\n') != NULL)
            fail_msg("%s: \"%s\" does not say \"%s\"", table[row].line, err.text, table[row].says);
        options_clear(&o);
    }
}

/* --roles, then what sbatch --elastic-roles has left in the environment, then the command. */
static void test_who_says_what_to_run(void **state)
{
    static const struct {
        const char *text; /* of the environment; NULL: none */
        const char *line;
        const char *file, *says; /* of --roles; of a refusal */
        bool takes_text;
    } table[] = {
        {NULL, "elasticrun --roles=a.yaml", "a.yaml", NULL, false},
        {"{}", "elasticrun", NULL, NULL, true},
        {"{}", "elasticrun --label", NULL, NULL, true},
        {"{}", "elasticrun --roles=a.yaml", "a.yaml", NULL, false},
        {"", "elasticrun x", NULL, NULL, false},
        {"{}", "elasticrun --extension", NULL, NULL, false},
        {"{}", "elasticrun --extension x", NULL, NULL, false},
        {"", "elasticrun", NULL, "no command", false},
        {"{}", "elasticrun x --y", NULL,
         "x: the job file of `sbatch --elastic-roles` says what to run; leave the command out",
         false},
        {"{}", "elasticrun --roles=a.yaml x", NULL,
         "x: --roles=a.yaml says what to run; leave the command out", false},
    };
    struct options o;
    struct error err;

    (void)state;
    for (size_t row = 0; row < sizeof(table) / sizeof(table[0]); row++) {
        enum options_result result;

        unsetenv(ROLES_VARIABLE);
        if (table[row].text)
            setenv(ROLES_VARIABLE, table[row].text, 1);
        result = parse(&o, &err, table[row].line);
        if (result != (table[row].says ? OPTIONS_ERROR : OPTIONS_RUN) ||
            (table[row].says && strstr(err.text, table[row].says) == NULL))
            fail_msg("row %zu: %d %s", row, (int)result, err.text);
        if (!table[row].says) {
            assert_int_equal(o.roles_text != NULL, table[row].takes_text);
            assert_int_equal(o.roles != NULL, table[row].file != NULL);
            if (o.roles_text)
                assert_string_equal(o.roles_text, table[row].text);
        }
        options_clear(&o);
    }
    unsetenv(ROLES_VARIABLE);
}

/* srun -n4 on two nodes: three tasks and one. */
static void test_workers_of_each_node(void **state)
{
    static const struct {
        const char *tasks, *gpus;
        int node, slots;
    } table[] = {
        {"3,1", NULL, 0, 3},   {"3,1", NULL, 1, 1},  {"3,1", "8", 1, 1}, {"1(x2)", "8", 1, 8},
        {"1(x2)", NULL, 1, 1}, {"2(x2)", "8", 1, 2}, {NULL, NULL, 0, 1}, {"rubbish", "4", 0, 4},
    };

    (void)state;
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("ROCR_VISIBLE_DEVICES");
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        const struct place place = {.nodeid = table[i].node};
        const struct options options = {0};
        struct error err;

        unsetenv("SLURM_STEP_TASKS_PER_NODE");
        unsetenv("SLURM_GPUS_ON_NODE");
        if (table[i].tasks)
            setenv("SLURM_STEP_TASKS_PER_NODE", table[i].tasks, 1);
        if (table[i].gpus)
            setenv("SLURM_GPUS_ON_NODE", table[i].gpus, 1);
        assert_int_equal(place_slots(&place, &options, &err), table[i].slots);
    }
}

static bool is_blocked(int number)
{
    sigset_t now;

    assert_int_equal(sigprocmask(SIG_BLOCK, NULL, &now), 0);
    return sigismember(&now, number) == 1;
}

/* Slurm 26.05 gives a batch script a step id, and 25.05 blocks a signal. */
static void test_every_slurm_starts_tasks_alike(void **state)
{
    struct place place;
    struct error err;
    sigset_t both;

    (void)state;
    setenv("SLURM_JOB_ID", "7", 1);
    setenv("SLURMD_NODENAME", "n1", 1);
    setenv("SLURM_JOB_NUM_NODES", "1", 1);
    setenv("SLURM_STEP_NUM_NODES", "3", 1);
    setenv("SLURM_STEP_ID", "-5", 1);
    sigemptyset(&both);
    sigaddset(&both, SIGCHLD);
    sigaddset(&both, SIGUSR1);
    sigprocmask(SIG_BLOCK, &both, NULL);
    assert_int_equal(place_read(&place, &err), 0);
    assert_false(place.in_step);
    assert_int_equal(place.nodes, 1);
    assert_null(getenv("SLURM_STEP_ID"));
    assert_false(is_blocked(SIGCHLD));
    assert_true(is_blocked(SIGUSR1));
    sigprocmask(SIG_UNBLOCK, &both, NULL);
    setenv("SLURM_STEP_ID", "0", 1);
    assert_int_equal(place_read(&place, &err), 0);
    assert_true(place.in_step);
    assert_int_equal(place.nodes, 3);
    setenv("SLURM_HET_SIZE", "2", 1);
    assert_int_equal(place_read(&place, &err), -1);
    assert_string_equal(err.text, "elasticrun does not work in heterogeneous jobs; submit one job");
    unsetenv("SLURM_HET_SIZE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_scripts),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_workers_of_each_node),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_every_slurm_starts_tasks_alike),
        cmocka_unit_test(test_who_says_what_to_run),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}

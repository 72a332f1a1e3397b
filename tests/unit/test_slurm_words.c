/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/slurm_words: the reason among what sbatch says, and why an extension goes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/slurm_words.h"

#define ERROR   "sbatch: error: "
#define GENERAL ERROR "Batch job submission failed: "

static void the_reason_is_found_among_the_lines(void **state)
{
    static const struct {
        const char *text, *reason;
    } table[] = {
        {"", ""},
        {"\n\n", ""},
        {"sbatch: No such file or directory", "No such file or directory"},
        {GENERAL "Requested time limit is invalid (missing or exceeds some limit)\n",
         "Requested time limit is invalid (missing or exceeds some limit)"},
        {ERROR "elastic: --elastic-extend=4: job 4 has ended\n" GENERAL "Invalid job id specified",
         "elastic: --elastic-extend=4: job 4 has ended"},
        {ERROR "QOSMaxSubmitJobPerUserLimit\n" GENERAL "Job violates accounting/QOS policy\n",
         "QOSMaxSubmitJobPerUserLimit: Job violates accounting/QOS policy"},
        {ERROR "Invalid --mem specification\nTry \"sbatch --help\" for more information\n",
         "Invalid --mem specification"},
        {"sbatch: fatal: Could not establish a configuration source",
         "Could not establish a configuration source"},
        {ERROR "Slurm controller not responding, sleeping and retrying.\n" ERROR "No partition x\n",
         "No partition x"},
        {"Try \"sbatch --help\" for more information\n", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        char buf[128];

        slurm_words_refusal(table[i].text, buf, sizeof(buf));
        assert_string_equal(buf, table[i].reason);
    }
}

static void silence_of_slurmctld_is_told_from_a_refusal(void **state)
{
    (void)state;
    assert_true(slurm_words_unsure(GENERAL "Unable to contact slurm controller (connect failure)"));
    assert_true(slurm_words_unsure(GENERAL "Socket timed out on send/recv operation\n"));
    assert_true(slurm_words_unsure(GENERAL "Zero Bytes were transmitted or received"));
    assert_false(slurm_words_unsure(""));
    assert_false(slurm_words_unsure(GENERAL "Job violates accounting/QOS policy\n"));
    assert_false(
        slurm_words_unsure(ERROR "Slurm controller not responding, sleeping and retrying.\n" ERROR
                                 "No partition x\n"));
}

static void a_full_job_is_told_from_a_refusal_by_its_pool(void **state)
{
    (void)state;
    assert_true(slurm_words_full(ERROR
                                 "--elastic-extend=12: 3 more nodes are too many; job 12 has 2, "
                                 "its extensions have or wait for 6, and its MAX is 8\n"));
    assert_true(slurm_words_full(ERROR "--elastic-extend=12: 1 more nodes are too many; job 12 has "
                                       "or waits for 2 of pool a, and max_nodes of this pool is "
                                       "2\n"));
    assert_false(slurm_words_full(GENERAL "Job violates accounting/QOS policy\n"));
}

static void what_ends_an_extension_is_named(void **state)
{
    static const struct {
        const char *state;
        bool preempted, overdue;
        const char *words;
    } table[] = {
        {"CANCELLED", false, true, "cancelled"},
        {"CANCELLED", true, true, "preempted"},
        {"TIMEOUT", false, true, "at its time limit"},
        {"RUNNING", false, true, "at its time limit"},
        {"RUNNING", false, false, NULL},
        {"COMPLETED", false, true, NULL},
        {"OUT_OF_MEMORY", false, true, "out of memory"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        const char *words = slurm_words_end(table[i].state, table[i].preempted, table[i].overdue);

        if (table[i].words != NULL)
            assert_string_equal(words, table[i].words);
        else
            assert_null(words);
    }
}

static void a_value_is_found_by_its_whole_name(void **state)
{
    static const char line[] =
        "SwitchName=s0 Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=s[1,2] Empty=\n";
    static const struct {
        const char *line, *name, *value;
    } table[] = {
        {line, "SwitchName", "s0"},   {line, "Level", "1"},   {line, "Nodes", "n[1-4]"},
        {line, "Switches", "s[1,2]"}, {line, "Name", NULL},   {line, "Empty", NULL},
        {line, "Speed", NULL},        {"", "Level", NULL},    {"BlockName=b1", "SwitchName", NULL},
        {"A=1=2 B", "A", "1=2"},      {"A=1=2 B", "B", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        char *value = slurm_words_value(table[i].line, table[i].name);

        if (table[i].value != NULL)
            assert_string_equal(value, table[i].value);
        else
            assert_null(value);
        free(value);
    }
}

static void a_count_of_tres_is_found(void **state)
{
    static const struct {
        const char *tres;
        double billing;
    } table[] = {
        {"cpu=8,mem=8000M,node=2,billing=12", 12},
        {"billing=1.5,cpu=8", 1.5},
        {"gres/billing=3,billing=4", 4},
        {"cpu=8", -1},
        {"", -1},
        {"billing=", -1},
        {"billing=-3", -1},
        {"billing=12K,cpu=1", -1},
        {"billing", -1},
        {"mybilling=3", -1},
        {"billing=0", 0},
        {",,billing=7,", 7},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        assert_float_equal(slurm_words_tres(table[i].tres, "billing"), table[i].billing, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reason_is_found_among_the_lines),
        cmocka_unit_test(silence_of_slurmctld_is_told_from_a_refusal),
        cmocka_unit_test(a_full_job_is_told_from_a_refusal_by_its_pool),
        cmocka_unit_test(what_ends_an_extension_is_named),
        cmocka_unit_test(a_value_is_found_by_its_whole_name),
        cmocka_unit_test(a_count_of_tres_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

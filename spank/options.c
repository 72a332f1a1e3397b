/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options of sbatch, salloc and srun (options.h).
 *
 * Each value is checked when Slurm reads it. So a wrong #SBATCH line is an error also where the
 * command line overrides it. */
#include "spank/options.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/number.h"
#include "spank/client.h"

/* Slurm passes no pointer of ours to its callback, and no options to slurm_spank_init_post_opt. */
static struct options given;

const struct options *options_given(void)
{
    return &given;
}

/* Options that set no value of the policy. */
static const struct policy_option own_options[] = {
    {.option = "elastic-config",
     .argument = "FILE",
     .help = "policy file (JSON) with any of these, and scale_config"},
    {.option = "elastic-roles",
     .argument = "FILE",
     .help = "job file (YAML or JSON) of a job of several programs; see selastic plan"},
    {.option = "elastic-extend",
     .argument = "JOBID",
     .help = "internal: the job extends this elastic job"},
};
#define OPTION_CONFIG (&own_options[0])
#define OPTION_ROLES  (&own_options[1])
#define OPTION_EXTEND (&own_options[2])

/* The options of the policy, then the own ones, from 0 on; NULL after the last one. */
static const struct policy_option *option_at(int number)
{
    for (const struct policy_option *option = policy_options; option->json; option++) {
        if (option->option && number-- == 0)
            return option;
    }
    return number < (int)(sizeof(own_options) / sizeof(own_options[0])) ? &own_options[number]
                                                                        : NULL;
}

const char *options_name(int number)
{
    const struct policy_option *option = option_at(number);

    return option ? option->option : NULL;
}

/* The path is relative to where the command was started. The job may run elsewhere. */
static int set_file(const struct policy_option *option, char **file, const char *path,
                    struct error *err)
{
    char cwd[PATH_MAX], *absolute;

    if (*path == '\0')
        return error_set(err, "--%s: the name of the file is missing", option->option);
    if (*path == '/')
        absolute = strdup(path);
    else if (!getcwd(cwd, sizeof(cwd)))
        return error_set(err, "--%s=%s: the current directory is not known; give an absolute path",
                         option->option, error_path(path).text);
    else if (asprintf(&absolute, "%s/%s", cwd, path) < 0)
        absolute = NULL;
    if (!absolute)
        return error_set(err, "--%s: out of memory", option->option);
    free(*file);
    *file = absolute;
    return 0;
}

static int set_extend(const char *text, struct error *err)
{
    int job_id;

    if (number_parse(text, strlen(text), 1, INT_MAX, &job_id) < 0)
        return error_set(err,
                         "--elastic-extend=%s: not the id of a job; allowed is the number of a "
                         "running elastic job",
                         error_value(text).text);
    given.extend = (uint32_t)job_id;
    return 0;
}

static int set_option(const struct policy_option *option, const char *text, struct error *err)
{
    if (option != OPTION_EXTEND && option->kind != POLICY_KIND_POOLS)
        given.policy_given = true;
    if (option == OPTION_CONFIG)
        return set_file(option, &given.config, text, err);
    if (option == OPTION_ROLES)
        return set_file(option, &given.roles, text, err);
    if (option == OPTION_EXTEND)
        return set_extend(text, err);
    return policy_set(&given.policy, option->option, text, err);
}

static int on_option(int number, const char *text, int remote)
{
    const struct policy_option *option = option_at(number);
    struct error err;

    if (remote) /* only so that slurmstepd knows the option */
        return ESPANK_SUCCESS;
    if (set_option(option, text ? text : "", &err) < 0)
        client_refuse(&err);
    given.some = option->option;
    return ESPANK_SUCCESS;
}

/* Slurm copies the struct and its texts. */
static int register_option(spank_t sp, const struct policy_option *option, int number)
{
    char usage[256];
    struct spank_option slurm_option = {
        .name = (char *)option->option,
        .arginfo = (char *)option->argument,
        .usage = usage,
        .has_arg = 1,
        .val = number,
        .cb = on_option,
    };

    snprintf(usage, sizeof(usage), "[elastic] %s", option->help);
    if (spank_option_register(sp, &slurm_option) == ESPANK_SUCCESS)
        return ESPANK_SUCCESS;
    slurm_error("elastic: Slurm does not accept the option --%s", option->option);
    return ESPANK_ERROR;
}

int options_register(spank_t sp)
{
    const struct policy_option *option;

    policy_init(&given.policy);
    given.policy.now = (double)time(NULL);
    for (int number = 0; (option = option_at(number)); number++) {
        if (register_option(sp, option, number) != ESPANK_SUCCESS)
            return ESPANK_ERROR;
    }
    return ESPANK_SUCCESS;
}

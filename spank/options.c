/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options of sbatch, salloc and srun (options.h).
 *
 * Values are checked when Slurm meets them, so that a wrong #SBATCH line is named even when the
 * command line overrides it. */
#include "spank/options.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/number.h"
#include "spank/client.h"

/* Slurm's callback gets no cookie, and slurm_spank_init_post_opt does not get the options. */
static struct options given;

const struct options *options_given(void)
{
    return &given;
}

enum option_value {
    OPTION_SIZES,
    OPTION_GRACE,
    OPTION_GROW_DELAY,
    OPTION_SNOOZE,
    OPTION_FAULT_WAIT,
    OPTION_HANG_WAIT,
    OPTION_MAX_RESTARTS,
    OPTION_POOL,
    OPTION_SIGNAL,
    OPTION_GROW,
    OPTION_REQUEUE,
    OPTION_CONFIG,
    OPTION_EXTEND,
};

const char *const options_names[] = {
    [OPTION_SIZES] = "elastic",
    [OPTION_GRACE] = "elastic-grace",
    [OPTION_GROW_DELAY] = "elastic-grow-delay",
    [OPTION_SNOOZE] = "elastic-snooze",
    [OPTION_FAULT_WAIT] = "elastic-fault-wait",
    [OPTION_HANG_WAIT] = "elastic-hang-wait",
    [OPTION_MAX_RESTARTS] = "elastic-max-restarts",
    [OPTION_POOL] = "elastic-pool",
    [OPTION_SIGNAL] = "elastic-signal",
    [OPTION_GROW] = "elastic-grow",
    [OPTION_REQUEUE] = "elastic-requeue",
    [OPTION_CONFIG] = "elastic-config",
    [OPTION_EXTEND] = "elastic-extend",
    NULL,
};

/* Read where the command was started; a job's working directory may be another one. */
static int set_config(const char *path, struct error *err)
{
    char cwd[PATH_MAX], *absolute;

    if (*path == '\0')
        return error_set(err, "--elastic-config: the name of the policy file is missing");
    if (*path == '/')
        absolute = strdup(path);
    else if (!getcwd(cwd, sizeof(cwd)))
        return error_set(err,
                         "--elastic-config=%s: the current directory is not known; "
                         "give an absolute path",
                         error_path(path).text);
    else if (asprintf(&absolute, "%s/%s", cwd, path) < 0)
        absolute = NULL;
    if (!absolute)
        return error_set(err, "--elastic-config: out of memory");
    free(given.config);
    given.config = absolute;
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

static int set_option(enum option_value option, const char *text, struct error *err)
{
    if (option != OPTION_POOL && option != OPTION_EXTEND)
        given.policy_given = true;
    if (option == OPTION_CONFIG)
        return set_config(text, err);
    if (option == OPTION_EXTEND)
        return set_extend(text, err);
    if (option == OPTION_SIZES)
        return policy_set(&given.policy, "elastic", text, err);
    return policy_set(&given.policy, options_names[option] + strlen("elastic-"), text, err);
}

static int on_option(int value, const char *text, int remote)
{
    struct error err;

    if (remote) /* only so that slurmstepd knows the option */
        return ESPANK_SUCCESS;
    if (set_option((enum option_value)value, text ? text : "", &err) < 0)
        client_refuse(&err);
    given.first = options_names[value];
    return ESPANK_SUCCESS;
}

/* sbatch --help has 50 columns for a text, and 24 for "--NAME=ARGUMENT". */
static const struct {
    const char *argument, *help;
} texts[] = {
    [OPTION_SIZES] = {"SIZES",
                      "[elastic] make the job elastic: it starts on MIN nodes and grows into idle "
                      "ones. SIZES is MIN:MAX, MIN:MAX:STEP or a list N,N,N"},
    [OPTION_GRACE] = {"S", "[elastic] seconds to save a checkpoint and leave a node"},
    [OPTION_GROW_DELAY] = {"S", "[elastic] seconds after a shrink until more nodes are asked for"},
    [OPTION_SNOOZE] = {"S", "[elastic] seconds after any restart without growth"},
    [OPTION_FAULT_WAIT] = {"S", "[elastic] seconds to wait for the replacement of a lost node"},
    [OPTION_HANG_WAIT] =
        {"S", "[elastic] seconds without a step after which a training hangs; 0: never"},
    [OPTION_MAX_RESTARTS] =
        {"N", "[elastic] restarts after failures of workers; N/S: within any S seconds"},
    [OPTION_POOL] = {"NAME,...", "[elastic] where more nodes may come from, in this order"},
    [OPTION_SIGNAL] = {"SIGNAL",
                       "[elastic] signal that tells a worker of a change: none, USR1, ..."},
    [OPTION_GROW] = {"MODE",
                     "[elastic] auto: grow into idle nodes; ask: only when somebody asks for that"},
    [OPTION_REQUEUE] = {"WHEN",
                        "[elastic] put the job back into the queue: limit, fault, limit,fault"},
    [OPTION_CONFIG] = {"FILE", "[elastic] policy file (JSON) with any of these, and scale_config"},
    [OPTION_EXTEND] = {"JOBID", "[elastic] internal: the job extends this elastic job"},
};

int options_register(spank_t sp)
{
    policy_init(&given.policy);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct spank_option option = {
            .name = (char *)options_names[i],
            .arginfo = (char *)texts[i].argument,
            .usage = (char *)texts[i].help,
            .has_arg = 1,
            .val = (int)i,
            .cb = on_option,
        };
        if (spank_option_register(sp, &option) != ESPANK_SUCCESS) {
            slurm_error("elastic: Slurm does not accept the option --%s", options_names[i]);
            return ESPANK_ERROR;
        }
    }
    return ESPANK_SUCCESS;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The plugin in slurmstepd (stepd.h).
 *
 * In the batch step, this makes the sruns of the script elastic. In the slurmstepd of the step that
 * srun starts, it would be too late for srun. It also runs in the step of an srun that has made its
 * own allocation. */
#include "config.h"

#include "spank/stepd.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/policy.h"
#include "lib/roles.h"
#include "lib/world_names.h"
#include "spank/environment.h"
#include "spank/options.h"

/* An sbatch in the script would read the options here and submit an elastic job by accident. */
static void unset_travelled_options(spank_t sp)
{
    char variable[96], name[128];

    for (int number = 0; options_name(number); number++) {
        policy_option_variable(options_name(number), variable, sizeof(variable));
        snprintf(name, sizeof(name), ENVIRONMENT_TRAVEL_PREFIX "%s", variable);
        spank_unsetenv(sp, name);
    }
}

static void unpack(spank_t sp, const char *name, char *buf, size_t size)
{
    char travelled[64];

    snprintf(travelled, sizeof(travelled), ENVIRONMENT_TRAVEL_PREFIX "%s", name);
    if (spank_getenv(sp, travelled, buf, (int)size) != ESPANK_SUCCESS)
        return;
    spank_unsetenv(sp, travelled);
    spank_setenv(sp, name, buf, 1);
}

static void unpack_policy(spank_t sp)
{
    char *buf = malloc(ENVIRONMENT_VALUE_MAX + 1);

    if (!buf) {
        slurm_error("elastic: no memory to pass the job's policy on");
        return;
    }
    for (const struct policy_option *option = policy_options; option->json; option++)
        unpack(sp, option->environment, buf, ENVIRONMENT_VALUE_MAX + 1);
    for (const char *const *name = environment_roles; *name; name++)
        unpack(sp, *name, buf, ENVIRONMENT_VALUE_MAX + 1);
    for (const struct environment_input *input = environment_inputs; input->name; input++)
        spank_setenv(sp, input->name, input->value, 1);
    spank_setenv(sp, ENVIRONMENT_MARK, PACKAGE_VERSION, 1);
    free(buf);
}

static int travelled(spank_t sp, const char *name)
{
    char buf[2];
    spank_err_t rc = spank_getenv(sp, name, buf, sizeof(buf));

    return rc == ESPANK_SUCCESS || rc == ESPANK_NOSPACE;
}

/* Slurm says only that elasticrun is no such file. */
static void say_no_path(spank_t sp)
{
    uint32_t node = 0;
    char **argv = NULL;
    int argc = 0;

    if (spank_get_item(sp, S_JOB_NODEID, &node) == ESPANK_SUCCESS && node == 0 &&
        spank_get_item(sp, S_JOB_ARGV, &argc, &argv) == ESPANK_SUCCESS && argc > 0 &&
        strcmp(argv[0], "elasticrun") == 0 && !travelled(sp, "PATH"))
        slurm_error("elastic: this step has no PATH (--export=NONE), so elasticrun is not found: "
                    "write srun --export=ALL elasticrun, or the full path of elasticrun");
}

/* Of a task of a role. The names come first, and are as many as a task can have: any user says what
 * the environment is, and spank_unsetenv() looks at all of it. */
static void forget_ports(spank_t sp)
{
    char **env = NULL, *names[ROLES_PORTS_MAX];
    int count = 0;

    if (spank_get_item(sp, S_JOB_ENV, &env) == ESPANK_SUCCESS)
        count = world_names_ports(env, names, ROLES_PORTS_MAX);
    for (int i = 0; i < count; i++) {
        spank_unsetenv(sp, names[i]);
        free(names[i]);
    }
}

/* srun hands on what it has, also to the steps of another job than that of the worker which runs it
 * (--jobid, or an allocation of its own). */
static void forget_other_world(spank_t sp)
{
    char id[16], own[16];
    uint32_t job = 0;

    if (spank_getenv(sp, WORLD_NAMES_JOB, id, sizeof(id)) != ESPANK_SUCCESS ||
        spank_get_item(sp, S_JOB_ID, &job) != ESPANK_SUCCESS)
        return;
    snprintf(own, sizeof(own), "%" PRIu32, job);
    if (strcmp(id, own) == 0)
        return;
    for (const char *const *name = world_names; *name; name++)
        if (strncmp(*name, WORLD_NAMES_OURS, strlen(WORLD_NAMES_OURS)) == 0)
            spank_unsetenv(sp, *name);
    forget_ports(sp);
}

void stepd_set_environment(spank_t sp)
{
    forget_other_world(sp);
    say_no_path(sp);
    if (travelled(sp, ENVIRONMENT_TRAVEL_PREFIX ENVIRONMENT_SIZES) ||
        travelled(sp, ENVIRONMENT_TRAVEL_PREFIX ENVIRONMENT_ROLES_NODES)) {
        unpack_policy(sp);
        unset_travelled_options(sp);
    } else if (travelled(sp, ENVIRONMENT_TRAVEL_PREFIX ENVIRONMENT_EXTEND)) {
        spank_unsetenv(sp, ENVIRONMENT_TRAVEL_PREFIX ENVIRONMENT_EXTEND);
        unset_travelled_options(sp);
    }
}

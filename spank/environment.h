/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How the policy of an elastic job travels from the client to the job.
 *
 * The client merges all layers. It puts each value into the job control environment, under the
 * environment variable of the table of options (lib/policy.h). Slurm keeps these variables with the
 * job. Slurm shows them to prolog and epilog as SPANK_<name>, and to the job as SLURM_SPANK_<name>,
 * also with --export=NONE. In the job, slurmstepd removes the prefix again; it needs no parser. */
#ifndef ELASTIC_SPANK_ENVIRONMENT_H
#define ELASTIC_SPANK_ENVIRONMENT_H

#include "lib/roles.h"

/* What Slurm puts before the names of the job control environment. */
#define ENVIRONMENT_TRAVEL_PREFIX "SLURM_SPANK_"

/* In the job control environment, this variable says that a job is elastic. */
#define ENVIRONMENT_SIZES "ELASTIC_SIZES"
/* And this one says that it has roles (lib/roles.h). */
#define ENVIRONMENT_ROLES_NODES ROLES_NODES_VARIABLE
/* And this one says that it is an extension. */
#define ENVIRONMENT_EXTEND "ELASTIC_EXTEND"
/* The version of the plugin that has made the environment of an elastic job. */
#define ENVIRONMENT_MARK "ELASTIC_SPANK"

/* The longest value that travels, in bytes. Linux allows 128 KiB for a variable (MAX_ARG_STRLEN).
 * slurmctld keeps the value for as long as it remembers the job. */
#define ENVIRONMENT_VALUE_MAX 65536

struct environment_input {
    const char *name;
    const char *value;
};

/* What a job with roles has beside its policy. The last is NULL. */
extern const char *const environment_roles[];

/* Options of srun that make a step outlive a node and a task. The last has no name. */
extern const struct environment_input environment_inputs[];

#endif

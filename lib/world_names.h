/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Variables that elasticrun writes for a worker, or removes where the world has no value: an older
 * value never stays. No user sets one of those that begin with WORLD_NAMES_OURS for a job: options
 * have names of their own (policy_options.h). */
#ifndef ELASTIC_WORLD_NAMES_H
#define ELASTIC_WORLD_NAMES_H

#define WORLD_NAMES_OURS "ELASTIC_"
#define WORLD_NAMES_JOB  "ELASTIC_JOB_ID" /* whose worker this is */
/* The ports of a task, by their names in the job file. world_names cannot have these. */
#define WORLD_NAMES_PORT "ELASTIC_PORT_"

/* s3://BUCKET/PREFIX of a job whose checkpoints are there. It is in the environment of elasticrun
 * itself, which all workers of the job have. */
#define WORLD_CHECKPOINT_URL "ELASTIC_CHECKPOINT_URL"

extern const char *const world_names[]; /* NULL after the last one */

/* The names, without values, of the first `max` variables of the environment that begin with
 * WORLD_NAMES_PORT. An entry without "=" is no variable: nobody can set it, or take it away.
 * Returns how many names there are; the caller frees each. Less than there are without memory. */
int world_names_ports(char *const *env, char **names, int max);

#endif

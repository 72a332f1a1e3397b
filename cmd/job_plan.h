/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic plan`: what a job file says, and what of it fits, as JSON and as text. Pure. */
#ifndef SELASTIC_JOB_PLAN_H
#define SELASTIC_JOB_PLAN_H

#include <json-c/json.h>

#include "cmd/render.h"
#include "lib/roles.h"

/* The job file of that name: {"file", "job", "guaranteed"}. New object. */
json_object *job_plan(const char *file, const struct roles *roles);

/* Add what fits on the nodes of a partition when nothing else runs there: {"partition": {"name",
 * "nodes", "base", "sbatch", "why", "roles": [{"role", "fits", "why"}]}}. -1: what is guaranteed
 * does not fit. */
int job_plan_add(json_object *plan, const struct roles *roles, const char *partition,
                 const struct slots_node *nodes, int count);

/* GPUs in Slurm's text of a node's generic resources: "gpu:tesla:4(S:0-1),gpu:a:2" has 6. */
int job_plan_gpus(const char *gres);

char *render_plan(json_object *plan, const struct render_options *options);

#endif

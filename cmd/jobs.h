/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which of Slurm's jobs are elastic, and how `selastic list` describes each. Pure. */
#ifndef SELASTIC_JOBS_H
#define SELASTIC_JOBS_H

#include <stdbool.h>

#include <json-c/json.h>

#include "common/slurm_client.h"

/* A job that is, or may be, the base of an elastic job. */
struct base_job {
    const struct job_info *info; /* borrowed from the searched list */
    bool sure;                   /* admission has marked the job, or an extension names it */
    int pending;                 /* its waiting extension jobs */
    int running;                 /* its running extension jobs */
    int extension_nodes;         /* nodes of its running extension jobs */
};

/* Read the comment "elastic-extension-of=ID.RESTARTS". False: comment (may be NULL) is something
 * else. */
bool jobs_extension_of(const char *comment, uint32_t *base_id, uint32_t *restarts);

/* The bases among the jobs of a list. First come sure bases that are pending or running, then
 * running jobs that could be bases; newest first. Extension jobs are counted with their bases. A
 * new array with *found entries. */
struct base_job *jobs_find_bases(const struct job_info *list, int count, int *found);

/* An entry of the list: {"job", "name", "user", "state", "size", "sizes", "min", "max",
 * "generation", "steps", "cost", "pending", "running", "why"}. Of a job with roles, sizes is
 * "roles", and min and max are null. state is the leader's answer (shape.h) or NULL. Without an
 * answer, why is shown (NULL: Slurm's reason). */
json_object *jobs_entry(const struct base_job *job, const char *user, json_object *state,
                        const char *why);

#endif

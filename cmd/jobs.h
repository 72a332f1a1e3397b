/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which of Slurm's jobs are elastic, and what `selastic list` says of each. Pure. */
#ifndef SELASTIC_JOBS_H
#define SELASTIC_JOBS_H

#include <stdbool.h>

#include <json-c/json.h>

#include "common/slurm_client.h"

/* A job that is, or may be, the base of an elastic one. */
struct base_job {
    const struct job_info *info; /* borrowed from the list that was searched */
    bool sure;                   /* admission has marked it, or an extension names it */
    int pending;                 /* its extension jobs that wait */
    int running;                 /* those that run */
    int extension_nodes;         /* nodes of those that run */
};

/* Take "elastic-extension-of=ID.RESTARTS" apart. False when comment (may be NULL) is something else. */
bool jobs_extension_of(const char *comment, uint32_t *base_id, uint32_t *restarts);

/* The bases among the jobs of a list: sure ones that are pending or running, first, then those running ones that
 * could be, newest first; extension jobs are counted with their bases. A new array, *found entries. */
struct base_job *jobs_find_bases(const struct job_info *list, int count, int *found);

/* One entry of the list: {"job", "name", "user", "state", "size", "sizes", "min", "max", "generation", "pending",
 * "running", "why"}. state is the leader's answer (shape.h) or NULL; then why says what to show instead (NULL: what
 * Slurm says). */
json_object *jobs_entry(const struct base_job *job, const char *user, json_object *state,
                        const char *why);

#endif

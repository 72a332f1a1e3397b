/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which state directories have outlived their jobs, so that `selastic clean` may remove them. Pure.
 *
 * A directory is removed only if it says whose it is, Slurm knows none of the jobs that have used
 * it, and nothing in it has changed for some days. */
#ifndef ELASTIC_LEFTOVER_H
#define ELASTIC_LEFTOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "lib/job_record.h"

/* Stands for the number of the job in the pattern of a name. */
#define LEFTOVER_JOB "\001"

/* A state directory as it was found. */
struct leftover {
    bool complete; /* all of it could be looked at, and nothing is mounted in it */
    bool owned;    /* records[0] is its own record */
    /* Its own record, and those of jobs that have used checkpoints in it. */
    struct job_record *records;
    int record_count;
    time_t changed; /* the latest change in it */
};

struct leftover_site {
    const char *cluster, *user;
    const uint32_t *known; /* numbers of all jobs of this user that Slurm knows, in any state */
    int known_count;
    time_t now;
    int days; /* of rest */
};

/* Is it the name of a state directory, or of one that was moved aside (lib/job_record.h)? pattern
 * has LEFTOVER_JOB once. */
bool leftover_is_named(const char *pattern, const char *name);

/* May it be removed? If not, why says the reason in a few words. */
bool leftover_may_go(const struct leftover_site *site, const struct leftover *found, char *why,
                     size_t size);

#endif

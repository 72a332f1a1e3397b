/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lock of a run directory, which its agent holds for as long as it lives. */
#ifndef ELASTIC_FLUSH_LOCK_H
#define ELASTIC_FLUSH_LOCK_H

#include <stdbool.h>

#include "flush/process.h"
#include "lib/snapshot.h"

#define LOCK_NAME "agent.lock"

/* What somebody knows who wants to remove a run directory. */
struct lock_terms {
    bool ended;  /* its job has ended: of whom nothing is known is no agent */
    bool sweep;  /* nothing: without a lock it may be that of a job which begins */
    int max_age; /* then it goes if it was not used for so many seconds; 0: never */
    const struct process_jobs *jobs; /* that are on the node now: root knows; NULL */
};

/* Is the directory in use? Waits for a killed agent to disappear, but not in a sweep. */
bool lock_is_used(int dir, const struct snapshot_run *run, const struct lock_terms *terms);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Starting elastic-flush with the rights of a user. */
#ifndef ELASTIC_FLUSH_START_H
#define ELASTIC_FLUSH_START_H

#include <stdbool.h>

#include "flush/place.h"

#define START_RUNS_MAX 32

struct start {
    bool sweep; /* whether the job has ended is not known; else what still runs of it is killed */
    const struct place *places;
    const struct place_run *runs; /* of one user */
    int count;                    /* at most START_RUNS_MAX */
    const gid_t *gid;             /* NULL: that of the user's entry */
    int64_t share;                /* bytes that may stay of what cannot be saved: place_share() */
    int keep_runs;                /* … in at most so many directories; 0: any */
    int age;                      /* … and for how many seconds */
    int slot;    /* a descriptor that both keep until they end; -1: no flush, no unmounting */
    bool prints; /* what root has removed is said in *output, else in the system's log */
};

/* Start the elastic-flush that is installed beside this program, as a session of its own. It is the
 * first program that runs with the user's rights, and no process of the user can read or trace it.
 * Each of its processes has 64 MiB of memory. It writes no files that stay in memory, and is the
 * first to go where memory is short. But any may stop it. So it has a guard, a process of ours,
 * which kills it then, or after an hour. When it has ended, in whatever way, the guard keeps the
 * user within the bounds (bounds.h), and ends. *output is the end of a pipe with all that both say;
 * it ends when the guard does. Returns the id of the guard; -1 with err. */
pid_t start_flush(const struct start *start, int *output, struct error *err);

#endif

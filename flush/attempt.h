/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One attempt to flush a run directory, by a process of its own.
 *
 * All that users have written is read by that process: manifests, and whole checkpoint directories.
 * They may make it need more memory than it may have, or more time, or wait for ever. Who has
 * started it judges then what may stay, and removes the rest. */
#ifndef ELASTIC_FLUSH_ATTEMPT_H
#define ELASTIC_FLUSH_ATTEMPT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/error.h"
#include "lib/snapshot.h"

/* Exit status. */
enum { STATUS_OK = 0, STATUS_ERROR = 1, STATUS_USAGE = 2, STATUS_TIME = 3 };

struct attempt {
    const char *path;
    int dir; /* the run directory */
    const struct snapshot_run *run;
    int64_t limit; /* bytes; 0: none */
    int seconds;   /* 0: no limit */
    bool kill;     /* workers that are left, before */
    bool to_disk;
};

/* What has become of it. */
struct told {
    bool begun;        /* there was a process */
    bool ended;        /* … and it has come to its end */
    bool stuck;        /* it could not even be killed: it waits for a file system */
    bool lost;         /* there is a snapshot, and none that can be used */
    int status;        /* for the exit status */
    struct error line; /* what is said in the end */
    /* What could not be flushed and may be flushed later: snapshot/INDEX; -1: nothing. Known as
     * soon as manifests have been read, also if the process is killed after that. */
    int index;
    int count;
    char files[SNAPSHOT_FILES_MAX][SNAPSHOT_FILE_SIZE];
};

/* Flush, and wait for the end. A process that is killed, or stopped, or that does not end soon
 * after its time is over, has not flushed. A signal to stop (stop.h) is passed on to it. */
void attempt_flush(const struct attempt *attempt, struct told *told);

#endif

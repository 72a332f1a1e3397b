/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A directory of a checkpoint directory that is being written: it gets its name when all of it is on the disk. */
#ifndef ELASTIC_FLUSH_TARGET_H
#define ELASTIC_FLUSH_TARGET_H

#include "lib/error.h"
#include "lib/snapshot.h"

enum flush_result {
    FLUSH_DONE,
    FLUSH_COVERED, /* what is there already is as new or newer */
    FLUSH_TORN,    /* the snapshot is not what its manifest says */
    FLUSH_FAILED,  /* it cannot be written */
    FLUSH_STOPPED, /* stop_asked() */
};

struct target;

/* Open a checkpoint directory, which is made if it is missing, for a snapshot of this node. NULL with err. */
struct target *target_open(const char *checkpoint, const struct snapshot_key *key, const char *node,
                           struct error *err);

/* FLUSH_DONE: a directory under a temporary name is there to be filled. FLUSH_COVERED: with err naming what is newer. */
enum flush_result target_begin(struct target *target, struct error *err);

/* Copy a file into it from an open one, and compare what was copied with its digest. err is about what went wrong. */
enum flush_result target_add(struct target *target, int from, const struct snapshot_file *file,
                             struct error *err);

/* Write the manifest and give the directory its name: nothing, or all of it. *name (within target) is set with
 * FLUSH_DONE; FLUSH_COVERED as above. */
enum flush_result target_publish(struct target *target, const struct snapshot *snapshot,
                                 const char **name, struct error *err);

/* Remove what has no name yet. NULL is accepted. */
void target_close(struct target *target);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A directory of the checkpoint directory that is being written.
 *
 * It gets its name when all of it is on the disk. */
#ifndef ELASTIC_FLUSH_TARGET_H
#define ELASTIC_FLUSH_TARGET_H

#include <stdbool.h>

#include "lib/error.h"
#include "lib/snapshot.h"

enum flush_result {
    FLUSH_DONE,
    FLUSH_COVERED, /* a checkpoint or snapshot there is as new or newer */
    FLUSH_TORN,    /* the snapshot does not match its manifest */
    FLUSH_FAILED,  /* the target cannot be written */
    FLUSH_STOPPED, /* stop_asked() */
};

struct target;

/* Open a checkpoint directory for a snapshot of this node. A missing directory is made. to_disk:
 * not where files are in memory (mount_check_disk()). NULL with err. */
struct target *target_open(const char *checkpoint, const struct snapshot_key *key, const char *node,
                           bool to_disk, struct error *err);

/* Where the checkpoint directory is. */
const char *target_path(const struct target *target);

/* FLUSH_DONE: a directory under a temporary name is there to be filled. FLUSH_COVERED: err names
 * the newer checkpoint or snapshot. */
enum flush_result target_begin(struct target *target, struct error *err);

/* Copy an open file into the target, and compare the digest of the copy. err says what went
 * wrong. */
enum flush_result target_add(struct target *target, int from, const struct snapshot_file *file,
                             struct error *err);

/* Write the manifest and give the directory its name: all of it, or nothing. FLUSH_DONE: *name
 * (within target) is set. FLUSH_COVERED as above. */
enum flush_result target_publish(struct target *target, const struct snapshot *snapshot,
                                 const char **name, struct error *err);

/* Remove a directory that has no name yet, and free. NULL is accepted. */
void target_close(struct target *target);

#endif

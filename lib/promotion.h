/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From which checkpoint or flushed snapshot of a checkpoint directory a job goes on.
 *
 * Several nodes may have flushed snapshots, at different steps, and some nodes late. Exactly one
 * process, and only while there is no world, makes the newest snapshot a checkpoint with a number.
 * So all ranks of the next world see the same. */
#ifndef ELASTIC_PROMOTION_H
#define ELASTIC_PROMOTION_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/error.h"
#include "lib/snapshot.h"

/* An entry of the checkpoint directory: a checkpoint with its number, or a flushed snapshot of this
 * job. */
struct promotion_entry {
    char name[SNAPSHOT_NAME_SIZE];
    /* Its manifest and its files are right, and the manifest names the entry. */
    bool complete;
    struct snapshot_key key; /* which state the manifest names */
    bool remove;             /* result: was flushed, and is not needed any more */
};

struct promotion {
    /* Result: a flushed snapshot that is not needed any more. */
    const struct promotion_entry *chosen;
    int64_t number;
};

/* Decide for a job. `latest` is the number that the link names, INT64_MAX without a link:
 * checkpoints with a larger number were never announced. Only flushed snapshots of the job count.
 * The newest of them becomes a checkpoint if it is newer than all checkpoints of the job;
 * checkpoints of other jobs say nothing about it. All other snapshots of the job are to be removed.
 * -1 with err: the number after the largest is too large, and nothing is to be done. */
int promotion_decide(uint32_t job, int64_t latest, struct promotion_entry *entries, int count,
                     struct promotion *promotion, struct error *err);

#endif

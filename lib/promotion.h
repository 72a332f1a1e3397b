/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which of what a checkpoint directory holds a job goes on from, where snapshots may have been flushed to it.
 *
 * Several nodes may have flushed, at different steps, and some of them late. Exactly one process, and only while there is no world, makes the
 * newest one a checkpoint with a number: so all ranks of the next world see the same. */
#ifndef ELASTIC_PROMOTION_H
#define ELASTIC_PROMOTION_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/error.h"
#include "lib/snapshot.h"

/* What there is by one name: a checkpoint's number, or one of this job that was flushed. */
struct promotion_entry {
    char name[SNAPSHOT_NAME_SIZE];
    bool complete;           /* its manifest and its files are right … */
    struct snapshot_key key; /* … and say that it is this one */
    bool remove;             /* result: was flushed, and is not needed any more */
};

struct promotion {
    const struct promotion_entry *chosen; /* gets the number; NULL: none does */
    int64_t number;
};

/* Decide for a job. latest is the number that the link says, INT64_MAX without one: checkpoints above it were never announced. Of the flushed ones those of
 * the job count, and the newest becomes a checkpoint if it is newer than all checkpoints of the job; what others have written says nothing about it. All
 * others of the job are to be removed. -1 with err: the number after the largest is too large; nothing is to be done then. */
int promotion_decide(uint32_t job, int64_t latest, struct promotion_entry *entries, int count,
                     struct promotion *promotion, struct error *err);

#endif

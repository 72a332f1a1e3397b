/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a checkpoint directory has already. */
#ifndef ELASTIC_COMMON_CHECKPOINTS_H
#define ELASTIC_COMMON_CHECKPOINTS_H

#include <stdbool.h>

#include "lib/snapshot.h"

/* Whether the directory's entry is a complete checkpoint, or something flushed that is complete, of a world in a
 * job: its manifest says so, and the files have the sizes that it names. *key is which. */
bool checkpoint_is_complete(int dir, const char *name, struct snapshot_key *key);

/* The number that the link `latest` names: what is above it was never announced, and is read by nobody. INT64_MAX without a link
 * that does. */
int64_t checkpoints_latest(int dir);

/* Whether one of those in the directory makes a snapshot needless; name is which. */
bool checkpoints_cover(int dir, const struct snapshot_key *key, char name[SNAPSHOT_NAME_SIZE]);

/* Remove what flushes on this node have left that are dead. */
void checkpoints_remove_leftovers(int dir, const char *node);

#endif

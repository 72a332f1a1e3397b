/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The complete checkpoints and flushed snapshots of a checkpoint directory. */
#ifndef ELASTIC_COMMON_CHECKPOINTS_H
#define ELASTIC_COMMON_CHECKPOINTS_H

#include <stdbool.h>
#include <sys/stat.h>

#include "lib/snapshot.h"

/* Is the directory's entry a complete checkpoint, or a complete flushed snapshot, of a world of a
 * job? Its manifest says so, and the files have the sizes that the manifest names. *key is which
 * state it holds. It belongs to this process's user, to root, or to who owns the directory, and
 * nobody else may write in it, or in a file of it, as far as others can get there. False
 * after a request to stop (stop.h), too. */
bool checkpoint_is_complete(int dir, const char *name, struct snapshot_key *key);

/* The number that the link `latest` names. Checkpoints with a larger number were never announced,
 * and nobody reads them. INT64_MAX: there is no such link, or only one of a stranger's. */
int64_t checkpoints_latest(int dir);

/* Does an entry of the directory make a snapshot needless? name is the entry's name. */
bool checkpoints_cover(int dir, const struct snapshot_key *key, char name[SNAPSHOT_NAME_SIZE]);

/* Remove files left by flushes on this node whose process has ended. */
void checkpoints_remove_leftovers(int dir, const char *node);

/* Is that by somebody who is trusted, in a directory of checkpoints (base)? Who else may write
 * there is not: to read a checkpoint may be to run a program. */
bool checkpoints_trust(const struct stat *st, const struct stat *base);

/* Has somebody made that entry of a directory of checkpoints, or mounted what is there, who is not
 * trusted? What is mounted there is not asked. */
bool checkpoints_is_stranger(int dir, const char *name);

/* Open an entry that is a directory, unless it is a stranger's, and describe it. What is opened is
 * what was judged. The descriptor, or -1. */
int checkpoints_open(int dir, const char *name, struct stat *st);

/* Has no entry that name? Also where that cannot be seen: who takes the name then hears why. */
bool checkpoints_is_free(int dir, const char *name);

/* Has it failed, by its errno, since an entry has that name already? */
bool checkpoints_is_taken(int reason);

/* Open the directory BASE/.parts/NODE of an open BASE, or one like it if a stranger has taken the
 * name .parts: .parts-XXXXXXXX. It is made if it is missing. -1 with errno. */
int checkpoints_open_parts(int base, const char *node);

#endif

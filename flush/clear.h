/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Removal of a run directory that is not needed any more, with all that its user has put there. */
#ifndef ELASTIC_FLUSH_CLEAR_H
#define ELASTIC_FLUSH_CLEAR_H

#include <stdbool.h>

#include "lib/error.h"

/* Remove everything below the open directory dir but what has one of the names in keep at its top
 * (NULL: nothing is kept; the list ends with NULL). Links are not followed, mounts are not entered,
 * and any depth is removed. 0, or -1 with err; errno is EINTR after a request to stop. */
int clear_directory(int dir, const char *const *keep, struct error *err);

/* The same for root, in the directory of a user. What a user has mounted there is unmounted, if
 * `unmounts`: that may never end. Each directory is root's from when it is opened until it is gone:
 * no process of the user changes what is being removed. Changes the working directory. */
int clear_as_root(int dir, bool unmounts, struct error *err);

#define CLEAR_MOUNTS_MAX 100 /* on one entry, one upon the other */

/* Unmount the last that is mounted on an entry of the directory, if a user has mounted it (FUSE).
 * It works also while somebody uses it. Changes the working directory. False: errno. */
bool clear_unmount(int dir, const char *name);

bool clear_is_empty(int dir);

/* Was no entry made or removed for so many seconds in the run directory, its snapshot directory, or
 * a buffer of that? The user cannot set this time. */
bool clear_is_old(int dir, int seconds);

#endif

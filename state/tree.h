/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files below a directory whose content is not trusted: no link is followed, nothing above it is
 * reached, and no open waits. */
#ifndef STATE_TREE_H
#define STATE_TREE_H

#include <stdint.h>
#include <sys/types.h>

#include "lib/error.h"

#define TREE_DEPTH_MAX 32 /* directories below each other */

/* Open a regular file for reading, with its size. -1 with err and errno. */
int tree_open(int dir, const char *path, int64_t *bytes, struct error *err);

/* Make a file that is not there yet, 0600, and the directories above it, 0700. The descriptor, or
 * -1 with err. */
int tree_make(int dir, const char *path, struct error *err);

/* Call each() for all regular files below, with their path. Anything else but a directory is
 * refused. each() returns -1 with err to stop. */
int tree_walk(int dir, int (*each)(const char *path, int64_t bytes, void *arg, struct error *err),
              void *arg, struct error *err);

/* The same, but a directory below that is another user's is refused, and not looked into. */
int tree_walk_of(int dir, uid_t owner,
                 int (*each)(const char *path, int64_t bytes, void *arg, struct error *err),
                 void *arg, struct error *err);

/* Flush all directories below, and the directory itself, to the disk. */
int tree_flush(int dir, struct error *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The mount on which an open entry lies, and whether a user has mounted it.
 *
 * Users can mount FUSE. Whoever has says of what is in it what he likes, also to whom it belongs,
 * and may never answer. So all of it is his. No file system is asked here. */
#ifndef ELASTIC_COMMON_MOUNTED_H
#define ELASTIC_COMMON_MOUNTED_H

#include <stdbool.h>
#include <sys/types.h>

/* Its line in /proc/self/mountinfo. A new string; NULL: it is not there, as that of another mount
 * namespace, or cannot be read. */
char *mounted_line(int fd);

/* Has a user mounted it, so not root? */
bool mounted_by_user(const char *line);

/* Has a user mounted it who is neither root nor that one? */
bool mounted_by_other(const char *line, uid_t uid);

/* Does an open entry, also one of O_PATH, lie in what another user than this process's has mounted?
 * Also if the mount has gone meanwhile: then it may have been anybody's. */
bool mounted_by_stranger(int fd);

#endif

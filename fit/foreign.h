/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of another user: of whom this process trains for, or who trains for it.
 *
 * Nothing is opened that belongs to a third user: no link is followed, and what is opened is looked
 * at, not its name. All functions return 0, or -1 with err. */
#ifndef FIT_FOREIGN_H
#define FIT_FOREIGN_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "lib/error.h"

/* Whether this user may open it now. True also if something else is wrong, which opening says. */
bool foreign_is_open(const char *path);

/* A file, or all files of a directory, which belong to owner, become files of this user in the
 * directory `to`, which is made. result: what the path is there. */
int foreign_copy(const char *path, uid_t owner, const char *to, char result[PATH_MAX],
                 struct error *err);

/* All files of `from` are put into a directory of owner that lets this user in, under numbers, with
 * a list of their names as the last one. So no directory there is this user's. */
int foreign_put(const char *from, const char *to, uid_t owner, struct error *err);

/* What foreign_put() has put there becomes files of this user in `to`. */
int foreign_take(const char *from, const char *to, struct error *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of another user: of whom this process trains for, or who trains for it.
 *
 * Nothing is opened that belongs to a third user, or to this one: no link is followed, and what is
 * opened is looked at, not its name. No more is copied than there is room for. All functions return
 * 0, or -1 with err. */
#ifndef FIT_FOREIGN_H
#define FIT_FOREIGN_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "fit/room.h"
#include "lib/error.h"

struct foreign {
    uid_t owner; /* the other user */
    /* Is it to be given up? Asked often. NULL: it is not. */
    bool (*stops)(void *arg);
    void *arg;
    struct room *room; /* of all copies together; NULL: each has its own */
    int patience;      /* seconds for which access that is missing is waited for, also in between */
};

/* A file, or all files of a directory, which belong to owner, become files of this user in the
 * directory `to`, which is made, and made anew where access has to be waited for. result: what the
 * path is there. */
int foreign_copy(const char *path, const struct foreign *foreign, const char *to,
                 char result[PATH_MAX], struct error *err);

/* All files of `from` are put into a directory of owner that lets this user in, under numbers, with
 * a list of their names as the last one. So no directory there is this user's. */
int foreign_put(const char *from, const char *to, const struct foreign *foreign, struct error *err);

/* What foreign_put() has put there becomes files of this user in `to`. */
int foreign_take(const char *from, const char *to, const struct foreign *foreign,
                 struct error *err);

#endif

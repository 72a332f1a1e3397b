/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How much may be copied to a directory: a tenth of what is free stays free. Several copies can
 * have one room together: else each of them would leave a tenth of what the one before has left. */
#ifndef FIT_ROOM_H
#define FIT_ROOM_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/error.h"

#define ROOM_FILES_MAX 200000 /* of one user's data, or state */

struct room {
    bool found;           /* the other fields hold */
    int64_t bytes, files; /* that there is room for */
    char last[PATH_MAX];  /* the path that has taken some last */
};

/* At the beginning of a copy. dir is open. A room that was found already is not looked for again.
 * -1 with err. */
int room_find(int dir, struct room *room, struct error *err);

/* For a file of so many bytes, at a path in the directory. Directories above it that the last path
 * did not have take room, too. -1 with err: there is none. */
int room_take(struct room *room, const char *path, int64_t bytes, struct error *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Removal of a run directory that is not needed any more, with whatever its user has put there. */
#ifndef ELASTIC_FLUSH_CLEAR_H
#define ELASTIC_FLUSH_CLEAR_H

#include <time.h>

#include "lib/error.h"

/* Remove what is below the directory that is open as dir: nothing is followed, no mount is entered, and no depth is too deep. 0, or -1 with err; errno is EINTR when
 * it was asked to stop. */
int clear_directory(int dir, struct error *err);

/* When something was last made or removed in it, its snapshot or one of that's buffers. (Not what its user can set.) */
time_t clear_last_use(int dir);

#endif

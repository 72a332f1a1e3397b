/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Removal of a run directory that is not needed any more, with all that its user has put there. */
#ifndef ELASTIC_FLUSH_CLEAR_H
#define ELASTIC_FLUSH_CLEAR_H

#include <time.h>

#include "lib/error.h"

/* Remove everything below the open directory dir. Links are not followed, mounts are not entered,
 * and any depth is removed. 0, or -1 with err; errno is EINTR after a request to stop. */
int clear_directory(int dir, struct error *err);

/* When an entry was last made or removed in the run directory, its snapshot directory, or a buffer
 * of that. The user cannot set this time. */
time_t clear_last_use(int dir);

#endif

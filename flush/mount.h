/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The mount on which an open directory lies, as the kernel knows it. */
#ifndef ELASTIC_FLUSH_MOUNT_H
#define ELASTIC_FLUSH_MOUNT_H

#include <stdbool.h>

#include "lib/error.h"

/* Is the directory the root of a tmpfs? Then all that lies in that tmpfs lies below it. */
bool mount_is_tmpfs(int dir);

/* Is what is written into the directory kept somewhere else than in memory? For as long as that
 * would take, and longer, it would count for the control group of this process, where no memory is
 * left for others then. 0; -1 with err, for a tmpfs and the like, and for what a user has
 * mounted. Makes a file there, for a moment, if it is the only way to know. */
int mount_check_disk(int dir, struct error *err);

#endif

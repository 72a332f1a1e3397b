/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Small file helpers: atomic replace, directories, removal, without following what others put in
 * the way.
 *
 * Those that return int return 0, or -1 with err naming the path and the reason. On failure errno
 * is the reason as well (file_read: ENOENT where there is no file). */
#ifndef ELASTIC_FILES_H
#define ELASTIC_FILES_H

#include <stddef.h>
#include <sys/types.h>

#include "lib/error.h"

/* Replace path by data: temporary name in the same directory, fsync, rename. A reader sees the old
 * file or the new one. A symlink at path is replaced, not followed. On failure path is what it was
 * and the temporary file is gone. */
int file_replace(const char *path, const void *data, size_t len, mode_t mode, struct error *err);

/* Append one line (O_APPEND, 0600, one write); the line break is added. The last component must not
 * be a symlink, a text with a line break in it is refused. */
int file_append(const char *path, const char *line, struct error *err);

/* Make a directory and its parents, 0700 for those it makes; an existing last one must be a
 * directory of the own uid, and no symlink. */
int dir_make(const char *path, struct error *err);

/* Remove a directory of ours and everything in it; symlinks are removed, not followed, and what is
 * mounted inside is left alone. Missing is success. Something that is not a directory of the own
 * uid is refused. */
int dir_remove(const char *path, struct error *err);

/* Read at most max bytes of a regular file into a new NUL-terminated buffer (*len without the NUL;
 * len may be NULL). A directory, device, FIFO or socket is refused without waiting for it, and so
 * is a larger file without reading it. NULL with err. */
char *file_read(const char *path, size_t max, size_t *len, struct error *err);

#endif

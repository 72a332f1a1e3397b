/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Small file helpers: atomic replace, directories, removal, without following what others put in the way. */
#ifndef ELASTIC_FILES_H
#define ELASTIC_FILES_H

#include <stddef.h>
#include <sys/types.h>

#include "lib/error.h"

/* Replace path by data: temporary name in the same directory, fsync, rename. */
int file_replace(const char *path, const void *data, size_t len, mode_t mode, struct error *err);
/* Append one line (O_APPEND, 0600, one write). */
int file_append(const char *path, const char *line, struct error *err);
/* Make a directory and its parents, 0700 for those it makes; an existing last one must be a directory of the own uid. */
int dir_make(const char *path, struct error *err);
/* Remove a directory of ours and everything in it; symlinks are removed, not followed. Missing is success. */
int dir_remove(const char *path, struct error *err);
/* Read at most max bytes of a regular file into a new NUL-terminated buffer. */
char *file_read(const char *path, size_t max, size_t *len, struct error *err);

#endif

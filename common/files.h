/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Small file helpers: atomic replacement, appending, directories, removal.
 *
 * They do not follow what other users put in the way. Functions that return int return 0, or -1
 * with err naming the path and the reason. On failure errno is the reason as well (file_read:
 * ENOENT where there is no file). */
#ifndef ELASTIC_FILES_H
#define ELASTIC_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "lib/error.h"

/* Replace path by data: a temporary name in the same directory, fsync, rename. A reader sees the
 * old file or the new file. A symlink at path is replaced, not followed. On failure path is
 * unchanged and the temporary file is removed. */
int file_replace(const char *path, const void *data, size_t len, mode_t mode, struct error *err);

/* Write all of it to an open file. 0, or -1 with errno. */
int file_write_all(int fd, const void *data, size_t len);
/* … at that place of the file, beside other threads. */
int file_write_at(int fd, const void *data, size_t len, int64_t at);

/* Append one line (O_APPEND, 0600, one write); the line break is added, also to a last line that
 * has none. The last component must not be a symlink. A text with a line break in it is refused. */
int file_append(const char *path, const char *line, struct error *err);

/* Make a directory and its missing parents with mode 0700. An existing last directory must belong
 * to this user, and must not be a symlink. */
int dir_make(const char *path, struct error *err);
/* The same for a directory that the user has not named. A parent is refused that another user has
 * made where any user may: that user could put another directory in the place of this one. */
int dir_make_private(const char *path, struct error *err);
/* Has another user made it, in a directory where any user may? Neither root nor the owner of that
 * directory counts as one. *above describes that directory, *st then this one. */
bool dir_is_strangers(const char *path, const struct stat *above, struct stat *st);

/* Remove a directory of this user and everything in it. Symlinks are removed, not followed; what is
 * mounted inside is left alone. A missing directory is success. Anything but a directory of this
 * user is refused. */
int dir_remove(const char *path, struct error *err);
/* The same of an entry of an open directory. path is what it is called, for people. */
int dir_remove_at(int dir, const char *name, const char *path, struct error *err);
/* How else. */
struct dir_removal {
    /* Once it is open: is it the right one? Another one stays (EPERM). NULL: each is. */
    bool (*is)(const struct stat *st, const void *is_arg);
    const void *is_arg;
    /* Asked again and again: is it to be given up (ECANCELED)? Others may fill it without an end.
     * NULL: it is not. */
    bool (*stops)(void *stops_arg);
    void *stops_arg;
    bool keep; /* the directory itself, which has to be there */
};
int dir_remove_so(const char *path, const struct dir_removal *how, struct error *err);

/* Read at most max bytes of a regular file into a new NUL-terminated buffer (*len is without the
 * NUL; len may be NULL). A directory, device, FIFO or socket is refused without waiting. A larger
 * file is refused without reading it. NULL with err. */
char *file_read(const char *path, size_t max, size_t *len, struct error *err);

#endif

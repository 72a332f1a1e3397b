/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Entries of directories in which anything may lie: nothing is followed, waited for, or read without a bound. */
#ifndef ELASTIC_COMMON_ENTRY_H
#define ELASTIC_COMMON_ENTRY_H

#include <dirent.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "lib/error.h"

/* Open a directory or a regular file (type is S_IFDIR or S_IFREG) of dir for reading, and describe it in *st. The descriptor, or -1
 * with err and errno (ENOENT: it is not there). */
int entry_open(int dir, const char *name, mode_t type, struct stat *st, struct error *err);

/* The same for one that must belong to this process's user. */
int entry_open_own(int dir, const char *name, mode_t type, struct stat *st, struct error *err);

/* The text of an open file of at most max bytes, with a NUL behind it; a new string, or NULL with err. */
char *entry_text(int fd, size_t max, size_t *len, struct error *err);

/* Remove a directory and the files in it. One with directories in it stays. 0, or -1 with errno. */
int entry_remove(int dir, const char *name);

/* List a directory that is open, and stays so; NULL with errno. End it with closedir(). */
DIR *entry_list(int dir);

/* The next name, but for "." and ".."; NULL with errno 0 at the end. */
const char *entry_next(DIR *list);

#endif

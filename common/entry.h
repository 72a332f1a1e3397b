/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Entries of directories with untrusted contents.
 *
 * No link is followed, no open waits, and no file is read without a bound. */
#ifndef ELASTIC_COMMON_ENTRY_H
#define ELASTIC_COMMON_ENTRY_H

#include <dirent.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "lib/error.h"

/* Open a directory or a regular file (type is S_IFDIR or S_IFREG) of dir for reading, and describe
 * it in *st. Returns the descriptor, or -1 with err and errno (ENOENT: there is no such entry). */
int entry_open(int dir, const char *name, mode_t type, struct stat *st, struct error *err);

/* The same for an entry that must belong to this process's user. */
int entry_open_own(int dir, const char *name, mode_t type, struct stat *st, struct error *err);

/* The same two, and never what is mounted on the entry (errno EXDEV): a file system of a user's own
 * may never answer. */
int entry_open_same(int dir, const char *name, mode_t type, struct stat *st, struct error *err);
int entry_open_own_same(int dir, const char *name, mode_t type, struct stat *st, struct error *err);

/* Open what a descriptor has found (O_PATH), or has open already, with other flags. The new
 * descriptor, or -1 with errno; the old one is closed in any case. */
int entry_reopen(int found, int flags);

/* A descriptor of whatever has that name in dir, a link as well, to look at it only (O_PATH): what
 * is mounted there is not asked. -1 with errno, EXDEV for a mount. */
int entry_find_same(int dir, const char *name);

/* Describe whatever has that name in dir, or at that path (AT_FDCWD), by what the kernel has. A
 * file system that a user has mounted there is not asked: it may never answer. 0; -1 with errno. */
int entry_look(int dir, const char *name, struct statx *st);

/* The number of the mount on which an open file lies, as in /proc/self/mountinfo. -1: unknown. */
int entry_mount(int fd);

/* Open what an absolute path names, without a link on the way, at its end too (ELOOP). Describes it
 * in *st. A directory or a regular file is opened for reading. Anything else has only been found
 * (O_PATH): whoever writes to a FIFO, or a device, does not notice. The descriptor, or -1 with
 * errno. */
int entry_open_path(const char *path, struct stat *st);

/* The text of an open file of at most max bytes, with a NUL behind it. A new string, or NULL with
 * err. */
char *entry_text(int fd, size_t max, size_t *len, struct error *err);

/* Remove the files in an open directory, as far as that can be done. */
void entry_remove_files(int dir);

/* Remove a directory and the files in it. A directory with directories in it stays. 0, or -1 with
 * errno. */
int entry_remove(int dir, const char *name);

/* List an open directory, which stays open. NULL with errno. Free with closedir(). */
DIR *entry_list(int dir);

/* The next name, but for "." and ".."; NULL with errno 0 at the end. */
const char *entry_next(DIR *list);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Room for later in a run directory (reserve_file.h). */
#include "agent/reserve_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME  "spare"
#define BYTES (256 << 10)

int reserve_file_make(const char *directory, struct error *err)
{
    char name[PATH_MAX];
    int fd = -1, rc;

    if (snprintf(name, sizeof(name), "%s/" NAME, directory) < (int)sizeof(name))
        fd = open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    rc = fd >= 0 ? posix_fallocate(fd, 0, BYTES) : errno;
    if (fd >= 0)
        close(fd);
    if (rc == 0)
        return 0;
    unlink(name);
    return error_set(err, "%s: no room for %d bytes: %s", directory, BYTES, strerror(rc));
}

/* Open the reserve file of the directory that `path` is in, if there is one. */
static int open_beside(const char *path)
{
    const char *slash = strrchr(path, '/');
    char name[PATH_MAX];

    if (slash == NULL ||
        snprintf(name, sizeof(name), "%.*s/" NAME, (int)(slash - path), path) >= (int)sizeof(name))
        return -1;
    return open(name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
}

bool reserve_file_give(const char *path, int bytes)
{
    int fd = open_beside(path);
    struct stat st;
    bool given;

    if (fd < 0)
        return false;
    given = fstat(fd, &st) == 0 && st.st_size >= bytes && ftruncate(fd, st.st_size - bytes) == 0;
    close(fd);
    return given;
}

void reserve_file_refill(const char *path)
{
    int fd = open_beside(path);
    struct stat st;

    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && st.st_size < BYTES)
        posix_fallocate(fd, 0, BYTES);
    close(fd);
}

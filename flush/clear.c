/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Removal of a run directory (clear.h). */
#include "flush/clear.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/entry.h"
#include "common/stop.h"

#define DEPTH_MAX 100 /* each level holds two descriptors */
/* Some file systems leave names out of a listing while other names of it are removed. */
#define TRIES 3

/* A tree that is being removed. */
struct clearing {
    int top;
    dev_t device;
    unsigned int moved;      /* directories that were too deep, and have been moved to the top */
    const char *const *keep; /* names at the top that stay; ends with NULL */
};

static int failed(const char *name, struct error *err)
{
    int reason = errno;

    error_set(err, "cannot remove %s: %s", error_value(name).text, strerror(reason));
    errno = reason;
    return -1;
}

static int clear(struct clearing *clearing, int dir, int depth, struct error *err);

/* The owner can open a directory that he has closed to himself. */
static int open_directory(int dir, const char *name, struct stat *st, struct error *err)
{
    int fd = entry_open(dir, name, S_IFDIR, st, err);

    if (fd >= 0 || errno != EACCES || fchmodat(dir, name, 0700, 0) != 0)
        return fd;
    return entry_open(dir, name, S_IFDIR, st, err);
}

/* A directory that is too deep is moved to the top, and removed from there. */
static int lift(struct clearing *clearing, int dir, const char *name, int fd, struct error *err)
{
    char lifted[48]; /* a name that no process has made before */

    fchmod(fd, 0700); /* its ".." is written to */
    snprintf(lifted, sizeof(lifted), ".deep-%d-%u", (int)getpid(), clearing->moved++);
    return renameat(dir, name, clearing->top, lifted) == 0 ? 0 : failed(name, err);
}

static int clear_below(struct clearing *clearing, int dir, const char *name, int depth,
                       struct error *err)
{
    struct stat st;
    int rc, fd = open_directory(dir, name, &st, err);

    if (fd < 0)
        return errno == ENOENT ? 0 : -1;
    if (st.st_dev != clearing->device) {
        close(fd);
        errno = EBUSY;
        return failed(name, err);
    }
    rc = depth < DEPTH_MAX ? clear(clearing, fd, depth + 1, err)
                           : lift(clearing, dir, name, fd, err);
    close(fd);
    return rc;
}

static int remove_entry(struct clearing *clearing, int dir, const char *name, int depth,
                        struct error *err)
{
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : failed(name, err);
    if (!S_ISDIR(st.st_mode))
        return unlinkat(dir, name, 0) == 0 || errno == ENOENT ? 0 : failed(name, err);
    if (clear_below(clearing, dir, name, depth, err) != 0)
        return -1;
    return unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : failed(name, err);
}

static bool stays(const struct clearing *clearing, const char *name)
{
    for (int i = 0; clearing->keep != NULL && clearing->keep[i] != NULL; i++)
        if (strcmp(clearing->keep[i], name) == 0)
            return true;
    return false;
}

/* Go on after a failure, so that as little as possible stays. Sets *found if there was anything. */
static int clear_once(struct clearing *clearing, int dir, int depth, bool *found, struct error *err)
{
    DIR *list = entry_list(dir);
    const char *name;
    int rc = list != NULL ? 0 : failed(".", err), reason = errno;

    while (list != NULL && !stop_asked() && (name = entry_next(list)) != NULL) {
        if (depth == 0 && stays(clearing, name))
            continue;
        *found = true;
        if (remove_entry(clearing, dir, name, depth, rc == 0 ? err : NULL) != 0 && rc == 0) {
            rc = -1;
            reason = errno;
        }
    }
    if (list != NULL)
        closedir(list);
    if (!stop_asked()) {
        errno = reason;
        return rc;
    }
    errno = EINTR;
    return failed("all", err);
}

static int clear(struct clearing *clearing, int dir, int depth, struct error *err)
{
    unsigned int moved = clearing->moved;
    bool found = true;
    int rc = 0;

    fchmod(dir, 0700); /* the directory may lack write permission */
    for (int i = 0; i < TRIES && rc == 0 && found; i++) {
        found = false;
        rc = clear_once(clearing, dir, depth, &found, err);
        /* Each pass removes another hundred levels. */
        if (depth == 0 && clearing->moved != moved)
            i = -1;
        moved = clearing->moved;
    }
    return rc;
}

int clear_directory(int dir, const char *const *keep, struct error *err)
{
    struct clearing clearing = {.top = dir, .keep = keep};
    struct stat st;

    if (fstat(dir, &st) != 0)
        return failed(".", err);
    clearing.device = st.st_dev;
    return clear(&clearing, dir, 0, err);
}

bool clear_is_empty(int dir)
{
    DIR *list = entry_list(dir);
    bool empty = list != NULL && entry_next(list) == NULL && errno == 0;

    if (list != NULL)
        closedir(list);
    return empty;
}

time_t clear_last_use(int dir)
{
    static const char *const places[] = {".", "snapshot", "snapshot/0", "snapshot/1"};
    time_t last = 0;
    struct stat st;

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        if (fstatat(dir, places[i], &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ctime > last)
            last = st.st_ctime;
    return last;
}

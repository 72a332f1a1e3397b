/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Removal of a run directory (clear.h). */
#include "flush/clear.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/entry.h"
#include "common/mounted.h"
#include "common/stop.h"

#define DEPTH_MAX 100 /* each level holds two descriptors */
/* Some file systems leave names out of a listing while other names of it are removed. */
#define TRIES 3

/* A tree that is being removed. */
struct clearing {
    int top;
    bool as_root;            /* of a user, with the rights of root */
    bool unmounts;           /* what users have mounted */
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

/* The directory may lack write permission. Root takes it from its user: from here on no process of
 * the user, whatever it has open, makes, moves or mounts anything in it. */
static int take(const struct clearing *clearing, int dir)
{
    return clearing->as_root && fchown(dir, 0, 0) != 0 ? -1 : fchmod(dir, 0700);
}

/* The owner can open a directory that he has closed to himself. */
static int open_directory(const struct clearing *clearing, int dir, const char *name,
                          struct stat *st, struct error *err)
{
    int fd = entry_open_same(dir, name, S_IFDIR, st, err);

    if (fd >= 0 || errno != EACCES || clearing->as_root || fchmodat(dir, name, 0700, 0) != 0)
        return fd;
    return entry_open_same(dir, name, S_IFDIR, st, err);
}

/* A directory that is too deep is moved to the top, and removed from there. */
static int lift(struct clearing *clearing, int dir, const char *name, int fd, struct error *err)
{
    char lifted[48]; /* a name that nobody knows before */
    unsigned long long number = 0;

    take(clearing, fd); /* its ".." is written to */
    clearing->moved++;
    if (getrandom(&number, sizeof(number), 0) != sizeof(number))
        return failed(name, err);
    snprintf(lifted, sizeof(lifted), ".deep-%llx", number);
    return renameat(dir, name, clearing->top, lifted) == 0 ? 0 : failed(name, err);
}

static int clear_below(struct clearing *clearing, int dir, const char *name, int depth,
                       struct error *err)
{
    struct stat st; /* of a subvolume (btrfs) the device is another: no mount, and the user's */
    int rc, reason, fd = open_directory(clearing, dir, name, &st, err);

    if (fd < 0)
        return errno == ENOENT ? 0 : -1;
    rc = depth < DEPTH_MAX ? clear(clearing, fd, depth + 1, err)
                           : lift(clearing, dir, name, fd, err);
    reason = errno;
    close(fd);
    errno = reason;
    return rc;
}

static int remove_once(struct clearing *clearing, int dir, const char *name, int depth,
                       struct error *err)
{
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR)
        return failed(name, err);
    if (clear_below(clearing, dir, name, depth, err) != 0)
        return -1;
    return unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : failed(name, err);
}

/* What an admin has mounted stays. */
static bool is_mount_of_user(int dir, const char *name)
{
    int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    char *line = fd >= 0 ? mounted_line(fd) : NULL;
    bool is = line != NULL && mounted_by_user(line);

    free(line);
    if (fd >= 0)
        close(fd);
    return is;
}

bool clear_unmount(int dir, const char *name)
{
    if (!is_mount_of_user(dir, name)) {
        errno = EBUSY;
        return false;
    }
    return fchdir(dir) == 0 && umount2(name, MNT_DETACH | UMOUNT_NOFOLLOW) == 0;
}

/* The kernel neither opens nor removes what something is mounted on, and asks no file system about
 * it. */
static int remove_entry(struct clearing *clearing, int dir, const char *name, int depth,
                        struct error *err)
{
    for (int mounts = 0;; mounts++) {
        int rc = remove_once(clearing, dir, name, depth, err), reason = errno;

        if (rc == 0 || (reason != EXDEV && reason != EBUSY) || !clearing->unmounts ||
            mounts >= CLEAR_MOUNTS_MAX || stop_asked() || !clear_unmount(dir, name)) {
            errno = reason;
            return rc;
        }
    }
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

    if (take(clearing, dir) != 0 && clearing->as_root)
        return failed(".", err);
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

    return clear(&clearing, dir, 0, err);
}

int clear_as_root(int dir, bool unmounts, struct error *err)
{
    struct clearing clearing = {.top = dir, .as_root = true, .unmounts = unmounts};

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

static void look_at_use(int dir, const char *name, time_t *last)
{
    struct statx st;

    if (entry_look(dir, name, &st) == 0 && st.stx_ctime.tv_sec > *last)
        *last = st.stx_ctime.tv_sec;
}

bool clear_is_old(int dir, int seconds)
{
    time_t last = 0;
    struct stat st;
    int snapshot = entry_open_same(dir, "snapshot", S_IFDIR, &st, NULL);

    look_at_use(dir, ".", &last);
    look_at_use(dir, "snapshot", &last);
    if (snapshot >= 0) {
        look_at_use(snapshot, "0", &last);
        look_at_use(snapshot, "1", &last);
        close(snapshot);
    }
    return time(NULL) - last > seconds;
}

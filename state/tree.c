/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files below a directory (tree.h). */
#include "state/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/entry.h"

/* glibc has no function for it. */
static int open_beneath(int dir, const char *path, int flags, mode_t mode)
{
    struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK),
                           .mode = mode,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
                                      RESOLVE_NO_MAGICLINKS};

    return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

static int failed(const char *path, struct error *err)
{
    int saved = errno;

    error_set(err, "%s: %s", error_path(path).text, strerror(saved));
    errno = saved;
    return -1;
}

int tree_open(int dir, const char *path, int64_t *bytes, struct error *err)
{
    struct stat st;
    int fd = open_beneath(dir, path, O_RDONLY, 0);

    if (fd < 0)
        return failed(path, err);
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        *bytes = st.st_size;
        return fd;
    }
    close(fd);
    errno = EINVAL;
    return error_set(err, "%s is no regular file", error_path(path).text);
}

static int make_directories(int dir, const char *path, struct error *err)
{
    char part[PATH_MAX];

    for (const char *slash = path; (slash = strchr(slash, '/')) != NULL; slash++) {
        const char *name;
        size_t len = (size_t)(slash - path);
        int parent, rc;

        if (len >= sizeof(part))
            return error_set(err, "%s: too long", error_path(path).text);
        memcpy(part, path, len);
        part[len] = '\0';
        name = strrchr(part, '/');
        if (name == NULL) {
            rc = mkdirat(dir, part, 0700);
        } else {
            char above[PATH_MAX];

            snprintf(above, sizeof(above), "%.*s", (int)(name - part), part);
            parent = open_beneath(dir, above, O_RDONLY | O_DIRECTORY, 0);
            rc = parent >= 0 ? mkdirat(parent, name + 1, 0700) : -1;
            if (parent >= 0)
                close(parent);
        }
        if (rc != 0 && errno != EEXIST)
            return failed(part, err);
    }
    return 0;
}

int tree_make(int dir, const char *path, struct error *err)
{
    int fd;

    if (make_directories(dir, path, err) != 0)
        return -1;
    fd = open_beneath(dir, path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    return fd >= 0 ? fd : failed(path, err);
}

/* ---- walking --------------------------------------------------------------------------------- */

struct walk {
    int dir;            /* the one at the top */
    const uid_t *owner; /* of all directories; NULL: anybody */
    int (*each)(const char *path, int64_t bytes, void *arg, struct error *err); /* NULL: flush */
    void *arg;
};

static int walk_directory(const struct walk *walk, const char *path, int depth, struct error *err);

static int visit(const struct walk *walk, int fd, const char *name, const char *path, int depth,
                 struct error *err)
{
    struct stat st;

    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return failed(path, err);
    if (S_ISDIR(st.st_mode))
        return walk_directory(walk, path, depth + 1, err);
    if (!S_ISREG(st.st_mode))
        return error_set(err, "%s is no regular file", error_path(path).text);
    return walk->each != NULL ? walk->each(path, st.st_size, walk->arg, err) : 0;
}

static int walk_open(const struct walk *walk, int fd, const char *path, int depth,
                     struct error *err)
{
    DIR *list = entry_list(fd);
    const char *name;
    int rc = 0;

    if (list == NULL)
        return failed(path, err);
    while (rc == 0 && (name = entry_next(list)) != NULL) {
        char below[PATH_MAX];
        int len = path[0] != '\0' ? snprintf(below, sizeof(below), "%s/%s", path, name)
                                  : snprintf(below, sizeof(below), "%s", name);

        rc = len < (int)sizeof(below) ? visit(walk, fd, name, below, depth, err)
                                      : error_set(err, "%s: too long", error_path(path).text);
    }
    closedir(list);
    if (rc == 0 && walk->each == NULL && fsync(fd) != 0)
        rc = failed(path, err);
    return rc;
}

static int check_directory(const struct walk *walk, int fd, const char *path, struct error *err)
{
    struct stat st;

    if (walk->owner == NULL)
        return 0;
    if (fstat(fd, &st) != 0)
        return failed(path, err);
    if (st.st_uid == *walk->owner)
        return 0;
    errno = EPERM;
    return error_set(err, "%s: a directory of another user", error_path(path).text);
}

static int walk_directory(const struct walk *walk, const char *path, int depth, struct error *err)
{
    int fd, rc;

    if (depth > TREE_DEPTH_MAX)
        return error_set(err, "%s: more than %d directories deep", error_path(path).text,
                         TREE_DEPTH_MAX);
    fd = open_beneath(walk->dir, path[0] != '\0' ? path : ".", O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return failed(path, err);
    rc = check_directory(walk, fd, path, err);
    if (rc == 0)
        rc = walk_open(walk, fd, path, depth, err);
    close(fd);
    return rc;
}

int tree_walk(int dir, int (*each)(const char *path, int64_t bytes, void *arg, struct error *err),
              void *arg, struct error *err)
{
    const struct walk walk = {.dir = dir, .each = each, .arg = arg};

    return walk_directory(&walk, "", 0, err);
}

int tree_walk_of(int dir, uid_t owner,
                 int (*each)(const char *path, int64_t bytes, void *arg, struct error *err),
                 void *arg, struct error *err)
{
    const struct walk walk = {.dir = dir, .owner = &owner, .each = each, .arg = arg};

    return walk_directory(&walk, "", 0, err);
}

int tree_flush(int dir, struct error *err)
{
    const struct walk walk = {.dir = dir};

    return walk_directory(&walk, "", 0, err);
}

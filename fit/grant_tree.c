/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files of this user below a path (grant_tree.h). */
#include "fit/grant_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/entry.h"

static int failed(const char *path, struct error *err)
{
    return error_set(err, "%s: %s", error_path(path).text, strerror(errno));
}

static int walk_at(const struct grant_walk *walk, int fd, const char *path, const struct stat *st,
                   int depth, struct error *err);

/* It could not be opened. What was there a moment ago, and is not, hides nothing; nor does what
 * others have there. */
static int is_out_of_reach(const struct grant_walk *walk, const char *path, const struct stat *st,
                           struct error *err)
{
    if (errno == ENOENT || errno == ELOOP || errno == ENOTDIR || st->st_uid != geteuid())
        return 0;
    if (walk->lose == NULL || errno != EACCES)
        return failed(path, err);
    walk->lose(walk, path, st);
    return 0;
}

static int walk_entry(const struct grant_walk *walk, int dir, const char *name, const char *path,
                      int depth, struct error *err)
{
    struct stat st, opened;
    int fd, rc;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : failed(path, err);
    if (!S_ISDIR(st.st_mode) && (!S_ISREG(st.st_mode) || st.st_uid != geteuid()))
        return 0;
    fd = entry_open(dir, name, st.st_mode & S_IFMT, &opened, NULL);
    if (fd < 0)
        return is_out_of_reach(walk, path, &st, err);
    rc = walk_at(walk, fd, path, &opened, depth, err);
    close(fd);
    return rc;
}

static int walk_below(const struct grant_walk *walk, int fd, const char *path,
                      const struct stat *st, int depth, struct error *err)
{
    const char *name;
    DIR *list;
    int rc = 0;

    if (depth == GRANT_DEPTH_MAX) /* access is given to nothing that is deeper */
        return walk->withdraws ? 0
                               : error_set(err, "%s: more than %d directories deep",
                                           error_path(path).text, GRANT_DEPTH_MAX);
    list = entry_list(fd);
    if (list == NULL)
        return is_out_of_reach(walk, path, st, err);
    while ((rc == 0 || walk->withdraws) && (name = entry_next(list)) != NULL) {
        char below[PATH_MAX];
        struct error why;

        if ((snprintf(below, sizeof(below), "%s/%s", path, name) < (int)sizeof(below)
                 ? walk_entry(walk, fd, name, below, depth + 1, &why)
                 : error_set(&why, "%s: too long", error_path(path).text)) == 0 ||
            rc != 0)
            continue;
        *err = why;
        rc = -1;
    }
    closedir(list);
    return rc;
}

static int each(const struct grant_walk *walk, int fd, const char *path, const struct stat *st,
                struct error *err)
{
    return st->st_uid == geteuid() ? walk->each(walk, fd, path, st, err) : 0;
}

static int walk_at(const struct grant_walk *walk, int fd, const char *path, const struct stat *st,
                   int depth, struct error *err)
{
    struct error why;
    int rc;

    if (!S_ISDIR(st->st_mode))
        return each(walk, fd, path, st, err);
    if (!walk->withdraws)
        return walk_below(walk, fd, path, st, depth, err) == 0 ? each(walk, fd, path, st, err) : -1;
    rc = each(walk, fd, path, st, err);
    if (walk_below(walk, fd, path, st, depth, &why) == 0 || rc != 0)
        return rc;
    *err = why;
    return -1;
}

int grant_walk_tree(const struct grant_walk *walk, int fd, const char *path, const struct stat *st,
                    bool tree, struct error *err)
{
    return tree ? walk_at(walk, fd, path, st, 0, err) : walk->each(walk, fd, path, st, err);
}

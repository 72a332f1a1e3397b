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
#include "common/log.h"
#include "fit/acl.h"
#include "fit/room.h"
#include "state/tree.h"

#define UNSEEN 1 /* what cannot even be looked at, for the reason in errno */

/* Who else than this user may put files to a place: nobody, a group, or anybody. */
struct writers {
    bool some, any;
    gid_t group;
};

struct walking {
    const struct grant_walk *walk;
    int64_t names; /* seen so far */
    bool said;     /* that something is left as it is */
};

/* An open directory. */
struct place {
    int fd;
    const char *path;
    const struct stat *st;
    struct writers writers; /* there, and above */
    int depth;
};

static int failed(const char *path, struct error *err)
{
    return error_set(err, "%s: %s", error_path(path).text, strerror(errno));
}

static int walk_at(struct walking *walking, const struct place *place, struct error *err);

/* ---- what is left out ------------------------------------------------------------------------ */

/* It could not be opened. What was there a moment ago, and is not, hides nothing; nor does what
 * others have there. */
static int is_out_of_reach(const struct walking *walking, const char *path, const struct stat *st,
                           struct error *err)
{
    if (errno == ENOENT || errno == ELOOP || errno == ENOTDIR || st->st_uid != geteuid())
        return 0;
    if (walking->walk->lose == NULL || (errno != EACCES && errno != ENOTCONN))
        return failed(path, err);
    walking->walk->lose(walking->walk, path, st);
    return 0;
}

/* Access is given to nothing that is so deep. Others can make it at any time, as many as they
 * like: it keeps no access from its end. */
static int leave(struct walking *walking, struct error *err)
{
    if (!walking->walk->withdraws)
        return -1;
    if (!walking->said)
        log_error("%s: it is left as it is", err->text);
    walking->said = true;
    return 0;
}

/* ---- who may have put it there --------------------------------------------------------------- */

/* Whoever may write in this directory, but for that user. */
static int add_writers(struct place *place, uid_t uid, struct error *err)
{
    const struct stat *st = place->st;
    struct writers *writers = &place->writers;
    bool own = st->st_uid == geteuid() || st->st_uid == 0, named;

    if (acl_names_writer(place->fd, place->path, uid, &named, err) != 0)
        return -1;
    if (own && (st->st_mode & (S_IWGRP | S_IWOTH)) == 0 && !named)
        return 0;
    writers->any = writers->any || !own || named || (st->st_mode & S_IWOTH) != 0 ||
                   (writers->some && writers->group != st->st_gid);
    writers->some = true;
    writers->group = st->st_gid;
    return 0;
}

/* A directory above the top. Below a sticky bit, its owner alone renames what is not his: what
 * belongs to others than this user and root has been counted as such, or is not opened. */
static int add_dir_above(struct place *top, const char *path, struct error *err)
{
    struct place above = {.path = path, .writers = top->writers};
    struct stat st;
    int rc;

    above.fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (above.fd < 0)
        return failed(path, err);
    above.st = &st;
    rc = fstat(above.fd, &st) == 0 ? 0 : failed(path, err);
    if (rc == 0 && ((st.st_mode & S_ISVTX) == 0 || (st.st_uid != geteuid() && st.st_uid != 0)))
        rc = add_writers(&above, geteuid(), err);
    close(above.fd);
    top->writers = above.writers;
    return rc;
}

/* Whoever may rename in a directory above the top could have put another one there. */
static int add_above(struct place *top, struct error *err)
{
    char part[PATH_MAX];

    for (const char *slash = strchr(top->path, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof(part), "%.*s", (int)(slash - top->path) + 1, top->path);
        if (add_dir_above(top, part, err) != 0)
            return -1;
    }
    return 0;
}

/* Whether those who may write above have the right themselves, which others and the group have by
 * these bits. */
static int others_may(const struct place *place, mode_t other, mode_t group_bit, bool *may,
                      struct error *err)
{
    const struct writers *writers = &place->writers;
    const struct acl_user group = {.uid = (uid_t)-1, .groups = &writers->group, .count = 1};

    *may = !writers->some || (place->st->st_mode & other) != 0;
    return !*may && !writers->any && (place->st->st_mode & group_bit) != 0
               ? acl_lets(place->fd, place->path, &group, may, err)
               : 0;
}

/* Whoever may write above could have moved another file of this user there. That is nothing to be
 * opened, unless they can read it themselves. A directory may keep them from what they could read.
 */
static int check_moved(const struct walking *walking, const struct place *place, struct error *err)
{
    bool file = !S_ISDIR(place->st->st_mode), may;

    if (walking->walk->withdraws)
        return 0;
    if (others_may(place, file ? S_IROTH : S_IXOTH, file ? S_IRGRP : S_IXGRP, &may, err) != 0)
        return -1;
    return may ? 0
               : error_set(err,
                           "%s: others may write to a directory above, and cannot %s: they may "
                           "have moved it there; let them (chmod g+%s), or take the directory "
                           "from them (chmod go-w)",
                           error_path(place->path).text,
                           file ? "read this file" : "enter this directory", file ? "r" : "rx");
}

/* ---- walking --------------------------------------------------------------------------------- */

static int walk_entry(struct walking *walking, const struct place *above, const char *name,
                      const char *path, struct error *err)
{
    struct place place = {.path = path, .writers = above->writers, .depth = above->depth + 1};
    struct stat st, opened;
    int rc;

    if (fstatat(above->fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT)
            return 0;
        return walking->walk->withdraws && (errno == EACCES || errno == ENOTCONN)
                   ? UNSEEN
                   : failed(path, err);
    }
    if ((!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) || st.st_uid != geteuid())
        return 0;
    place.fd = entry_open(above->fd, name, st.st_mode & S_IFMT, &opened, NULL);
    if (place.fd < 0)
        return is_out_of_reach(walking, path, &st, err);
    place.st = &opened;
    rc = walk_at(walking, &place, err);
    close(place.fd);
    return rc;
}

static int walk_name(struct walking *walking, const struct place *place, const char *name,
                     struct error *err)
{
    char below[PATH_MAX];

    if (!walking->walk->withdraws && ++walking->names > ROOM_FILES_MAX)
        return error_set(err, "%s: it has more than %d files and directories",
                         error_path(place->path).text, ROOM_FILES_MAX);
    if (snprintf(below, sizeof(below), "%s/%s", place->path, name) < (int)sizeof(below))
        return walk_entry(walking, place, name, below, err);
    error_set(err, "%s: too long", error_path(below).text);
    return leave(walking, err);
}

static int walk_list(struct walking *walking, const struct place *place, DIR *list,
                     struct error *err)
{
    bool withdraws = walking->walk->withdraws, unseen = false;
    const char *name;
    int rc = 0;

    while ((rc == 0 || withdraws) && (name = entry_next(list)) != NULL) {
        struct error why;
        int one = walk_name(walking, place, name, &why);

        /* What it is is not known: so the directory is what cannot be closed. */
        if (one == UNSEEN && !unseen) {
            unseen = true;
            one = is_out_of_reach(walking, place->path, place->st, &why);
        }
        if (one >= 0 || rc != 0)
            continue;
        *err = why;
        rc = -1;
    }
    return rc;
}

static int walk_below(struct walking *walking, const struct place *place, struct error *err)
{
    DIR *list;
    int rc;

    if (place->depth > TREE_DEPTH_MAX) {
        error_set(err, "%s: more than %d directories deep", error_path(place->path).text,
                  TREE_DEPTH_MAX);
        return leave(walking, err);
    }
    list = entry_list(place->fd);
    if (list == NULL)
        return is_out_of_reach(walking, place->path, place->st, err);
    rc = walk_list(walking, place, list, err);
    closedir(list);
    return rc;
}

static int each(const struct walking *walking, const struct place *place, struct error *err)
{
    const struct grant_walk *walk = walking->walk;

    return place->st->st_uid == geteuid() ? walk->each(walk, place->fd, place->path, place->st, err)
                                          : 0;
}

static int walk_at(struct walking *walking, const struct place *at, struct error *err)
{
    struct place place = *at;
    struct error why;
    int rc;

    if (!S_ISDIR(place.st->st_mode))
        return check_moved(walking, &place, err) == 0 ? each(walking, &place, err) : -1;
    if (!walking->walk->withdraws)
        return check_moved(walking, &place, err) == 0 &&
                       add_writers(&place, walking->walk->uid, err) == 0 &&
                       walk_below(walking, &place, err) == 0
                   ? each(walking, &place, err)
                   : -1;
    rc = each(walking, &place, err);
    if (walk_below(walking, &place, &why) == 0 || rc != 0)
        return rc;
    *err = why;
    return -1;
}

int grant_walk_tree(const struct grant_walk *walk, int fd, const char *path, const struct stat *st,
                    bool tree, struct error *err)
{
    struct walking walking = {.walk = walk};
    struct place place = {.fd = fd, .path = path, .st = st};

    if (walk->above && add_above(&place, err) != 0)
        return -1;
    return tree ? walk_at(&walking, &place, err) : walk->each(walk, fd, path, st, err);
}

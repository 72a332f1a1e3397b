/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A place for run directories on this node (place.h). */
#include "flush/place.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "common/entry.h"
#include "flush/clear.h"
#include "flush/mount.h"

#define DAY        86400
#define NOT_YET    ".not-" /* how the name of a directory begins that is being made */
#define LINKS_MAX  40      /* on a path, as the kernel has it */
#define LIST_LIMIT 30      /* seconds: where anybody can make files there may be millions */
/* The parts of the place, and of the node's memory, that one user may keep. */
#define PLACE_SHARE  4
#define MEMORY_SHARE 8

static bool others_write(const struct stat *st)
{
    return (st->st_mode & (st->st_gid != 0 ? S_IWOTH | S_IWGRP : S_IWOTH)) != 0;
}

/* A directory on the way, or a link there, which leads where its owner wants. */
static int check(const char *path, const struct stat *st, struct error *err)
{
    if (!S_ISDIR(st->st_mode) && !S_ISLNK(st->st_mode))
        return error_set(err, "%s: it is no directory", error_path(path).text);
    if (st->st_uid != 0 && st->st_uid != geteuid())
        return error_set(err, "%s belongs to uid %u: it must belong to root", error_path(path).text,
                         (unsigned int)st->st_uid);
    if (S_ISDIR(st->st_mode) && others_write(st) && (st->st_mode & S_ISVTX) == 0)
        return error_set(err, "%s has mode %o: others may write there, so it needs the sticky bit",
                         error_path(path).text, (unsigned int)st->st_mode & 07777);
    return 0;
}

/* A path, of which links are taken out. */
struct way {
    char real[PATH_MAX]; /* "" is the root */
    char rest[PATH_MAX]; /* still to go */
    int links;
};

/* Puts the link's target before the rest. */
static int follow(struct way *way, const char *target, size_t len)
{
    if (++way->links > LINKS_MAX || len + 1 + strlen(way->rest) >= sizeof(way->rest)) {
        errno = ELOOP;
        return -1;
    }
    memmove(way->rest + len + 1, way->rest, strlen(way->rest) + 1);
    memcpy(way->rest, target, len);
    way->rest[len] = '/';
    if (target[0] == '/')
        way->real[0] = '\0';
    return 0;
}

/* One name further. The directory in which it lies decides what it means. */
static int go(struct way *way, const char *name, struct error *err)
{
    char above[PATH_MAX], target[PATH_MAX];
    struct stat st;
    ssize_t len;

    strcpy(above, way->real);
    if (strcmp(name, "..") == 0) {
        *(strrchr(way->real, '/') != NULL ? strrchr(way->real, '/') : way->real) = '\0';
        return 0;
    }
    if (snprintf(way->real, PATH_MAX, "%s/%s", above, name) >= PATH_MAX)
        errno = ENAMETOOLONG;
    else if (lstat(way->real, &st) == 0) {
        if (check(way->real, &st, err) != 0) {
            errno = EPERM;
            return -1;
        }
        if (S_ISDIR(st.st_mode))
            return 0;
        len = readlink(way->real, target, sizeof(target));
        strcpy(way->real, above);
        if (len > 0 && follow(way, target, (size_t)len) == 0)
            return 0;
    }
    return error_set(err, "%s: %s", error_path(way->real).text, strerror(errno));
}

/* 0: way->real is the directory. -1 with err and errno. */
static int walk(struct way *way, struct error *err)
{
    struct stat st;

    if (stat("/", &st) != 0 || check("/", &st, err) != 0) {
        errno = EPERM;
        return -1;
    }
    while (way->rest[0] != '\0') {
        char name[PATH_MAX];
        size_t len = strcspn(way->rest, "/");

        snprintf(name, sizeof(name), "%.*s", (int)len, way->rest);
        len += way->rest[len] == '/';
        memmove(way->rest, way->rest + len, strlen(way->rest + len) + 1);
        if (name[0] != '\0' && strcmp(name, ".") != 0 && go(way, name, err) != 0)
            return -1;
    }
    return 0;
}

/* Is there a directory that is no run directory? Others may have let users write in it. */
static bool has_others(const struct place *place)
{
    DIR *list = entry_list(place->fd);
    const char *name;
    bool has = list == NULL;

    while (!has && (name = entry_next(list)) != NULL) {
        struct snapshot_run run;
        struct statx st = {0};

        if (strncmp(name, NOT_YET, strlen(NOT_YET)) != 0 &&
            snapshot_run_parse(name, &run, NULL) != 0)
            has = entry_look(place->fd, name, &st) == 0 && S_ISDIR(st.stx_mode);
    }
    if (list != NULL)
        closedir(list);
    return has;
}

int place_open(struct place *place, const char *path, struct error *err)
{
    struct way way = {.links = 0};
    struct stat st;

    *place = (struct place){.path = path, .fd = -1};
    errno = EINVAL;
    if (path[0] != '/' || snprintf(way.rest, sizeof(way.rest), "%s", path) >= PATH_MAX)
        return error_set(err, "%s: it is no absolute path", error_path(path).text);
    if (walk(&way, err) != 0)
        return -1;
    place->fd = open(way.real[0] != '\0' ? way.real : "/",
                     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (place->fd < 0)
        return error_set(err, "%s: %s", error_path(path).text, strerror(errno));
    place->own = fstat(place->fd, &st) == 0 && !others_write(&st);
    place->alone = place->own && mount_is_tmpfs(place->fd) && !has_others(place);
    return 0;
}

const struct place *place_first(const struct place places[PLACES_MAX])
{
    for (int i = 0; i < PLACES_MAX; i++)
        if (places[i].fd >= 0)
            return &places[i];
    return NULL;
}

void place_name(char name[PLACE_NAME_SIZE], const struct snapshot_run *run)
{
    snprintf(name, PLACE_NAME_SIZE, "elastic-%" PRIu32 "-%" PRIu32 ".%" PRIu32 "-%s", run->uid,
             run->job, run->restarts, run->node);
}

/* Is that of the place itself, and not of a file system that a user has mounted there? */
static bool is_of_place(const struct place *place, const struct statx *st)
{
    struct stat top;

    return fstat(place->fd, &top) == 0 &&
           makedev(st->stx_dev_major, st->stx_dev_minor) == top.st_dev;
}

/* Does what has that name belong to this user? A file system that a user has mounted there may
 * refuse to say what it is (EACCES), or say anything. */
static bool belongs(const struct place *place, const char *name, uid_t uid, struct statx *st)
{
    *st = (struct statx){0};
    if (entry_look(place->fd, name, st) != 0)
        return place->own && errno != ENOENT;
    return place->own || (st->stx_uid == uid && is_of_place(place, st));
}

bool place_has(const struct place *place, const struct snapshot_run *run)
{
    char name[PLACE_NAME_SIZE];
    struct statx st;

    place_name(name, run);
    return place->fd >= 0 && belongs(place, name, run->uid, &st);
}

void place_uncover(const struct place *place, const char *name)
{
    struct stat st;

    for (int i = 0; place->own && i < CLEAR_MOUNTS_MAX; i++) {
        int fd = entry_open_same(place->fd, name, S_IFDIR, &st, NULL);

        if (fd >= 0)
            close(fd);
        if (fd >= 0 || errno != EXDEV || !clear_unmount(place->fd, name))
            break;
    }
    if (chdir("/") != 0)
        errno = 0; /* it stays in the place, which is as good */
}

/* NULL, or what has failed. */
static const char *make(const struct place *place, const char *name, uid_t uid, gid_t gid)
{
    if (mkdirat(place->fd, name, 0700) != 0)
        return "mkdir";
    if (geteuid() != uid && fchownat(place->fd, name, uid, gid, AT_SYMLINK_NOFOLLOW) != 0)
        return "chown";
    return NULL;
}

/* The directory gets its name when it is the user's, so that nobody finds one of root's by that
 * name. An empty one, which another user may have made before us where everybody may write, is
 * replaced by it. Else the exchange leaves no moment in which he could make it again; what he has
 * made is removed if it is empty. */
static const char *make_named(const struct place *place, const char *name, uid_t uid, gid_t gid)
{
    char temporary[PLACE_NAME_SIZE + 32]; /* a name that nobody knows before */
    unsigned long long number = 0;
    const char *failed;
    int reason;

    if (getrandom(&number, sizeof(number), 0) != sizeof(number))
        return "getrandom";
    snprintf(temporary, sizeof(temporary), NOT_YET "%s-%llx", name, number);
    failed = make(place, temporary, uid, gid);
    if (failed == NULL && renameat(place->fd, temporary, place->fd, name) == 0)
        return NULL;
    if (failed == NULL && renameat2(place->fd, temporary, place->fd, name, RENAME_EXCHANGE) != 0)
        failed = "replace";
    reason = errno;
    if (failed == NULL || strcmp(failed, "mkdir") != 0) {
        if (unlinkat(place->fd, temporary, AT_REMOVEDIR) != 0)
            unlinkat(place->fd, temporary, 0);
    }
    errno = reason;
    return failed;
}

int place_make(const struct place *place, const struct snapshot_run *run, gid_t gid,
               struct error *err)
{
    char name[PLACE_NAME_SIZE];
    const char *failed;
    struct statx st;

    place_name(name, run);
    if (entry_look(place->fd, name, &st) == 0 && S_ISDIR(st.stx_mode) && st.stx_uid == run->uid &&
        is_of_place(place, &st))
        return 0;
    failed = make_named(place, name, run->uid, gid);
    if (failed == NULL)
        return 0;
    return error_set(err, "%s %s/%s: %s", failed, error_path(place->path).text, name,
                     strerror(errno));
}

void place_remove(const struct place *place, const char *name)
{
    if (place->fd >= 0)
        unlinkat(place->fd, name, AT_REMOVEDIR);
}

int place_newest_first(const void *a, const void *b)
{
    const struct snapshot_run *one = &((const struct place_run *)a)->run;
    const struct snapshot_run *other = &((const struct place_run *)b)->run;

    if (one->job != other->job)
        return one->job > other->job ? -1 : 1;
    return (one->restarts < other->restarts) - (one->restarts > other->restarts);
}

void place_each(const struct place *place, const char *node,
                void (*found)(void *arg, const struct snapshot_run *run), void *arg)
{
    DIR *dir = place->fd >= 0 ? entry_list(place->fd) : NULL;
    time_t began = time(NULL);
    const char *name;

    while (dir != NULL && time(NULL) - began < LIST_LIMIT && (name = entry_next(dir)) != NULL) {
        struct snapshot_run run;
        struct statx st;
        bool of_user;

        if (snapshot_run_parse(name, &run, NULL) != 0 || strcmp(run.node, node) != 0)
            continue;
        of_user = belongs(place, name, run.uid, &st);
        if (S_ISDIR(st.stx_mode) && began - st.stx_mtime.tv_sec > DAY)
            place_remove(place, name); /* which says itself whether it is empty */
        if (of_user)
            found(arg, &run);
    }
    if (dir != NULL)
        closedir(dir);
}

static bool is_crowded(const struct statfs *fs)
{
    return fs->f_type == TMPFS_MAGIC &&
           (fs->f_bfree < fs->f_blocks / 2 || (fs->f_files > 0 && fs->f_ffree < fs->f_files / 2));
}

int64_t place_share(const struct place *place)
{
    struct sysinfo memory;
    struct statfs fs;
    int64_t share;

    if (sysinfo(&memory) != 0 || fstatfs(place->fd, &fs) != 0 || is_crowded(&fs))
        return 0;
    share = (int64_t)memory.totalram * memory.mem_unit / MEMORY_SHARE;
    if (fs.f_blocks > 0 && (int64_t)fs.f_blocks * fs.f_bsize / PLACE_SHARE < share)
        share = (int64_t)fs.f_blocks * fs.f_bsize / PLACE_SHARE;
    return share;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a checkpoint directory has already (checkpoints.h). */
#include "common/checkpoints.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/entry.h"
#include "common/mounted.h"
#include "common/stop.h"
#include "common/writers.h"

/* A checkpoint may be of many files, unlike a snapshot. */
#define MANIFEST_MAX ((size_t)16 << 20)

bool checkpoints_trust(const struct stat *st, const struct stat *base)
{
    return st->st_uid == geteuid() || st->st_uid == 0 || st->st_uid == base->st_uid;
}

/* Entries are judged as the Python package does, which reads them (_opened.py): by their owner, and
 * where others can get, by who may write. */
struct judge {
    const struct stat *base; /* the directory of checkpoints */
    struct writers writers;
};

static bool is_safe(struct judge *judge, int fd, const struct stat *st, bool reachable)
{
    return checkpoints_trust(st, judge->base) &&
           !(reachable && writers_are_others(&judge->writers, fd, st));
}

/* Can others get to what is in that directory, if they can get to it? */
static bool lets_others_in(const struct stat *st)
{
    return (st->st_mode & 077) != 0;
}

/* New object, or NULL. */
static json_object *read_manifest(struct judge *judge, int dir, bool reachable,
                                  struct snapshot_key *key, json_object **files)
{
    json_object *root = NULL;
    struct stat st;
    size_t len = 0;
    int fd = entry_open(dir, SNAPSHOT_MANIFEST, S_IFREG, &st, NULL);
    char *text = fd >= 0 && is_safe(judge, fd, &st, reachable)
                     ? entry_text(fd, MANIFEST_MAX, &len, NULL)
                     : NULL;

    if (text != NULL)
        root = snapshot_parse_checkpoint(text, len, key, files, NULL);
    free(text);
    if (fd >= 0)
        close(fd);
    return root;
}

/* Where a link leads. -1 with errno. */
static int follow(int dir, int link)
{
    char target[PATH_MAX];
    ssize_t len = readlinkat(link, "", target, sizeof(target) - 1);

    if (len < 0)
        return -1;
    target[len] = '\0';
    return openat(dir, target, O_PATH | O_CLOEXEC);
}

/* An entry of a directory that others can reach, or cannot. A link of the user's own leads wherever
 * he wants, and others may be able to get there. -1: it does not count. */
static int find(struct judge *judge, int dir, const char *name, bool *reachable, struct stat *st)
{
    int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0 && fstat(fd, st) == 0 && S_ISLNK(st->st_mode)) {
        int to = is_safe(judge, fd, st, false) ? follow(dir, fd) : -1;

        close(fd);
        fd = to;
        *reachable = true;
    }
    if (fd < 0 || (fstat(fd, st) == 0 && is_safe(judge, fd, st, *reachable)))
        return fd;
    close(fd);
    return -1;
}

static bool is_name(const char *name)
{
    return name[0] != '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static bool has_file(struct judge *judge, int dir, bool reachable, const char *name,
                     json_object *size)
{
    char way[PATH_MAX], *rest = way;
    struct stat st = {0};
    int at = dir;

    if (!json_object_is_type(size, json_type_int) || strlen(name) >= sizeof(way))
        return false;
    strcpy(way, name);
    while (rest != NULL && at >= 0) {
        const char *entry = strsep(&rest, "/");
        int next = is_name(entry) ? find(judge, at, entry, &reachable, &st) : -1;

        if (at != dir)
            close(at);
        at = next;
        reachable = reachable && lets_others_in(&st);
    }
    if (at >= 0)
        close(at);
    return at >= 0 && S_ISREG(st.st_mode) && st.st_size == json_object_get_int64(size);
}

static bool has_files(struct judge *judge, int dir, bool reachable, json_object *files)
{
    json_object_object_foreach (files, name, size) {
        if (stop_asked() || !has_file(judge, dir, reachable, name, size))
            return false;
    }
    return true;
}

/* No file system is asked for it that is mounted there. */
static int find_entry(int dir, const char *name)
{
    return openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

/* Has somebody made or mounted what was found who is not trusted? */
static bool is_strange(int dir, int found)
{
    struct stat st, base;

    return (entry_mount(found) != entry_mount(dir) && mounted_by_stranger(found)) ||
           (fstat(found, &st) == 0 && fstat(dir, &base) == 0 && !checkpoints_trust(&st, &base));
}

bool checkpoints_is_stranger(int dir, const char *name)
{
    int found = find_entry(dir, name);
    bool is = found >= 0 && is_strange(dir, found);

    if (found >= 0)
        close(found);
    return is;
}

int checkpoints_open(int dir, const char *name, struct stat *st)
{
    int fd = find_entry(dir, name);

    if (fd >= 0 && is_strange(dir, fd)) {
        close(fd);
        return -1;
    }
    if (fd >= 0)
        fd = entry_reopen(fd, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, st) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

bool checkpoint_is_complete(int dir, const char *name, struct snapshot_key *key)
{
    json_object *files = NULL, *root = NULL;
    struct stat st, base;
    struct judge judge = {.base = &base};
    bool complete, reachable;
    int fd = checkpoints_open(dir, name, &st);

    if (fd < 0)
        return false;
    if (fstat(dir, &base) != 0) {
        close(fd);
        return false;
    }
    reachable = lets_others_in(&base) && lets_others_in(&st);
    if (is_safe(&judge, fd, &st, lets_others_in(&base)))
        root = read_manifest(&judge, fd, reachable, key, &files);
    complete = root != NULL && has_files(&judge, fd, reachable, files);
    json_object_put(root);
    close(fd);
    return complete;
}

bool checkpoints_is_free(int dir, const char *name)
{
    int found = find_entry(dir, name);

    if (found >= 0)
        close(found);
    return found < 0;
}

bool checkpoints_is_taken(int reason)
{
    return reason == EEXIST || reason == ENOTEMPTY || reason == ENOTDIR || reason == EISDIR ||
           reason == ELOOP || reason == EPERM || reason == EACCES || reason == EBUSY;
}

int64_t checkpoints_latest(int dir)
{
    char target[32];
    int64_t number;
    ssize_t len = 0;

    if (!checkpoints_is_stranger(dir, "latest")) /* first: what he has mounted may not answer */
        len = readlinkat(dir, "latest", target, sizeof(target));
    if (len <= 0 || (size_t)len == sizeof(target))
        return INT64_MAX;
    target[len] = '\0';
    number = snapshot_checkpoint_number(target);
    return number >= 0 ? number : INT64_MAX;
}

bool checkpoints_cover(int dir, const struct snapshot_key *key, char name[SNAPSHOT_NAME_SIZE])
{
    DIR *list = entry_list(dir);
    int64_t latest = checkpoints_latest(dir);
    const char *entry;
    bool found = false;

    while (list != NULL && !found && !stop_asked() && (entry = entry_next(list)) != NULL) {
        struct snapshot_key has;

        if (!snapshot_is_checkpoint_name(entry) || snapshot_checkpoint_number(entry) > latest ||
            !checkpoint_is_complete(dir, entry, &has) || !snapshot_key_covers(&has, key))
            continue;
        snprintf(name, SNAPSHOT_NAME_SIZE, "%s", entry);
        found = true;
    }
    if (list != NULL)
        closedir(list);
    return found;
}

void checkpoints_remove_leftovers(int dir, const char *node)
{
    DIR *list = entry_list(dir);
    const char *entry;

    while (list != NULL && !stop_asked() && (entry = entry_next(list)) != NULL) {
        int pid = snapshot_flushing_pid(entry, node);

        /* A file with our own process id belongs to an earlier process of that id. */
        if (pid > 0 && (pid == getpid() || (kill(pid, 0) != 0 && errno == ESRCH)))
            entry_remove(dir, entry);
    }
    if (list != NULL)
        closedir(list);
}

/* ---- parts of a sharded state ---------------------------------------------------------------- */

/* A directory in which nobody else writes. It is made if it is missing. */
static int open_below(int dir, const char *name, const struct stat *base)
{
    struct stat st;
    int fd;
    bool made = mkdirat(dir, name, 0700) == 0;

    if (made)
        fsync(dir);
    else if (errno != EEXIST)
        return -1;
    fd = entry_open(dir, name, S_IFDIR, &st, NULL);
    /* A file system that keeps no modes gives it that of base. */
    if (fd < 0 || (checkpoints_trust(&st, base) && (st.st_mode & 022 & ~base->st_mode) == 0 &&
                   faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) == 0))
        return fd;
    close(fd);
    if (made)
        unlinkat(dir, name, AT_REMOVEDIR);
    errno = EPERM;
    return -1;
}

/* One that was made before, so that there is not one for each snapshot. */
static int open_spare(int base, const struct stat *st)
{
    char name[32];
    DIR *list = entry_list(base);
    const char *entry;
    uint32_t random = 0;
    int fd = -1;

    while (list != NULL && fd < 0 && !stop_asked() && (entry = entry_next(list)) != NULL)
        if (snapshot_is_parts_name(entry) && strcmp(entry, SNAPSHOT_PARTS) != 0)
            fd = open_below(base, entry, st);
    if (list != NULL)
        closedir(list);
    if (fd >= 0 || getrandom(&random, sizeof(random), 0) < 0)
        return fd;
    snprintf(name, sizeof(name), SNAPSHOT_PARTS "-%08" PRIx32, random);
    return open_below(base, name, st);
}

int checkpoints_open_parts(int base, const char *node)
{
    struct stat st;
    int parts, fd, reason;

    if (fstat(base, &st) != 0)
        return -1;
    parts = open_below(base, SNAPSHOT_PARTS, &st);
    if (parts < 0 && checkpoints_is_taken(errno))
        parts = open_spare(base, &st);
    if (parts < 0)
        return -1;
    fd = open_below(parts, node, &st);
    reason = errno;
    close(parts);
    errno = reason;
    return fd;
}

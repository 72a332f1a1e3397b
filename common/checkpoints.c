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
#include "common/stop.h"

/* A checkpoint may be of many files, unlike a snapshot. */
#define MANIFEST_MAX ((size_t)16 << 20)

bool checkpoints_trust(const struct stat *st, const struct stat *base)
{
    return st->st_uid == geteuid() || st->st_uid == 0 || st->st_uid == base->st_uid;
}

/* New object, or NULL. */
static json_object *read_manifest(int dir, const struct stat *base, struct snapshot_key *key,
                                  json_object **files)
{
    json_object *root = NULL;
    struct stat st;
    size_t len = 0;
    int fd = entry_open(dir, SNAPSHOT_MANIFEST, S_IFREG, &st, NULL);
    char *text = fd >= 0 && checkpoints_trust(&st, base) ? entry_text(fd, MANIFEST_MAX, &len, NULL)
                                                         : NULL;

    if (text != NULL)
        root = snapshot_parse_checkpoint(text, len, key, files, NULL);
    free(text);
    if (fd >= 0)
        close(fd);
    return root;
}

/* A directory on the way, or the file: nobody else has put it there, or may put another in its
 * place. own is the checkpoint: what others cannot reach they cannot write into. */
static bool is_safe(int dir, const char *name, const struct stat *own, const struct stat *base)
{
    struct stat entry;
    bool others;

    if (fstatat(dir, name, &entry, AT_SYMLINK_NOFOLLOW) != 0 || !checkpoints_trust(&entry, base))
        return false;
    others = (entry.st_mode & 022) != 0 && (own->st_mode & 077) != 0;
    return !S_ISDIR(entry.st_mode) || !others;
}

/* A link of the user's own leads wherever he wants. */
static bool has_file(int dir, const char *name, json_object *size, const struct stat *own,
                     const struct stat *base)
{
    char way[PATH_MAX];
    struct stat st;

    if (!json_object_is_type(size, json_type_int) || strlen(name) >= sizeof(way))
        return false;
    for (const char *c = name; (c = strchr(c, '/')) != NULL; c++) {
        snprintf(way, sizeof(way), "%.*s", (int)(c - name), name);
        if (way[0] == '\0' || !is_safe(dir, way, own, base))
            return false;
    }
    return is_safe(dir, name, own, base) && fstatat(dir, name, &st, 0) == 0 &&
           st.st_size == json_object_get_int64(size);
}

static bool has_files(int dir, const struct stat *own, const struct stat *base, json_object *files)
{
    json_object_object_foreach (files, name, size) {
        if (stop_asked() || !has_file(dir, name, size, own, base))
            return false;
    }
    return true;
}

bool checkpoint_is_complete(int dir, const char *name, struct snapshot_key *key)
{
    json_object *files = NULL, *root;
    struct stat st, base;
    bool complete;
    int fd = entry_open(dir, name, S_IFDIR, &st, NULL);

    if (fd < 0)
        return false;
    root = fstat(dir, &base) == 0 && checkpoints_trust(&st, &base)
               ? read_manifest(fd, &base, key, &files)
               : NULL;
    complete = root != NULL && has_files(fd, &st, &base, files);
    json_object_put(root);
    close(fd);
    return complete;
}

bool checkpoints_is_stranger(int dir, const char *name)
{
    struct stat st, base;

    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && fstat(dir, &base) == 0 &&
           !checkpoints_trust(&st, &base);
}

bool checkpoints_is_taken(int reason)
{
    return reason == EEXIST || reason == ENOTEMPTY || reason == ENOTDIR || reason == EISDIR ||
           reason == ELOOP || reason == EPERM || reason == EACCES;
}

int64_t checkpoints_latest(int dir)
{
    char target[32];
    ssize_t len = readlinkat(dir, "latest", target, sizeof(target));
    int64_t number;

    if (len <= 0 || (size_t)len == sizeof(target) || checkpoints_is_stranger(dir, "latest"))
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

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A directory that is being written (target.h). */
#include "flush/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "common/checkpoints.h"
#include "common/entry.h"
#include "common/stop.h"
#include "flush/mount.h"

#define BLOCK ((size_t)1 << 20) /* read and written at once */
/* Written before the disk is waited for: an fsync() of all could not be stopped. */
#define UNSYNCED_MAX ((size_t)64 << 20)

struct target {
    struct snapshot_key key;
    char *path;
    int dir;
    int fd;       /* of the temporary directory */
    bool written; /* a directory is being written */
    char temporary[SNAPSHOT_NAME_SIZE];
    char flushed[SNAPSHOT_NAME_SIZE];
    char *block;
};

static enum flush_result failed(const struct target *target, const char *what, struct error *err)
{
    error_set(err, "cannot %s in %s: %s", what, error_path(target->path).text, strerror(errno));
    return FLUSH_FAILED;
}

/* ---- the checkpoint directory ---------------------------------------------------------------- */

/* Some file systems cannot sync a directory (EINVAL), and need not. */
static int sync_directory(int fd)
{
    return fsync(fd) == 0 || errno == EINVAL ? 0 : -1;
}

static int open_path(int dir, const char *name)
{
    return openat(dir, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* -1 with err. */
static int make_directory(int dir, const char *name, bool to_disk, struct error *err)
{
    int readable;

    if (to_disk && mount_check_disk(dir, err) != 0)
        return -1;
    if (mkdirat(dir, name, 0700) != 0)
        return errno == EEXIST ? 0 : error_set(err, "%s", strerror(errno));
    readable = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (readable >= 0) {
        sync_directory(readable);
        close(readable);
    }
    return 0;
}

/* Go down one component. A missing directory is made; dir is closed. -1 with err. */
static int descend(int dir, const char *component, bool to_disk, struct error *err)
{
    int next = open_path(dir, component);

    if (next < 0) {
        error_set(err, "%s", strerror(errno));
        if (errno == ENOENT && make_directory(dir, component, to_disk, err) == 0)
            next = open_path(dir, component);
    }
    close(dir);
    return next;
}

static int open_or_make(const char *path, bool to_disk, struct error *err)
{
    int fd, dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    char *copy = strdup(path), *rest = copy, *component;

    if (dir < 0 || copy == NULL)
        error_set(err, "%s", strerror(errno));
    while (dir >= 0 && copy != NULL && (component = strsep(&rest, "/")) != NULL)
        if (component[0] != '\0')
            dir = descend(dir, component, to_disk, err);
    fd = dir >= 0 && copy != NULL ? openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (dir >= 0 && fd < 0)
        error_set(err, "%s", strerror(errno));
    if (dir >= 0)
        close(dir);
    free(copy);
    return fd;
}

/* The path comes from the user, symlinks and all, and this is a process of the user. Returns a
 * descriptor for reading. */
static int open_checkpoint(const char *path, bool to_disk, struct error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 && errno == ENOENT)
        fd = open_or_make(path, to_disk, err);
    else if (fd < 0)
        error_set(err, "%s", strerror(errno));
    if (fd < 0 || !to_disk || mount_check_disk(fd, err) == 0)
        return fd;
    close(fd);
    return -1;
}

/* The parts of a sharded state have a directory of their own. What a stranger has made in its place
 * says nothing of what is needed. */
static int open_target(const char *path, const char *node, bool to_disk, struct error *err)
{
    char *base = NULL;
    int above, fd;

    if (!snapshot_is_parts_path(path, node, &base))
        return open_checkpoint(path, to_disk, err);
    if (base == NULL)
        return error_set(err, "out of memory");
    above = open_checkpoint(base, to_disk, err);
    free(base);
    if (above < 0)
        return -1;
    fd = checkpoints_open_parts(above, node);
    if (fd < 0)
        error_set(err, "%s", strerror(errno));
    close(above);
    if (fd < 0 || !to_disk || mount_check_disk(fd, err) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Where it is; BASE/.parts-XXXXXXXX/NODE is not what it was called. */
static char *path_of(int dir, const char *called)
{
    char link[48], path[PATH_MAX];
    const char *parts = strstr(called, "/" SNAPSHOT_PARTS "/");
    ssize_t len;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
    len = parts != NULL && dir >= 0 ? readlink(link, path, sizeof(path)) : -1;
    return len > 0 && (size_t)len < sizeof(path) ? strndup(path, (size_t)len) : strdup(called);
}

struct target *target_open(const char *checkpoint, const struct snapshot_key *key, const char *node,
                           bool to_disk, struct error *err)
{
    struct target *target = calloc(1, sizeof(*target));
    struct error why = {"out of memory"};

    if (target == NULL) {
        error_set(err, "%s", why.text);
        return NULL;
    }
    target->key = *key;
    target->fd = -1;
    target->dir = open_target(checkpoint, node, to_disk, &why);
    target->path = path_of(target->dir, checkpoint);
    target->block = malloc(BLOCK);
    snapshot_flushing_name(target->temporary, key, node, getpid());
    snapshot_flushed_name(target->flushed, key, node);
    if (target->dir >= 0 && target->path != NULL && target->block != NULL) {
        checkpoints_remove_leftovers(target->dir, node);
        return target;
    }
    error_set(err, "cannot use the checkpoint directory %s: %s", error_path(checkpoint).text,
              why.text);
    target_close(target);
    return NULL;
}

static enum flush_result covered(const struct target *target, const char *name, struct error *err)
{
    /* The process that has given the directory its name may have been killed, or may have failed to
     * sync it. */
    if (sync_directory(target->dir) != 0)
        return failed(target, "sync", err);
    error_set(err, "%s/%s is as new or newer", error_path(target->path).text,
              error_value(name).text);
    return FLUSH_COVERED;
}

enum flush_result target_begin(struct target *target, struct error *err)
{
    char name[SNAPSHOT_NAME_SIZE] = "";
    struct stat st;
    int rc;

    if (checkpoints_cover(target->dir, &target->key, name))
        return covered(target, name, err);
    if (stop_asked())
        return FLUSH_STOPPED;
    rc = mkdirat(target->dir, target->temporary, 0700);
    if (rc != 0 && errno == EEXIST) { /* somebody else has taken the name */
        snapshot_other_name(target->temporary, randombytes_random());
        rc = mkdirat(target->dir, target->temporary, 0700);
    }
    if (rc != 0)
        return failed(target, "make a directory", err);
    target->written = true;
    target->fd = entry_open_same(target->dir, target->temporary, S_IFDIR, &st, NULL);
    return target->fd >= 0 ? FLUSH_DONE : failed(target, "open the new directory", err);
}

/* ---- its files ------------------------------------------------------------------------------- */

static int write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t wrote = write(fd, data, len);

        if (wrote < 0 && (errno != EINTR || stop_asked()))
            return -1;
        data += wrote > 0 ? wrote : 0;
        len -= wrote > 0 ? (size_t)wrote : 0;
    }
    return 0;
}

/* len bytes, fewer at the end of the file, or -1. */
static ssize_t read_block(int fd, char *block, size_t len)
{
    ssize_t got;

    do {
        got = read(fd, block, len);
    } while (got < 0 && errno == EINTR && !stop_asked());
    return got;
}

static enum flush_result torn(const struct snapshot_file *file, const char *reason,
                              struct error *err)
{
    error_set(err, "%s: %s", error_value(file->name).text, reason);
    return FLUSH_TORN;
}

/* A file on its way. */
struct copy {
    const struct snapshot_file *file;
    int from;
    int to;
    size_t unsynced;
    crypto_generichash_state state;
};

/* Copy at most len more bytes; *len is set to their number. The digest covers the bytes that are
 * written, whatever happens to the file meanwhile. */
static enum flush_result copy_block(struct target *target, struct copy *copy, size_t *len,
                                    struct error *err)
{
    ssize_t got = read_block(copy->from, target->block, *len);

    if (got <= 0)
        return torn(copy->file, got < 0 ? strerror(errno) : "it has become shorter", err);
    *len = (size_t)got;
    crypto_generichash_update(&copy->state, (unsigned char *)target->block, *len);
    if (write_all(copy->to, target->block, *len) != 0)
        return failed(target, "write", err);
    copy->unsynced += *len;
    if (copy->unsynced < UNSYNCED_MAX)
        return FLUSH_DONE;
    copy->unsynced = 0;
    return fdatasync(copy->to) == 0 ? FLUSH_DONE : failed(target, "write", err);
}

static enum flush_result copy_file(struct target *target, struct copy *copy, struct error *err)
{
    uint8_t digest[SNAPSHOT_DIGEST];
    int64_t left = copy->file->bytes;

    crypto_generichash_init(&copy->state, NULL, 0, sizeof(digest));
    while (left > 0) {
        size_t len = left < (int64_t)BLOCK ? (size_t)left : BLOCK;
        enum flush_result result = copy_block(target, copy, &len, err);

        if (stop_asked())
            return FLUSH_STOPPED;
        if (result != FLUSH_DONE)
            return result;
        left -= (int64_t)len;
    }
    crypto_generichash_final(&copy->state, digest, sizeof(digest));
    if (memcmp(digest, copy->file->digest, sizeof(digest)) != 0)
        return torn(copy->file, "its BLAKE2b is not that of the manifest", err);
    return fsync(copy->to) == 0 ? FLUSH_DONE : failed(target, "write", err);
}

static int create(const struct target *target, const char *name)
{
    return openat(target->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC,
                  0600);
}

enum flush_result target_add(struct target *target, int from, const struct snapshot_file *file,
                             struct error *err)
{
    struct copy copy = {.file = file, .from = from, .to = create(target, file->name)};
    enum flush_result result;

    if (copy.to < 0)
        return failed(target, "make a file", err);
    result = copy_file(target, &copy, err);
    /* Network file systems report a full disk or quota here. */
    if (close(copy.to) != 0 && result == FLUSH_DONE)
        result = failed(target, "write", err);
    return stop_asked() ? FLUSH_STOPPED : result;
}

static int write_manifest(const struct target *target, const char *text)
{
    int fd = create(target, SNAPSHOT_MANIFEST);
    int rc, reason;

    if (fd < 0)
        return -1;
    rc = write_all(fd, text, strlen(text)) == 0 && fsync(fd) == 0 ? 0 : -1;
    reason = errno;
    if (close(fd) != 0 && rc == 0)
        return -1;
    errno = reason;
    return rc;
}

/* ---- its name -------------------------------------------------------------------------------- */

static enum flush_result rename_it(struct target *target, struct error *err)
{
    struct snapshot_key has;

    if (renameat(target->dir, target->temporary, target->dir, target->flushed) == 0)
        return FLUSH_DONE;
    if (!checkpoints_is_taken(errno))
        return failed(target, "rename", err);
    if (checkpoint_is_complete(target->dir, target->flushed, &has)) {
        if (snapshot_key_covers(&has, &target->key))
            return covered(target, target->flushed, err);
        error_set(err, "%s/%s is there, of job %u", error_path(target->path).text, target->flushed,
                  has.job);
        return FLUSH_FAILED;
    }
    /* Another process's removal of the directory has ended half-way … */
    if (entry_remove(target->dir, target->flushed) == 0 &&
        renameat(target->dir, target->temporary, target->dir, target->flushed) == 0)
        return FLUSH_DONE;
    /* … or it is somebody else's. */
    snapshot_other_name(target->flushed, randombytes_random());
    if (renameat(target->dir, target->temporary, target->dir, target->flushed) != 0)
        return failed(target, "rename", err);
    return FLUSH_DONE;
}

enum flush_result target_publish(struct target *target, const struct snapshot *snapshot,
                                 const char **name, struct error *err)
{
    char *text = snapshot_checkpoint_manifest(snapshot);
    int rc = text != NULL ? write_manifest(target, text) : -1;
    enum flush_result result;

    free(text);
    if (rc == 0)
        rc = sync_directory(target->fd);
    if (stop_asked())
        return FLUSH_STOPPED;
    if (rc != 0)
        return failed(target, "write " SNAPSHOT_MANIFEST, err);
    result = rename_it(target, err);
    if (result != FLUSH_DONE)
        return result;
    target->written = false;
    *name = target->flushed;
    return sync_directory(target->dir) == 0 ? FLUSH_DONE : failed(target, "sync", err);
}

const char *target_path(const struct target *target)
{
    return target->path;
}

void target_close(struct target *target)
{
    if (target == NULL)
        return;
    if (target->fd >= 0)
        close(target->fd);
    if (target->written)
        entry_remove(target->dir, target->temporary);
    if (target->dir >= 0)
        close(target->dir);
    free(target->block);
    free(target->path);
    free(target);
}

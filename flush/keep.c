/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What could not be flushed (keep.h). */
#include "flush/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/entry.h"
#include "flush/buffer.h"
#include "flush/clear.h"
#include "flush/lock.h"

#define FILE_MOST (INT64_MAX / (2 * SNAPSHOT_FILES_MAX)) /* so that no sum is too large */

/* Space may be reserved behind the end of a file (fallocate with KEEP_SIZE). */
static int64_t memory_of(const struct stat *st)
{
    const int64_t page = sysconf(_SC_PAGESIZE), blocks = (int64_t)st->st_blocks * 512;
    int64_t bytes = st->st_size > blocks ? st->st_size : blocks;

    if (bytes > FILE_MOST)
        bytes = FILE_MOST;
    return (bytes + page - 1) / page * page;
}

/* A file takes a page at least. -1 with err. */
static int64_t memory_of_file(int dir, const char *name, struct error *err)
{
    const int64_t page = sysconf(_SC_PAGESIZE);
    struct stat st;
    int fd = entry_open_own_same(dir, name, S_IFREG, &st, err);

    if (fd < 0)
        return -1;
    close(fd);
    return memory_of(&st) > page ? memory_of(&st) : page;
}

/* To write. -1: something else has the name, or is mounted on it. */
static int open_lock(int dir)
{
    struct stat st;
    int lock = entry_open_own_same(dir, LOCK_NAME, S_IFREG, &st, NULL);

    return lock >= 0 ? entry_reopen(lock, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
}

/* The lock, empty, which is made if there is none: without one a sweep takes the directory for that
 * of a job which begins, and counts it for nobody. What it takes in memory; -1 with err. */
static int64_t empty_lock(int dir, struct error *err)
{
    const char *const snapshot[] = {"snapshot", NULL};
    int lock = open_lock(dir);
    int64_t bytes = -1;
    struct stat st;

    if (lock < 0) { /* something else may have the name */
        if (clear_directory(dir, snapshot, err) != 0)
            return -1;
        lock = openat(dir, LOCK_NAME, O_WRONLY | O_NOFOLLOW | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    }
    if (lock >= 0 && ftruncate(lock, 0) == 0 && fstat(lock, &st) == 0)
        bytes = memory_of(&st);
    else
        error_set(err, LOCK_NAME ": %s", strerror(errno));
    if (lock >= 0)
        close(lock);
    return bytes;
}

/* A directory below, in which nothing else stays. -1 with err. */
static int open_and_clear(int parent, const char *name, const char *const *stay, struct error *err)
{
    struct stat st;
    int dir = entry_open_own_same(parent, name, S_IFDIR, &st, err);

    if (dir < 0 || clear_directory(dir, stay, err) == 0)
        return dir;
    close(dir);
    return -1;
}

/* What a user has put beside it would be in memory for as long as the snapshot, and count for
 * nobody. What stays in memory; -1 with err. */
static int64_t keep_snapshot_alone(int dir, const struct told *told, struct error *err)
{
    const char index[] = {(char)('0' + told->index), '\0'};
    const char *const top[] = {LOCK_NAME, "snapshot", NULL}, *const buffer[] = {index, NULL};
    const char *files[SNAPSHOT_FILES_MAX + 2] = {SNAPSHOT_MANIFEST};
    int64_t sum = empty_lock(dir, err), bytes = 0;
    int above, below = -1;

    for (int i = 0; i < told->count; i++)
        files[i + 1] = told->files[i];
    if (sum < 0 || clear_directory(dir, top, err) != 0)
        return -1;
    above = open_and_clear(dir, "snapshot", buffer, err);
    if (above >= 0) {
        below = open_and_clear(above, index, files, err);
        close(above);
    }
    for (int i = 0; below >= 0 && bytes >= 0 && files[i] != NULL; i++) {
        bytes = memory_of_file(below, files[i], err);
        sum += bytes;
    }
    if (below >= 0)
        close(below);
    return below >= 0 && bytes >= 0 ? sum : -1;
}

static bool may_stay_alone(struct keep *keep, int dir, const struct told *told, struct error *why)
{
    int64_t bytes = keep_snapshot_alone(dir, told, why);

    if (bytes < 0) {
        error_prefix(why, "given up");
        return false;
    }
    if (bytes > keep->bytes) {
        error_set(why, "given up: %" PRId64 " bytes more may be kept in memory for this user",
                  keep->bytes);
        return false;
    }
    keep->bytes -= bytes;
    return true;
}

bool keep_may_stay(struct keep *keep, int dir, const struct told *told, struct error *why)
{
    if (keep->max_age > 0 && clear_is_old(dir, keep->max_age)) {
        error_set(why, "given up after %d s", keep->max_age);
        return false;
    }
    if (keep->runs == 0) {
        error_set(why, "given up: no more directories may be kept in memory for this user");
        return false;
    }
    keep->runs -= keep->runs > 0;
    /* Where no process could be begun nobody knows what there is. */
    if (keep->bytes < 0 || !told->begun)
        return true;
    if (told->index < 0) {
        error_set(why, "given up: there is no complete snapshot");
        return false;
    }
    return may_stay_alone(keep, dir, told, why);
}

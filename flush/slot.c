/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How many processes may wait (slot.h). */
#include "flush/slot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Root's file is where nobody else can make one. Another user's slurmd runs jobs of that user only,
 * and has its file in the place. */
#define ROOT_DIRECTORY "/run"
#define ROOT_NAME      "slurm-elastic.lock"
#define NAME           ".lock"

/* Bytes for the slots of one node and place: two and SLOT_USER_MAX for each uid. */
#define BYTES_BITS 36

static int open_file(const struct place *place, struct error *err)
{
    bool root = geteuid() == 0;
    const char *name = root ? ROOT_NAME : NAME, *above = root ? ROOT_DIRECTORY : place->path;
    int dir = root ? open(ROOT_DIRECTORY, O_PATH | O_DIRECTORY | O_CLOEXEC) : place->fd;
    int fd = openat(dir, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
                    0600);
    int reason = errno;
    struct stat st;

    if (root && dir >= 0)
        close(dir);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid())
        return fd;
    error_set(err, "%s/%s: %s", error_path(above).text, name,
              fd < 0 ? strerror(reason) : "it belongs to somebody else");
    if (fd >= 0)
        close(fd);
    errno = EPERM;
    return -1;
}

/* FNV-1a (Fowler, Noll, Vo). */
static uint64_t hash(uint64_t value, const void *data, size_t size)
{
    for (const unsigned char *byte = data; size > 0; size--)
        value = (value ^ *byte++) * 0x100000001b3;
    return value;
}

/* Where the slots of this node and place begin. Several slurmds may share a machine. Two that meet
 * in the same bytes wait for each other at times. */
static off_t first_byte(const struct place *place, const char *node)
{
    uint64_t value = hash(0xcbf29ce484222325, node, strlen(node));
    struct stat st = {0};

    if (fstat(place->fd, &st) == 0) {
        value = hash(value, &st.st_dev, sizeof(st.st_dev));
        value = hash(value, &st.st_ino, sizeof(st.st_ino));
    }
    return (off_t)(value >> (BYTES_BITS + 1) << BYTES_BITS);
}

/* Each slot has an open file of its own: a lock goes with the last descriptor of that. */
static int take(const struct place *place, const char *node, off_t byte, bool waits,
                struct error *err)
{
    struct flock lock = {.l_type = F_WRLCK,
                         .l_whence = SEEK_SET,
                         .l_start = first_byte(place, node) + byte,
                         .l_len = 1};
    int rc, reason, fd = open_file(place, err);

    if (fd < 0)
        return -1;
    do
        rc = fcntl(fd, waits ? F_OFD_SETLKW : F_OFD_SETLK, &lock);
    while (rc != 0 && errno == EINTR);
    if (rc == 0)
        return fd;
    reason = errno == EACCES ? EAGAIN : errno;
    close(fd);
    errno = reason;
    return reason == EAGAIN ? -1 : error_set(err, "lock: %s", strerror(reason));
}

int slot_take(const struct place *place, const char *node, enum slot slot, struct error *err)
{
    return take(place, node, slot, false, err);
}

int slot_wait(const struct place *place, const char *node, enum slot slot, struct error *err)
{
    return take(place, node, slot, true, err);
}

int slot_take_user(const struct place *place, const struct snapshot_run *run, int number,
                   struct error *err)
{
    off_t byte = SLOT_USERS + (off_t)run->uid * SLOT_USER_MAX + number;

    return take(place, run->node, byte, false, err);
}

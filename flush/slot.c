/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How many processes may wait (slot.h). */
#include "flush/slot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_SIZE (sizeof(".lock-") + SNAPSHOT_NODE_MAX)

/* Where everybody may write, a user may have made the name before us. */
static int open_file(const struct place *place, const char *node, struct error *err)
{
    char name[NAME_SIZE];
    struct stat st;

    snprintf(name, sizeof(name), ".lock-%s", node);
    for (int i = 0; i < 2; i++) {
        int fd = openat(place->fd, name,
                        O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);

        if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
            st.st_nlink == 1)
            return fd;
        if (fd >= 0)
            close(fd);
        if (unlinkat(place->fd, name, 0) != 0)
            break;
    }
    errno = EPERM;
    return error_set(err, "%s/%s is not root's own file", error_path(place->path).text, name);
}

/* Each slot has an open file of its own: a lock goes with the last descriptor of that. */
static int take(const struct place *place, const char *node, off_t byte, bool waits,
                struct error *err)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
    int rc, reason, fd = open_file(place, node, err);

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

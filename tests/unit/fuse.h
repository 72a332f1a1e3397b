/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A file system that another user has mounted, and that never answers. Only root can play that,
 * where there is FUSE. */
#ifndef ELASTIC_TESTS_FUSE_H
#define ELASTIC_TESTS_FUSE_H

#include "tests/unit/support.h"

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <unistd.h>

/* Can it be mounted? In a mount namespace that this process has from here on. */
static inline bool fuse_is_there(void)
{
    return geteuid() == 0 && access("/dev/fuse", R_OK | W_OK) == 0 && unshare(CLONE_NEWNS) == 0 &&
           mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

/* On a directory. others: open to all (allow_other). For fuse_unmount(). */
static inline int fuse_mount(const char *path, unsigned int uid, bool others)
{
    int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    char options[128];

    assert_true(fd >= 0);
    snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%u,group_id=%u%s", fd, uid,
             uid, others ? ",allow_other" : "");
    assert_int_equal(mount("x", path, "fuse", MS_NOSUID | MS_NODEV, options), 0);
    return fd;
}

static inline void fuse_unmount(const char *path, int fd)
{
    assert_int_equal(umount2(path, MNT_DETACH), 0);
    close(fd);
}

#endif

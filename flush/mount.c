/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The mount on which a directory lies (mount.h). */
#include "flush/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/entry.h"
#include "common/mounted.h"

#define TRIES 3 /* at dropping a page, which somebody else may be looking at */

bool mount_is_tmpfs(int dir)
{
    int above = openat(dir, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    char *line = mounted_line(dir), root[3] = "";
    struct statfs fs;
    bool is;

    is = above >= 0 && line != NULL && entry_mount(above) != entry_mount(dir) &&
         sscanf(line, "%*s %*s %*s %2s", root) == 1 && strcmp(root, "/") == 0 &&
         fstatfs(dir, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
    free(line);
    if (above >= 0)
        close(above);
    return is;
}

/* Is the page of the file still in memory when it is on the disk, and nobody needs it? */
static int stays(int fd, bool *in_memory)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char there = 0;
    void *map;
    int rc;

    if (pwrite(fd, "x", 1, 0) != 1 || fsync(fd) != 0)
        return -1;
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    map = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return -1;
    rc = mincore(map, page, &there);
    munmap(map, page);
    *in_memory = (there & 1) != 0;
    return rc;
}

/* An overlay does not say on what it writes. */
static int check_overlay(int dir, struct error *err)
{
    bool in_memory = true;
    char name[32];
    int fd, rc = 0;

    snprintf(name, sizeof(name), ".disk-%d", getpid());
    fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set(err, "%s", strerror(errno));
    unlinkat(dir, name, 0);
    for (int i = 0; i < TRIES && rc == 0 && in_memory; i++)
        rc = stays(fd, &in_memory);
    if (rc != 0)
        error_set(err, "%s", strerror(errno));
    close(fd);
    if (rc != 0 || !in_memory)
        return rc;
    return error_set(err, "it is in memory (overlay on tmpfs)");
}

static int check_fuse(int dir, struct error *err)
{
    char *line = mounted_line(dir);
    bool of_user = line == NULL || mounted_by_user(line);

    free(line);
    return of_user ? error_set(err, "a user has mounted it (FUSE)") : 0;
}

int mount_check_disk(int dir, struct error *err)
{
    struct statfs fs;

    if (fstatfs(dir, &fs) != 0)
        return error_set(err, "%s", strerror(errno));
    switch (fs.f_type) {
    case TMPFS_MAGIC:
        return error_set(err, "it is in memory (tmpfs)");
    case RAMFS_MAGIC:
        return error_set(err, "it is in memory (ramfs)");
    case HUGETLBFS_MAGIC:
    case CGROUP_SUPER_MAGIC:
    case CGROUP2_SUPER_MAGIC: /* directories, which a user may make in one that is his */
        return error_set(err, "it is in memory (no file system for data)");
    case FUSE_SUPER_MAGIC:
        return check_fuse(dir, err);
    case OVERLAYFS_SUPER_MAGIC:
        return check_overlay(dir, err);
    default:
        return 0;
    }
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whether a user has mounted that on which an entry lies (mounted.h). */
#include "common/mounted.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/entry.h"

#define USER_ID ",user_id=" /* of a mount of FUSE */

/* A new string, or NULL. */
static char *line_of(int wanted)
{
    FILE *mounts = wanted >= 0 ? fopen("/proc/self/mountinfo", "re") : NULL;
    char *line = NULL;
    size_t size = 0;
    bool found = false;
    int number;

    while (mounts != NULL && !found && getline(&line, &size, mounts) > 0)
        found = sscanf(line, "%d", &number) == 1 && number == wanted;
    if (mounts != NULL)
        fclose(mounts);
    if (found)
        return line;
    free(line);
    return NULL;
}

char *mounted_line(int fd)
{
    return line_of(entry_mount(fd));
}

/* 36 35 98:0 /mnt1 /mnt2 rw master:1 - fuse.sshfs host: rw,user_id=1001,group_id=1001. The user has
 * chosen names in it, but for the last word. */
static uid_t user_of(const char *line)
{
    const char *user = strstr(line, " - fuse") != NULL ? strstr(strrchr(line, ' '), USER_ID) : NULL;

    return user != NULL ? (uid_t)strtoul(user + strlen(USER_ID), NULL, 10) : 0;
}

bool mounted_by_user(const char *line)
{
    return user_of(line) != 0;
}

bool mounted_by_other(const char *line, uid_t uid)
{
    return user_of(line) != 0 && user_of(line) != uid;
}

/* After chroot() the mount on which "/" lies is not listed. */
static bool is_root(int mount)
{
    int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), root = fd >= 0 ? entry_mount(fd) : mount;

    if (fd >= 0)
        close(fd);
    return fd >= 0 && root == mount;
}

bool mounted_by_stranger(int fd)
{
    int mount = entry_mount(fd);
    char *line = line_of(mount);
    bool is = line != NULL ? mounted_by_other(line, geteuid()) : !is_root(mount);

    free(line);
    return is;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How much may be copied (room.h). */
#include "fit/room.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#define PART 0.9

/* Some file systems have no limit of files. */
int room_find(int dir, struct room *room, struct error *err)
{
    struct statvfs st;

    room->last[0] = '\0';
    if (room->found)
        return 0;
    if (fstatvfs(dir, &st) != 0)
        return error_set(err, "the room for copies: %s", strerror(errno));
    room->bytes = (int64_t)((double)st.f_bavail * (double)st.f_frsize * PART);
    room->files = st.f_files > 0 ? (int64_t)((double)st.f_favail * PART) : INT64_MAX;
    room->found = true;
    return 0;
}

/* The file, and the directories that only its path has: paths of one directory follow each
 * other. */
static int64_t count(const char *last, const char *path)
{
    size_t same = 0;
    int64_t files = 1;

    for (size_t i = 0; last[i] != '\0' && last[i] == path[i]; i++)
        if (path[i] == '/')
            same = i + 1;
    for (const char *at = path + same; *at != '\0'; at++)
        files += *at == '/';
    return files;
}

int room_take(struct room *room, const char *path, int64_t bytes, struct error *err)
{
    int64_t files = count(room->last, path);

    if (files > room->files || bytes > room->bytes)
        return error_set(err, "%s: there is no room for a copy of it", error_path(path).text);
    room->files -= files;
    room->bytes -= bytes;
    snprintf(room->last, sizeof(room->last), "%s", path);
    return 0;
}

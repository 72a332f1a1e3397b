/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Entries of directories in which anything may lie (entry.h). */
#include "common/entry.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/stop.h"

static int refuse(int fd, int reason)
{
    close(fd);
    errno = reason;
    return -1;
}

int entry_open(int dir, const char *name, mode_t type, struct stat *st, struct error *err)
{
    int fd = openat(dir, name,
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC |
                        (type == S_IFDIR ? O_DIRECTORY : 0));

    if (fd < 0)
        return error_set(err, "%s: %s", error_value(name).text,
                         errno == ELOOP ? "it is a symlink" : strerror(errno));
    if (fstat(fd, st) != 0) {
        error_set(err, "%s: %s", error_value(name).text, strerror(errno));
        return refuse(fd, errno);
    }
    if ((st->st_mode & S_IFMT) == type)
        return fd;
    error_set(err, "%s: it is no %s", error_value(name).text,
              type == S_IFDIR ? "directory" : "regular file");
    return refuse(fd, EINVAL);
}

int entry_open_own(int dir, const char *name, mode_t type, struct stat *st, struct error *err)
{
    int fd = entry_open(dir, name, type, st, err);

    if (fd < 0 || st->st_uid == geteuid())
        return fd;
    error_set(err, "%s: it belongs to uid %u, not to uid %u", error_value(name).text,
              (unsigned int)st->st_uid, (unsigned int)geteuid());
    return refuse(fd, EPERM);
}

/* glibc has no function for it. */
int entry_open_path(const char *path, struct stat *st)
{
    struct open_how how = {.flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY,
                           .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

    return fd < 0 || fstat(fd, st) == 0 ? fd : refuse(fd, errno);
}

char *entry_text(int fd, size_t max, size_t *len, struct error *err)
{
    size_t used = 0, room = 4096;
    char *text = malloc(room + 1);

    while (text != NULL && used <= max) {
        ssize_t got;

        if (used == room) {
            char *larger = realloc(text, 2 * room + 1);

            if (larger == NULL)
                break;
            text = larger;
            room *= 2;
        }
        got = read(fd, text + used, room - used);
        if (got == 0) {
            text[used] = '\0';
            *len = used;
            return text;
        }
        if (got < 0 && (errno != EINTR || stop_asked()))
            break;
        used += got > 0 ? (size_t)got : 0;
    }
    if (used > max)
        error_set(err, "it has more than %zu bytes", max);
    else
        error_set(err, "%s", strerror(errno));
    free(text);
    return NULL;
}

/* closedir() closes the descriptor, so it gets one of its own. */
DIR *entry_list(int dir)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd >= 0 ? fdopendir(fd) : NULL;

    if (list == NULL && fd >= 0)
        refuse(fd, errno);
    return list;
}

const char *entry_next(DIR *list)
{
    struct dirent *entry;

    do {
        errno = 0;
        entry = readdir(list);
    } while (entry != NULL &&
             (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
    return entry != NULL ? entry->d_name : NULL;
}

void entry_remove_files(int dir)
{
    DIR *list = entry_list(dir);
    const char *name;

    while (list != NULL && (name = entry_next(list)) != NULL)
        unlinkat(dir, name, 0);
    if (list != NULL)
        closedir(list);
}

int entry_remove(int dir, const char *name)
{
    struct stat st;
    int fd = entry_open(dir, name, S_IFDIR, &st, NULL);
    int rc = -1;

    if (fd < 0)
        return -1;
    /* Some file systems leave names out of a listing while other names of it are removed. */
    for (int tries = 0; rc != 0 && tries < 3; tries++) {
        entry_remove_files(fd);
        rc = unlinkat(dir, name, AT_REMOVEDIR);
    }
    if (rc != 0)
        return refuse(fd, errno);
    close(fd);
    return 0;
}

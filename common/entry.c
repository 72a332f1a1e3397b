/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Entries of directories in which anything may lie (entry.h). */
#include "common/entry.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
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

/* glibc has no function for it. */
static int open_resolved(int dir, const char *path, int flags, uint64_t resolve)
{
    struct open_how how = {.flags = (uint64_t)flags, .resolve = resolve};

    return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

static int open_flags(mode_t type)
{
    return O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC |
           (type == S_IFDIR ? O_DIRECTORY : 0);
}

static const char *reason_of(int reason)
{
    switch (reason) {
    case ELOOP:
        return "it is a symlink";
    case EXDEV:
        return "another file system is mounted there";
    default:
        return strerror(reason);
    }
}

/* Describe what was opened, if it was. */
static int check(int fd, const char *name, mode_t type, struct stat *st, struct error *err)
{
    if (fd < 0)
        return error_set(err, "%s: %s", error_value(name).text, reason_of(errno));
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

static int check_own(int fd, const char *name, const struct stat *st, struct error *err)
{
    if (fd < 0 || st->st_uid == geteuid())
        return fd;
    error_set(err, "%s: it belongs to uid %u, not to uid %u", error_value(name).text,
              (unsigned int)st->st_uid, (unsigned int)geteuid());
    return refuse(fd, EPERM);
}

int entry_open(int dir, const char *name, mode_t type, struct stat *st, struct error *err)
{
    return check(openat(dir, name, open_flags(type)), name, type, st, err);
}

int entry_open_own(int dir, const char *name, mode_t type, struct stat *st, struct error *err)
{
    return check_own(entry_open(dir, name, type, st, err), name, st, err);
}

int entry_mount(int fd)
{
    char path[48], line[256];
    FILE *info;
    int mount = -1;

    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
    info = fopen(path, "re");
    while (info != NULL && mount < 0 && fgets(line, sizeof(line), info) != NULL)
        if (sscanf(line, "mnt_id: %d", &mount) != 1)
            mount = -1;
    if (info != NULL)
        fclose(info);
    return mount;
}

int entry_look(int dir, const char *name, struct statx *st)
{
    return statx(dir, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC,
                 STATX_BASIC_STATS, st);
}

int entry_reopen(int found, int flags)
{
    char own[48];
    int fd;

    snprintf(own, sizeof(own), "/proc/self/fd/%d", found);
    fd = open(own, flags);
    if (fd < 0)
        return refuse(found, errno);
    close(found);
    return fd;
}

/* For kernels before Linux 5.6. O_PATH asks no file system. */
static int find_on_mount(int dir, const char *name)
{
    int above = openat(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC), found, mount;

    if (above < 0)
        return -1;
    mount = entry_mount(above);
    close(above);
    found = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (found < 0)
        return -1;
    if (mount < 0)
        return refuse(found, ENOSYS);
    return entry_mount(found) == mount ? found : refuse(found, EXDEV);
}

int entry_find_same(int dir, const char *name)
{
    int fd = open_resolved(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC, RESOLVE_NO_XDEV);

    return fd < 0 && errno == ENOSYS ? find_on_mount(dir, name) : fd;
}

/* What was found is what is opened then. */
static int open_on_mount(int dir, const char *name, int flags)
{
    int found = find_on_mount(dir, name);

    return found >= 0 ? entry_reopen(found, flags & ~O_NOFOLLOW) : -1; /* ELOOP for a link */
}

int entry_open_same(int dir, const char *name, mode_t type, struct stat *st, struct error *err)
{
    int fd = open_resolved(dir, name, open_flags(type), RESOLVE_NO_XDEV);

    if (fd < 0 && errno == ENOSYS)
        fd = open_on_mount(dir, name, open_flags(type));
    return check(fd, name, type, st, err);
}

int entry_open_own_same(int dir, const char *name, mode_t type, struct stat *st, struct error *err)
{
    return check_own(entry_open_same(dir, name, type, st, err), name, st, err);
}

/* One component of a path: dir is closed. -1 with errno. */
static int step(int dir, const char *name)
{
    struct stat st;
    int next = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

    if (next < 0)
        return refuse(dir, errno);
    close(dir);
    if (fstat(next, &st) != 0)
        return refuse(next, errno);
    return S_ISLNK(st.st_mode) ? refuse(next, ELOOP) : next;
}

/* For kernels before Linux 5.6: the same, name by name. */
static int open_by_names(const char *path, int flags)
{
    int fd = open(path[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    char *copy = strdup(path), *rest = copy, *name;

    while (fd >= 0 && copy != NULL && (name = strsep(&rest, "/")) != NULL)
        fd = step(fd, name[0] != '\0' ? name : ".");
    free(copy);
    if (fd < 0 || copy == NULL)
        return fd < 0 ? -1 : refuse(fd, ENOMEM);
    return (flags & O_PATH) != 0 ? fd : entry_reopen(fd, flags);
}

static int open_without_links(const char *path, int flags)
{
    int fd = open_resolved(AT_FDCWD, path, flags, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

    return fd < 0 && errno == ENOSYS ? open_by_names(path, flags) : fd;
}

int entry_open_path(const char *path, struct stat *st)
{
    const int flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
    int fd = open_without_links(path, O_PATH | O_CLOEXEC);

    if (fd < 0)
        return -1;
    if (fstat(fd, st) != 0)
        return refuse(fd, errno);
    if (S_ISREG(st->st_mode)) {
        fd = entry_reopen(fd, flags);
    } else if (S_ISDIR(st->st_mode)) {
        /* By its path: O_PATH has an automounter mount nothing. */
        close(fd);
        fd = open_without_links(path, flags | O_DIRECTORY);
    }
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

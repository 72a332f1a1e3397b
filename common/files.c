/* SPDX-License-Identifier: GPL-2.0-or-later */
/* File helpers (files.h). */
#include "common/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* "WHAT PATH: reason of errno", which stays. */
static int system_error(struct error *err, const char *what, const char *path)
{
    return error_set(err, "cannot %s %s: %s", what, error_path(path).text, strerror(errno));
}

/* The same with a reason in our own words; code is the error for errno. */
static int refuse(struct error *err, const char *what, const char *path, const char *reason,
                  int code)
{
    error_set(err, "cannot %s %s: %s", what, error_path(path).text, reason);
    errno = code;
    return -1;
}

/* close without a change of errno, for the way out of a failure. */
static void close_quietly(int fd)
{
    int saved = errno;

    close(fd);
    errno = saved;
}

int file_write_all(int fd, const void *data, size_t len)
{
    const char *at = data;

    while (len > 0) {
        ssize_t wrote = write(fd, at, len);

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return -1;
        at += wrote;
        len -= (size_t)wrote;
    }
    return 0;
}

int file_write_at(int fd, const void *data, size_t len, int64_t at)
{
    const char *from = data;

    while (len > 0) {
        ssize_t wrote = pwrite(fd, from, len, at);

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return -1;
        from += wrote;
        at += wrote;
        len -= (size_t)wrote;
    }
    return 0;
}

/* The directory that path is in, as a new string. */
static char *directory_of(const char *path)
{
    char *copy = strdup(path), *dir = NULL;

    if (copy != NULL)
        dir = strdup(dirname(copy));
    free(copy);
    return dir;
}

/* Make the rename itself durable. Some file systems cannot sync a directory (EINVAL), and need
 * not. */
static int sync_directory(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc;

    if (fd < 0)
        return -1;
    rc = fsync(fd);
    if (rc < 0 && errno == EINVAL)
        rc = 0;
    close_quietly(fd);
    return rc;
}

/* Everything under the temporary name. */
static int write_temporary(int fd, const void *data, size_t len, mode_t mode)
{
    int rc = 0;

    if (file_write_all(fd, data, len) < 0 || fchmod(fd, mode) < 0 || fsync(fd) < 0)
        rc = -1;
    /* Network file systems report a full disk or quota here. */
    if (rc == 0)
        return close(fd);
    close_quietly(fd);
    return rc;
}

int file_replace(const char *path, const void *data, size_t len, mode_t mode, struct error *err)
{
    char *dir = directory_of(path), *temporary = NULL;
    int fd = -1, rc = -1;

    if (dir == NULL || asprintf(&temporary, "%s/.elastic-XXXXXX", dir) < 0) {
        temporary = NULL;
        errno = ENOMEM;
    } else {
        fd = mkostemp(temporary, O_CLOEXEC);
    }
    if (fd >= 0) {
        rc = write_temporary(fd, data, len, mode);
        if (rc == 0)
            rc = rename(temporary, path);
        if (rc < 0) {
            int saved = errno;

            unlink(temporary);
            errno = saved;
        } else {
            rc = sync_directory(dir);
        }
    }
    if (rc < 0)
        system_error(err, "write", path);
    free(temporary);
    free(dir);
    return rc;
}

#define TORN_LOOKS    10
#define TORN_PAUSE_NS 10000000L /* between two of them */

/* Has the last line no end, as the disk was full, or the node was lost? Not if another process is
 * about to write it: that one is done in a moment. */
static bool is_torn(int fd)
{
    const struct timespec pause = {.tv_nsec = TORN_PAUSE_NS};
    struct stat st;
    char last;

    for (int look = 0; look < TORN_LOOKS; look++) {
        if (look > 0)
            nanosleep(&pause, NULL);
        if (fstat(fd, &st) != 0 || st.st_size == 0 || pread(fd, &last, 1, st.st_size - 1) != 1 ||
            last == '\n')
            return false;
    }
    return true;
}

int file_append(const char *path, const char *line, struct error *err)
{
    struct iovec parts[] = {
        {.iov_base = (char *)"\n", .iov_len = 0},
        {.iov_base = (char *)line, .iov_len = strlen(line)},
        {.iov_base = (char *)"\n", .iov_len = 1},
    };
    ssize_t wrote, wanted;
    struct stat st;
    int fd;

    if (strchr(line, '\n') != NULL)
        return refuse(err, "append to", path, "the text is more than one line", EINVAL);
    /* Non-blocking, so that a FIFO in this place is an error and does not wait. */
    fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
              0600);
    if (fd < 0)
        return system_error(err, "append to", path);
    if (fstat(fd, &st) == 0 && !S_ISREG(st.st_mode)) {
        close_quietly(fd);
        return refuse(err, "append to", path, "not a regular file", EINVAL);
    }
    parts[0].iov_len = is_torn(fd) ? 1 : 0;
    wanted = (ssize_t)(parts[0].iov_len + parts[1].iov_len + 1);
    do {
        wrote = writev(fd, parts, 3);
    } while (wrote < 0 && errno == EINTR);
    if (wrote >= 0 && wrote < wanted)
        errno = ENOSPC;
    if (wrote < wanted) {
        system_error(err, "append to", path);
        close_quietly(fd);
        return -1;
    }
    return close(fd) == 0 ? 0 : system_error(err, "append to", path);
}

/* The last component exists: it must belong to this user. path is what it is called for people. */
static int check_own_directory_at(int dir, const char *name, const char *path, struct error *err)
{
    struct stat st;
    char reason[96];

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return system_error(err, "use the directory", path);
    if (!S_ISDIR(st.st_mode))
        return refuse(err, "use the directory", path,
                      S_ISLNK(st.st_mode) ? "it is a symlink" : "it is not a directory", ENOTDIR);
    if (st.st_uid == geteuid())
        return 0;
    snprintf(reason, sizeof(reason), "it belongs to uid %u, not to uid %u", (unsigned int)st.st_uid,
             (unsigned int)geteuid());
    return refuse(err, "use the directory", path, reason, EPERM);
}

static int check_own_directory(const char *path, struct error *err)
{
    return check_own_directory_at(AT_FDCWD, path, path, err);
}

/* Linux has the same rule for links in such directories (fs.protected_symlinks). */
bool dir_is_strangers(const char *path, const struct stat *above, struct stat *st)
{
    const mode_t shared = S_IWGRP | S_ISVTX;

    return ((above->st_mode & S_IWOTH) != 0 || (above->st_mode & shared) == shared) &&
           lstat(path, st) == 0 && st->st_uid != geteuid() && st->st_uid != 0 &&
           st->st_uid != above->st_uid;
}

/* A directory on the way, in `above`, which is then this one's. */
static int make_parent(const char *path, bool judged, struct stat *above, struct error *err)
{
    struct stat st;
    char reason[128];

    /* Whether an existing parent can be used shows in the next step. */
    if (mkdir(path, 0700) < 0 && errno != EEXIST && errno != EACCES && errno != EROFS)
        return system_error(err, "make the directory", path);
    if (!judged)
        return 0;
    if (dir_is_strangers(path, above, &st)) {
        snprintf(reason, sizeof(reason),
                 "it belongs to uid %u, who could change all in it; a directory of your own would "
                 "be right",
                 (unsigned int)st.st_uid);
        return refuse(err, "use the directory", path, reason, EPERM);
    }
    /* One that cannot be looked into is no place for the next one. */
    if (stat(path, above) < 0)
        above->st_mode = 0;
    return 0;
}

/* mkdir for each component in turn; path is changed in between and put back. */
static int make_components(char *path, bool judged, struct error *err)
{
    struct stat above = {0};
    char *slash = path;

    if (judged && stat(path[0] == '/' ? "/" : ".", &above) < 0)
        return system_error(err, "make the directory", path);
    for (;;) {
        int rc;

        slash += strspn(slash, "/");
        slash += strcspn(slash, "/");
        if (*slash == '\0')
            break;
        *slash = '\0';
        rc = make_parent(path, judged, &above, err);
        *slash = '/';
        if (rc < 0)
            return -1;
    }
    if (mkdir(path, 0700) == 0)
        return 0;
    if (errno == EEXIST)
        return check_own_directory(path, err);
    return system_error(err, "make the directory", path);
}

static int make_dir(const char *path, bool judged, struct error *err)
{
    size_t len = strlen(path);
    char *copy;
    int rc;

    /* A slash at the end would make lstat follow a symlink. */
    while (len > 1 && path[len - 1] == '/')
        len--;
    if (len == 0)
        return refuse(err, "make the directory", path, "the name is empty", EINVAL);
    copy = strndup(path, len);
    if (copy == NULL)
        return system_error(err, "make the directory", path);
    rc = make_components(copy, judged, err);
    free(copy);
    return rc;
}

int dir_make(const char *path, struct error *err)
{
    return make_dir(path, false, err);
}

int dir_make_private(const char *path, struct error *err)
{
    return make_dir(path, true, err);
}

/* ---- removal --------------------------------------------------------------------------------- */

#define TORN_LOOKS    10
#define TORN_PAUSE_NS 10000000L /* between two looks */
#define REMOVE_DEPTH  400       /* directories below each other: each has a descriptor open */
#define REMOVE_PASSES 8         /* looks at a directory that somebody else fills meanwhile */

/* Others may write there, and put a link where a directory was. So each name is looked up in the
 * directory that has been opened, and no path is. */
struct removal {
    char path[PATH_MAX]; /* where it is, for people */
    const struct dir_removal *how;
    dev_t device;
    bool again, stopped; /* a directory above is looked at once more; it is given up */
    struct error *err;
    int rc, reason; /* of the first failure */
};

static void cannot_remove(struct removal *removal)
{
    if (removal->rc == 0) {
        removal->rc = -1;
        removal->reason = errno;
        system_error(removal->err, "remove", removal->path);
    }
}

static bool remove_one(struct removal *removal, int dir, const char *name, int depth);

static bool stops(struct removal *removal)
{
    const struct dir_removal *how = removal->how;

    if (!removal->stopped && how->stops != NULL && how->stops(how->stops_arg)) {
        removal->stopped = true;
        errno = ECANCELED;
        cannot_remove(removal);
    }
    return removal->stopped;
}

/* What stays is left; fd is closed. Some file systems leave names out of a listing while other
 * names of it are removed. Below a directory that is looked at once more there is one look: else
 * there would be as many as a power of its depth, as long as somebody fills each of them. */
static void remove_below(struct removal *removal, int fd, int depth)
{
    size_t length = strlen(removal->path);
    DIR *list = fdopendir(fd);
    struct dirent *entry;
    bool removed = list != NULL, again = removal->again;

    for (int pass = 0; removed && pass < (again ? 1 : REMOVE_PASSES); pass++) {
        removed = false;
        removal->again = again || pass > 0;
        rewinddir(list);
        while (!stops(removal) && (entry = readdir(list)) != NULL) {
            if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                continue;
            snprintf(removal->path + length, sizeof(removal->path) - length, "/%s", entry->d_name);
            removed = remove_one(removal, dirfd(list), entry->d_name, depth) || removed;
            removal->path[length] = '\0';
        }
    }
    removal->again = again;
    if (list != NULL)
        closedir(list);
    else
        close_quietly(fd);
}

/* A directory; one of somebody else can be removed if it is empty. */
static bool remove_inner(struct removal *removal, int dir, const char *name, int depth)
{
    int fd = depth < REMOVE_DEPTH
                 ? openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
                 : -1;
    struct stat st;

    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == removal->device)
        remove_below(removal, fd, depth + 1);
    else if (fd >= 0)
        close(fd); /* another file system is mounted there */
    if (unlinkat(dir, name, AT_REMOVEDIR) == 0)
        return true;
    if (errno == ENOTDIR)
        errno = EPERM; /* a file that cannot be removed */
    if (errno != ENOENT)
        cannot_remove(removal);
    return false;
}

/* True: there was something, and it is gone. */
static bool remove_one(struct removal *removal, int dir, const char *name, int depth)
{
    if (unlinkat(dir, name, 0) == 0)
        return true;
    if (errno == EISDIR || errno == EPERM)
        return remove_inner(removal, dir, name, depth);
    if (errno != ENOENT)
        cannot_remove(removal);
    return false;
}

static bool is_right(const struct dir_removal *how, const struct stat *st)
{
    return st->st_uid == geteuid() && (how->is == NULL || how->is(st, how->is_arg));
}

/* Go on after a failure, so that as little as possible stays; err describes the first failure. */
static int remove_tree(int dir, const char *name, const char *path, const struct dir_removal *how,
                       struct error *err)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct removal removal = {.how = how, .err = err};
    struct stat st = {0};

    snprintf(removal.path, sizeof(removal.path), "%s", path);
    if (fd >= 0 && (fstat(fd, &st) != 0 || !is_right(how, &st))) {
        close(fd);
        return refuse(err, "remove", path, "it has become another one", EPERM);
    }
    removal.device = st.st_dev;
    if (fd >= 0)
        remove_below(&removal, fd, 1);
    else if (how->keep)
        cannot_remove(&removal);
    if (!how->keep && unlinkat(dir, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
        cannot_remove(&removal);
    if (removal.rc < 0)
        errno = removal.reason;
    return removal.rc;
}

static int remove_so(int dir, const char *name, const char *path, const struct dir_removal *how,
                     struct error *err)
{
    struct stat st;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
        return how->keep ? system_error(err, "empty", path) : 0;
    if (check_own_directory_at(dir, name, path, err) < 0)
        return -1;
    return remove_tree(dir, name, path, how, err);
}

int dir_remove_so(const char *path, const struct dir_removal *how, struct error *err)
{
    size_t len = strlen(path);
    char *copy;
    int rc;

    while (len > 1 && path[len - 1] == '/')
        len--;
    copy = strndup(path, len);
    if (copy == NULL)
        return system_error(err, "remove", path);
    rc = remove_so(AT_FDCWD, copy, copy, how, err);
    free(copy);
    return rc;
}

int dir_remove_at(int dir, const char *name, const char *path, struct error *err)
{
    return remove_so(dir, name, path, &(struct dir_removal){0}, err);
}

int dir_remove(const char *path, struct error *err)
{
    return dir_remove_so(path, &(struct dir_removal){0}, err);
}

static const char *kind_of_file(mode_t mode)
{
    if (S_ISDIR(mode))
        return "it is a directory, not a file";
    if (S_ISFIFO(mode))
        return "it is a FIFO, not a regular file";
    if (S_ISSOCK(mode))
        return "it is a socket, not a regular file";
    return "it is a device, not a regular file";
}

static int too_large(struct error *err, const char *path, size_t size, size_t max)
{
    char reason[96];

    snprintf(reason, sizeof(reason), "it has %zu bytes; at most %zu are allowed", size, max);
    return refuse(err, "read", path, reason, EFBIG);
}

/* The whole of a file of at most max bytes. Its size may change meanwhile, and files of the kernel
 * have size 0. */
static char *read_bytes(int fd, const char *path, size_t size, size_t max, size_t *len,
                        struct error *err)
{
    size_t room = size + 1, used = 0;
    char *data = malloc(room + 1);

    while (data != NULL) {
        ssize_t got;

        if (used == room) {
            char *larger = realloc(data, 2 * room + 1);

            if (larger == NULL)
                break;
            data = larger;
            room = 2 * room;
        }
        got = read(fd, data + used, room - used);
        if (got == 0) {
            data[used] = '\0';
            *len = used;
            return data;
        }
        if (got < 0 && errno != EINTR)
            break;
        used += got > 0 ? (size_t)got : 0;
        if (used > max) {
            refuse(err, "read", path, "it has more bytes than are allowed", EFBIG);
            free(data);
            return NULL;
        }
    }
    system_error(err, "read", path);
    free(data);
    return NULL;
}

char *file_read(const char *path, size_t max, size_t *len, struct error *err)
{
    size_t got = 0;
    struct stat st;
    char *data = NULL;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0) {
        /* The error of open() for a socket says nothing useful. */
        if (errno == ENXIO)
            refuse(err, "read", path, "it is not a regular file", ENXIO);
        else
            system_error(err, "read", path);
        return NULL;
    }
    if (fstat(fd, &st) < 0)
        system_error(err, "read", path);
    else if (!S_ISREG(st.st_mode))
        refuse(err, "read", path, kind_of_file(st.st_mode), S_ISDIR(st.st_mode) ? EISDIR : EINVAL);
    else if (st.st_size > 0 && (size_t)st.st_size > max)
        too_large(err, path, (size_t)st.st_size, max);
    else
        data = read_bytes(fd, path, (size_t)st.st_size, max, &got, err);
    close_quietly(fd);
    if (data != NULL && len != NULL)
        *len = got;
    return data;
}

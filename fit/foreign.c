/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of another user (foreign.h). */
#include "fit/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <json-c/json.h>

#include "common/entry.h"
#include "common/files.h"
#include "common/monotonic.h"
#include "fit/put_list.h"
#include "fit/room.h"
#include "state/tree.h"

#define PIECE     ((size_t)1 << 20)
#define DENIED_NS 200000000L
#define LIST_NEW  "files.new"
#define NAME      (PUT_ATTEMPT_SIZE + 24)

/* errno stays. */
static int failed(const char *path, struct error *err)
{
    int saved = errno;

    error_set(err, "%s: %s", error_path(path).text, strerror(saved));
    errno = saved;
    return -1;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* A file or directory of owner at an absolute path without links. The descriptor, or -1 with errno.
 * The text is the same whatever is wrong: this process may look where the other user may not, and
 * the other user, who chooses the path, reads the text. */
static int open_of(const char *path, uid_t owner, struct stat *st, struct error *err)
{
    int saved, fd = entry_open_path(path, st);

    if (fd >= 0 && st->st_uid == owner && (S_ISDIR(st->st_mode) || S_ISREG(st->st_mode)))
        return fd;
    saved = fd < 0 ? errno : EPERM;
    if (fd >= 0)
        close(fd);
    error_set(err,
              "%s: the trainer finds nothing there that it may open and that belongs to the user "
              "who asks; it follows no link",
              error_path(path).text);
    errno = saved;
    return -1;
}

static int open_dir(const char *path, struct error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd >= 0 ? fd : failed(path, err);
}

/* ---- copying --------------------------------------------------------------------------------- */

struct copy {
    int from, to;
    const struct foreign *foreign;
    const char *does; /* what the owner of the files does, for people */
    struct put_list list;
    struct room own, *room;
};

static int find_room(struct copy *copy, struct error *err)
{
    copy->room = copy->foreign->room != NULL ? copy->foreign->room : &copy->own;
    return room_find(copy->to, copy->room, err);
}

static bool stops(const struct foreign *foreign)
{
    return foreign->stops != NULL && foreign->stops(foreign->arg);
}

/* Access goes away and comes back at any time, while files are copied, too: errno says whether it
 * was that. Waits a moment, and then it is to be tried once more. *since: when it was first. */
static bool is_denied(const struct foreign *foreign, time_t *since)
{
    const struct timespec pause = {.tv_nsec = DENIED_NS};
    time_t now = monotonic_s();

    if (errno != EACCES || foreign->patience == 0 || stops(foreign))
        return false;
    if (*since == 0)
        *since = now;
    if (now > *since + foreign->patience)
        return false;
    nanosleep(&pause, NULL);
    return true;
}

/* errno stays. */
static void close_kept(int fd)
{
    int saved = errno;

    if (fd >= 0)
        close(fd);
    errno = saved;
}

/* Not what is written there meanwhile. */
static int pump(const struct copy *copy, int from, int to, int64_t bytes, const char *path,
                struct error *err)
{
    char *buffer = malloc(PIECE);
    ssize_t n = buffer != NULL ? 1 : -1;
    bool written = true, stopped = false;

    while (n > 0 && bytes > 0 && written && !(stopped = stops(copy->foreign))) {
        n = read(from, buffer, bytes < (int64_t)PIECE ? (size_t)bytes : PIECE);
        bytes -= n;
        written = n <= 0 || file_write_all(to, buffer, (size_t)n) == 0;
    }
    free(buffer);
    if (n < 0 || !written)
        return failed(path, err);
    return stopped ? error_set(err, "given up") : 0;
}

/* Hard links and renames bring files of anybody to any name. */
static int check_owner(const struct copy *copy, int fd, int64_t *bytes, const char *path,
                       struct error *err)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return failed(path, err);
    *bytes = st.st_size;
    return st.st_uid == copy->foreign->owner
               ? 0
               : error_set(err, "%s: it does not belong to the user who %s", error_path(path).text,
                           copy->does);
}

static int copy_open(struct copy *copy, int fd, const char *path, struct error *err)
{
    int64_t bytes;
    int to, rc;

    if (check_owner(copy, fd, &bytes, path, err) != 0 ||
        room_take(copy->room, path, bytes, err) != 0)
        return -1;
    to = tree_make(copy->to, path, err);
    if (to < 0)
        return -1;
    rc = pump(copy, fd, to, bytes, path, err);
    close(to);
    return rc;
}

static int copy_one(const char *path, int64_t bytes, void *arg, struct error *err)
{
    struct copy *copy = arg;
    int rc, fd = tree_open(copy->from, path, &bytes, err);

    if (fd < 0)
        return -1;
    rc = copy_open(copy, fd, path, err);
    close(fd);
    return rc;
}

static int copy_once(const char *path, const struct foreign *foreign, const char *to,
                     char result[PATH_MAX], struct error *err)
{
    const char *name = strrchr(path, '/');
    struct copy copy = {.foreign = foreign, .does = "asks", .to = -1};
    struct stat st;
    int rc = -1;

    errno = 0;
    copy.from = open_of(path, foreign->owner, &st, err);
    if (copy.from < 0)
        return -1;
    if (dir_make(to, err) == 0)
        copy.to = open_dir(to, err);
    if (copy.to < 0 || find_room(&copy, err) != 0) {
        rc = -1;
    } else if (S_ISDIR(st.st_mode)) {
        snprintf(result, PATH_MAX, "%s", to);
        rc = tree_walk_of(copy.from, foreign->owner, copy_one, &copy, err);
    } else {
        snprintf(result, PATH_MAX, "%.2000s/%.2000s", to, name != NULL ? name + 1 : path);
        rc = copy_open(&copy, copy.from, name != NULL ? name + 1 : path, err);
    }
    close_kept(copy.from);
    close_kept(copy.to);
    return rc;
}

int foreign_copy(const char *path, const struct foreign *foreign, const char *to,
                 char result[PATH_MAX], struct error *err)
{
    struct room before = foreign->room != NULL ? *foreign->room : (struct room){0};
    time_t since = 0;
    int rc;

    while ((rc = copy_once(path, foreign, to, result, err)) != 0 && is_denied(foreign, &since)) {
        if (dir_remove(to, err) != 0)
            break;
        if (foreign->room != NULL)
            *foreign->room = before;
    }
    return rc == 0 ? 0 : error_prefix(err, "%s", error_path(path).text);
}

/* ---- putting --------------------------------------------------------------------------------- */

/* A new file there, which its owner may read: the ACL of the directory lets it as far as the mode
 * does. */
static int make_there(int dir, const char *name, struct error *err)
{
    int fd;

    if (unlinkat(dir, name, 0) != 0 && errno != ENOENT)
        return failed(name, err);
    fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0660);
    if (fd >= 0 && fchmod(fd, 0660) == 0)
        return fd;
    failed(name, err);
    if (fd >= 0)
        close(fd);
    return -1;
}

/* The file of that number, of this attempt: another one that goes on puts files of its own. */
struct put_name {
    char text[NAME];
};

static struct put_name put_name(const struct put_list *list, size_t number)
{
    struct put_name name;

    snprintf(name.text, sizeof(name.text), "%s-%zu", list->attempt, number);
    return name;
}

static int put_one(const char *path, int64_t bytes, void *arg, struct error *err)
{
    struct copy *copy = arg;
    size_t before = json_object_array_length(copy->list.names);
    struct put_name name = put_name(&copy->list, before + 1);
    int from, to = -1, rc;

    if (before == ROOM_FILES_MAX)
        return error_set(err, "the training has written more than %d files", ROOM_FILES_MAX);
    from = tree_open(copy->from, path, &bytes, err);
    if (from >= 0 && room_take(copy->room, name.text, bytes, err) == 0)
        to = make_there(copy->to, name.text, err);
    rc = to >= 0 ? pump(copy, from, to, bytes, path, err) : -1;
    if (rc == 0 && fsync(to) != 0)
        rc = failed(path, err);
    if (to >= 0)
        close(to);
    if (from >= 0)
        close(from);
    json_object_array_add(copy->list.names, json_object_new_string(path));
    return rc;
}

static int write_list(const struct copy *copy, const char *text, struct error *err)
{
    int rc, fd = make_there(copy->to, LIST_NEW, err);

    if (fd < 0)
        return -1;
    rc = file_write_all(fd, text, strlen(text)) == 0 && fsync(fd) == 0 &&
                 renameat(copy->to, LIST_NEW, copy->to, PUT_LIST_FILE) == 0
             ? 0
             : failed(PUT_LIST_FILE, err);
    close_kept(fd);
    return rc;
}

static int put_list(const struct copy *copy, struct error *err)
{
    char *text = put_list_text(&copy->list, err);
    int rc = text != NULL ? write_list(copy, text, err) : -1;

    free(text);
    return rc;
}

static int put_there(struct copy *copy, struct error *err)
{
    entry_remove_files(copy->to); /* of an attempt before; what cannot be removed takes room */
    errno = 0;
    return find_room(copy, err) == 0 && tree_walk(copy->from, put_one, copy, err) == 0
               ? put_list(copy, err)
               : -1;
}

static int put_once(const char *from, const char *to, const struct foreign *foreign,
                    struct error *err)
{
    struct copy copy = {.from = open_dir(from, err), .foreign = foreign};
    struct stat st;
    int rc = -1;

    if (copy.from < 0)
        return -1;
    errno = 0;
    copy.to = open_of(to, foreign->owner, &st, err);
    put_list_begin(&copy.list);
    if (copy.to >= 0)
        rc = put_there(&copy, err);
    close_kept(copy.from);
    close_kept(copy.to);
    put_list_clear(&copy.list);
    return rc;
}

int foreign_put(const char *from, const char *to, const struct foreign *foreign, struct error *err)
{
    time_t since = 0;
    int rc;

    do
        rc = put_once(from, to, foreign, err);
    while (rc != 0 && is_denied(foreign, &since));
    return rc;
}

/* ---- taking ---------------------------------------------------------------------------------- */

static int read_list(struct copy *copy, struct error *err)
{
    struct stat st;
    size_t len = 0;
    int64_t bytes;
    int rc, fd = entry_open(copy->from, PUT_LIST_FILE, S_IFREG, &st, err);
    char *text = NULL;

    if (fd >= 0 && check_owner(copy, fd, &bytes, PUT_LIST_FILE, err) == 0)
        text = entry_text(fd, PUT_LIST_MAX, &len, err);
    if (fd >= 0)
        close(fd);
    rc = text != NULL ? put_list_parse(text, len, &copy->list, err) : -1;
    free(text);
    return rc;
}

/* A trainer of an older release has no attempt in its names. */
static int open_put(const struct copy *copy, size_t number, int64_t *bytes, struct error *err)
{
    char name[NAME];
    int fd = tree_open(copy->from, put_name(&copy->list, number).text, bytes, err);

    if (fd >= 0 || errno != ENOENT)
        return fd;
    snprintf(name, sizeof(name), "%zu", number);
    return tree_open(copy->from, name, bytes, err);
}

static int take_one(struct copy *copy, size_t number, const char *path, struct error *err)
{
    int64_t bytes;
    int from, to = -1, rc;

    from = open_put(copy, number, &bytes, err);
    if (from >= 0 && check_owner(copy, from, &bytes, path, err) == 0 &&
        room_take(copy->room, path, bytes, err) == 0)
        to = tree_make(copy->to, path, err);
    rc = to >= 0 ? pump(copy, from, to, bytes, path, err) : -1;
    if (to >= 0)
        close(to);
    if (from >= 0)
        close(from);
    return rc;
}

static int take_all(struct copy *copy, struct error *err)
{
    json_object *names = copy->list.names;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < json_object_array_length(names); i++)
        rc = take_one(copy, i + 1, json_object_get_string(json_object_array_get_idx(names, i)),
                      err);
    return rc;
}

int foreign_take(const char *from, const char *to, const struct foreign *foreign, struct error *err)
{
    struct copy copy = {
        .from = open_dir(from, err), .to = -1, .foreign = foreign, .does = "trains"};
    int rc = -1;

    if (copy.from >= 0)
        copy.to = open_dir(to, err);
    if (copy.to >= 0 && find_room(&copy, err) == 0)
        rc = read_list(&copy, err);
    if (rc == 0)
        rc = take_all(&copy, err);
    put_list_clear(&copy.list);
    if (copy.to >= 0)
        close(copy.to);
    if (copy.from >= 0)
        close(copy.from);
    return rc;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of another user (foreign.h). */
#include "fit/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <json-c/json.h>

#include "common/entry.h"
#include "common/files.h"
#include "fit/grant.h"
#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/state_manifest.h"
#include "state/tree.h"

#define PIECE     ((size_t)1 << 20)
#define LIST_FILE "files.json"
#define LIST_NEW  "files.new"
#define LIST_MAX  ((size_t)16 << 20)
#define FILES_MAX 200000
#define NUMBER    24

static int failed(const char *path, struct error *err)
{
    return error_set(err, "%s: %s", error_path(path).text, strerror(errno));
}

/* ---- opening --------------------------------------------------------------------------------- */

static int open_without_links(const char *path)
{
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
                           .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};

    return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
}

bool foreign_is_open(const char *path)
{
    int fd = open_without_links(path);

    if (fd >= 0)
        close(fd);
    return fd >= 0 || errno != EACCES;
}

/* A file or directory of owner at an absolute path without links. The descriptor. */
static int open_of(const char *path, uid_t owner, struct stat *st, struct error *err)
{
    int fd = open_without_links(path);

    if (fd < 0)
        return errno == ELOOP ? error_set(err, "%s: there is a link in it", error_path(path).text)
                              : failed(path, err);
    if (fstat(fd, st) == 0 && st->st_uid == owner && (S_ISDIR(st->st_mode) || S_ISREG(st->st_mode)))
        return fd;
    close(fd);
    return error_set(err, "%s: it does not belong to the user who asks", error_path(path).text);
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
    const char *does;     /* what the owner of the files does, for people */
    json_object *list;    /* of foreign_put */
    int64_t bytes, files; /* that there is room for */
};

/* A tenth of what is free stays free. Some file systems have no limit of files. */
static int find_room(struct copy *copy, struct error *err)
{
    struct statvfs st;

    if (fstatvfs(copy->to, &st) != 0)
        return error_set(err, "the room for copies: %s", strerror(errno));
    copy->bytes = (int64_t)((double)st.f_bavail * (double)st.f_frsize * 0.9);
    copy->files = st.f_files > 0 ? (int64_t)((double)st.f_favail * 0.9) : INT64_MAX;
    return 0;
}

static int take_room(struct copy *copy, int64_t bytes, const char *path, struct error *err)
{
    if (copy->files < 1 || bytes > copy->bytes)
        return error_set(err, "%s: there is no room for a copy of it", error_path(path).text);
    copy->files--;
    copy->bytes -= bytes;
    return 0;
}

static bool stops(const struct copy *copy)
{
    return copy->foreign->stops != NULL && copy->foreign->stops(copy->foreign->arg);
}

/* Not what is written there meanwhile. */
static int pump(const struct copy *copy, int from, int to, int64_t bytes, const char *path,
                struct error *err)
{
    char *buffer = malloc(PIECE);
    ssize_t n = buffer != NULL ? 1 : -1;
    bool written = true, stopped = false;

    while (n > 0 && bytes > 0 && written && !(stopped = stops(copy))) {
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

    if (check_owner(copy, fd, &bytes, path, err) != 0 || take_room(copy, bytes, path, err) != 0)
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

int foreign_copy(const char *path, const struct foreign *foreign, const char *to,
                 char result[PATH_MAX], struct error *err)
{
    const char *name = strrchr(path, '/');
    struct copy copy = {.foreign = foreign, .does = "asks", .to = -1};
    struct stat st;
    int rc = -1;

    copy.from = open_of(path, foreign->owner, &st, err);
    if (copy.from < 0)
        return -1;
    if (dir_make(to, err) == 0)
        copy.to = open_dir(to, err);
    if (copy.to < 0 || find_room(&copy, err) != 0) {
        rc = -1;
    } else if (S_ISDIR(st.st_mode)) {
        snprintf(result, PATH_MAX, "%s", to);
        rc = tree_walk(copy.from, copy_one, &copy, err);
    } else {
        snprintf(result, PATH_MAX, "%.2000s/%.2000s", to, name != NULL ? name + 1 : path);
        rc = copy_open(&copy, copy.from, name != NULL ? name + 1 : path, err);
    }
    close(copy.from);
    if (copy.to >= 0)
        close(copy.to);
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

static int put_one(const char *path, int64_t bytes, void *arg, struct error *err)
{
    const struct copy *copy = arg;
    char name[NUMBER];
    int from, to, rc;

    snprintf(name, sizeof(name), "%zu", json_object_array_length(copy->list) + 1);
    from = tree_open(copy->from, path, &bytes, err);
    to = from >= 0 ? make_there(copy->to, name, err) : -1;
    rc = to >= 0 ? pump(copy, from, to, bytes, path, err) : -1;
    if (rc == 0 && fsync(to) != 0)
        rc = failed(path, err);
    if (to >= 0)
        close(to);
    if (from >= 0)
        close(from);
    json_object_array_add(copy->list, json_object_new_string(path));
    return rc;
}

static int put_list(const struct copy *copy, struct error *err)
{
    const char *text = json_object_to_json_string_ext(copy->list, JSON_C_TO_STRING_PLAIN);
    int rc, fd = make_there(copy->to, LIST_NEW, err);

    if (fd < 0)
        return -1;
    rc = text != NULL && file_write_all(fd, text, strlen(text)) == 0 && fsync(fd) == 0 &&
                 renameat(copy->to, LIST_NEW, copy->to, LIST_FILE) == 0
             ? 0
             : failed(LIST_FILE, err);
    close(fd);
    return rc;
}

int foreign_put(const char *from, const char *to, const struct foreign *foreign, struct error *err)
{
    struct copy copy = {.from = open_dir(from, err), .foreign = foreign};
    struct stat st;
    int rc = -1;

    if (copy.from < 0)
        return -1;
    copy.to = open_of(to, foreign->owner, &st, err);
    copy.list = json_object_new_array();
    if (copy.to >= 0)
        rc = tree_walk(copy.from, put_one, &copy, err);
    if (rc == 0)
        rc = json_object_array_length(copy.list) > 0
                 ? put_list(&copy, err)
                 : error_set(err, "the training has written no files");
    json_object_put(copy.list);
    close(copy.from);
    if (copy.to >= 0)
        close(copy.to);
    return rc;
}

/* ---- taking ---------------------------------------------------------------------------------- */

/* So many commas are so many values, each of which would need more memory than text. */
static bool is_small(const char *text, size_t len)
{
    size_t commas = 0;

    for (const char *at = text; (at = memchr(at, ',', len - (size_t)(at - text))) != NULL; at++)
        commas++;
    return commas < FILES_MAX;
}

/* A new array; NULL with err. */
static json_object *parse_list(const char *text, size_t len, struct error *err)
{
    json_tokener *tokener = is_small(text, len) ? json_tokener_new() : NULL;
    json_object *list = tokener != NULL ? json_tokener_parse_ex(tokener, text, (int)len) : NULL;

    if (tokener != NULL)
        json_tokener_free(tokener);
    if (json_object_is_type(list, json_type_array))
        return list;
    json_object_put(list);
    error_set(err, LIST_FILE ": this is no list of at most %d files", FILES_MAX);
    return NULL;
}

static json_object *read_list(const struct copy *copy, struct error *err)
{
    json_object *list = NULL;
    struct stat st;
    size_t len = 0;
    int64_t bytes;
    int fd = entry_open(copy->from, LIST_FILE, S_IFREG, &st, err);
    char *text = NULL;

    if (fd >= 0 && check_owner(copy, fd, &bytes, LIST_FILE, err) == 0)
        text = entry_text(fd, LIST_MAX, &len, err);
    if (fd >= 0)
        close(fd);
    if (text != NULL)
        list = parse_list(text, len, err);
    free(text);
    return list;
}

static int take_one(struct copy *copy, size_t number, const char *path, struct error *err)
{
    char name[NUMBER];
    int64_t bytes;
    int from, to = -1, rc;

    if (path == NULL || !state_file_ok(path) ||
        strncmp(path, GRANT_INCOMING, strlen(GRANT_INCOMING)) == 0)
        return error_set(err,
                         "the trainer has written a file of a name that cannot be used: \"%s\"",
                         path != NULL ? error_value(path).text : "");
    snprintf(name, sizeof(name), "%zu", number);
    from = tree_open(copy->from, name, &bytes, err);
    if (from >= 0 && check_owner(copy, from, &bytes, path, err) == 0 &&
        take_room(copy, bytes, path, err) == 0)
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
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < json_object_array_length(copy->list); i++)
        rc = take_one(copy, i + 1, json_object_get_string(json_object_array_get_idx(copy->list, i)),
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
        copy.list = read_list(&copy, err);
    if (copy.list != NULL)
        rc = take_all(&copy, err);
    json_object_put(copy.list);
    if (copy.to >= 0)
        close(copy.to);
    if (copy.from >= 0)
        close(copy.from);
    return rc;
}

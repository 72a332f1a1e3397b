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
#include <sys/syscall.h>
#include <unistd.h>

#include <json-c/json.h>

#include "common/entry.h"
#include "common/files.h"
#include "fit/grant.h"
#include "lib/json_get.h"
#include "lib/json_text.h"
#include "state/tree.h"

#define PIECE     ((size_t)1 << 20)
#define LIST_FILE "files.json"
#define LIST_NEW  "files.new"
#define LIST_MAX  ((size_t)64 << 20)
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

static int pump(int from, int to, const char *path, struct error *err)
{
    char *buffer = malloc(PIECE);
    ssize_t n = buffer != NULL ? 0 : -1;
    bool written = true;

    while (buffer != NULL && written && (n = read(from, buffer, PIECE)) > 0)
        written = file_write_all(to, buffer, (size_t)n) == 0;
    free(buffer);
    return n == 0 && written ? 0 : failed(path, err);
}

struct copy {
    int from, to;
    uid_t owner;
    json_object *list; /* of foreign_put */
};

static int copy_open(const struct copy *copy, int fd, const char *path, struct error *err)
{
    struct stat st;
    int to, rc;

    if (fstat(fd, &st) != 0 || st.st_uid != copy->owner)
        return error_set(err, "%s: it does not belong to the user who asks", error_path(path).text);
    to = tree_make(copy->to, path, err);
    if (to < 0)
        return -1;
    rc = pump(fd, to, path, err);
    close(to);
    return rc;
}

static int copy_one(const char *path, int64_t bytes, void *arg, struct error *err)
{
    const struct copy *copy = arg;
    int rc, fd = tree_open(copy->from, path, &bytes, err);

    if (fd < 0)
        return -1;
    rc = copy_open(copy, fd, path, err);
    close(fd);
    return rc;
}

int foreign_copy(const char *path, uid_t owner, const char *to, char result[PATH_MAX],
                 struct error *err)
{
    const char *name = strrchr(path, '/');
    struct copy copy = {.owner = owner, .to = -1};
    struct stat st;
    int rc = -1;

    copy.from = open_of(path, owner, &st, err);
    if (copy.from < 0)
        return -1;
    if (dir_make(to, err) == 0)
        copy.to = open_dir(to, err);
    if (copy.to >= 0 && S_ISDIR(st.st_mode)) {
        snprintf(result, PATH_MAX, "%s", to);
        rc = tree_walk(copy.from, copy_one, &copy, err);
    } else if (copy.to >= 0) {
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
    rc = to >= 0 ? pump(from, to, path, err) : -1;
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

int foreign_put(const char *from, const char *to, uid_t owner, struct error *err)
{
    struct copy copy = {.from = open_dir(from, err)};
    struct stat st;
    int rc = -1;

    if (copy.from < 0)
        return -1;
    copy.to = open_of(to, owner, &st, err);
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

/* A new array; NULL with err. */
static json_object *read_list(int dir, struct error *err)
{
    json_tokener *tokener = json_tokener_new();
    json_object *list = NULL;
    struct stat st;
    size_t len = 0;
    int fd = entry_open(dir, LIST_FILE, S_IFREG, &st, err);
    char *text = fd >= 0 ? entry_text(fd, LIST_MAX, &len, err) : NULL;

    if (fd >= 0)
        close(fd);
    if (text != NULL)
        list = json_tokener_parse_ex(tokener, text, (int)len);
    if (text != NULL && !json_object_is_type(list, json_type_array))
        error_set(err, LIST_FILE ": this is no list of files");
    json_tokener_free(tokener);
    free(text);
    if (json_object_is_type(list, json_type_array))
        return list;
    json_object_put(list);
    return NULL;
}

static int take_one(const struct copy *copy, size_t number, const char *path, struct error *err)
{
    char name[NUMBER];
    int64_t bytes;
    int from, to, rc;

    if (path == NULL || path[0] == '\0' ||
        strncmp(path, GRANT_INCOMING, strlen(GRANT_INCOMING)) == 0)
        return error_set(err, "the trainer has written a file of a name that cannot be used");
    snprintf(name, sizeof(name), "%zu", number);
    from = tree_open(copy->from, name, &bytes, err);
    to = from >= 0 ? tree_make(copy->to, path, err) : -1;
    rc = to >= 0 ? pump(from, to, path, err) : -1;
    if (to >= 0)
        close(to);
    if (from >= 0)
        close(from);
    return rc;
}

int foreign_take(const char *from, const char *to, struct error *err)
{
    struct copy copy = {.from = open_dir(from, err), .to = -1};
    json_object *list = NULL;
    int rc = -1;

    if (copy.from >= 0)
        copy.to = open_dir(to, err);
    if (copy.to >= 0)
        list = read_list(copy.from, err);
    if (list != NULL)
        rc = 0;
    for (size_t i = 0; rc == 0 && i < json_object_array_length(list); i++)
        rc = take_one(&copy, i + 1, json_object_get_string(json_object_array_get_idx(list, i)),
                      err);
    json_object_put(list);
    if (copy.to >= 0)
        close(copy.to);
    if (copy.from >= 0)
        close(copy.from);
    return rc;
}

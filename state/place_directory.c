/* SPDX-License-Identifier: GPL-2.0-or-later */
/* States in a directory (place.h). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/entry.h"
#include "common/files.h"
#include "common/state_list.h"
#include "common/stop.h"
#include "state/partial.h"
#include "state/place_private.h"
#include "state/tree.h"

#define PIECE     ((size_t)1 << 20)
#define NAME_SIZE (STATE_NAME_SIZE + 16)

struct directory {
    char *path;
    /* That directory, since its states were listed: what is decided by the list is done there,
     * wherever others let the path lead by then. -1: they were not, or it is not there. */
    int base;
    int64_t number; /* of the state that is being written; 0: none */
    int fd;         /* of its directory */
};

void *place_directory_open(const char *path, struct error *err)
{
    struct directory *own = calloc(1, sizeof(*own));

    if (own == NULL || (own->path = strdup(path)) == NULL) {
        free(own);
        error_set(err, "out of memory");
        return NULL;
    }
    own->base = -1;
    own->fd = -1;
    return own;
}

static void close_directory(void *arg)
{
    struct directory *own = arg;

    if (own->fd >= 0)
        close(own->fd);
    if (own->base >= 0)
        close(own->base);
    free(own->path);
    free(own);
}

static int failed(const struct directory *own, const char *name, struct error *err)
{
    return error_set(err, "%s/%s: %s", error_path(own->path).text, name, strerror(errno));
}

static int open_path(const struct directory *own, struct error *err)
{
    int fd = open(own->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int saved = errno;

    if (fd < 0)
        error_set(err, "%s: %s", error_path(own->path).text, strerror(saved));
    errno = saved;
    return fd;
}

/* Somebody may have removed it since it was listed, when it was empty, and it was made again. */
static bool is_listed(const struct directory *own)
{
    struct stat st;

    return own->base >= 0 && fstat(own->base, &st) == 0 && st.st_nlink > 0;
}

static int open_base(const struct directory *own, struct error *err)
{
    return is_listed(own) ? fcntl(own->base, F_DUPFD_CLOEXEC, 0) : open_path(own, err);
}

/* ---- what is there --------------------------------------------------------------------------- */

static int64_t size_of(const char *file, void *arg)
{
    int64_t bytes = -1;
    int fd = tree_open(*(const int *)arg, file, &bytes, NULL);

    if (fd >= 0)
        close(fd);
    return fd >= 0 ? bytes : -1;
}

static int list_directory(void *arg, struct states *states, struct error *err)
{
    struct directory *own = arg;
    int rc;

    if (own->base >= 0)
        close(own->base);
    own->base = open_path(own, err);
    if (own->base < 0)
        return errno == ENOENT ? 0 : -1;
    rc = state_list_read(own->base, size_of, states, err);
    if (rc != 0)
        error_prefix(err, "%s", error_path(own->path).text);
    return rc;
}

/* ---- writing a state ------------------------------------------------------------------------- */

/* Somebody may have written this state since the number was chosen. */
static bool is_written(int base, int64_t number)
{
    char name[STATE_NAME_SIZE];

    state_name(name, number);
    return faccessat(base, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static enum place_result begin_open(struct directory *own, int base, int64_t number,
                                    struct error *err)
{
    int fd = partial_make(base, number, err);

    if (fd < 0)
        return errno == EEXIST ? PLACE_CLASH : PLACE_FAILED;
    if (is_written(base, number)) {
        unlinkat(base, partial_name(number).text, AT_REMOVEDIR);
        close(fd);
        error_set(err, "state %lld is there already", (long long)number);
        return PLACE_CLASH;
    }
    own->fd = fd;
    own->number = number;
    return PLACE_OK;
}

static enum place_result begin_state(void *arg, int64_t number, struct error *err)
{
    struct directory *own = arg;
    enum place_result result;
    int base;

    if (dir_make(own->path, err) != 0 || (base = open_base(own, err)) < 0)
        return PLACE_FAILED;
    result = begin_open(own, base, number, err);
    if (result != PLACE_OK)
        error_prefix(err, "%s", error_path(own->path).text);
    close(base);
    return result;
}

/* Exactly that many bytes. */
static int copy(int from, int to, int64_t bytes, char *buffer,
                void (*saw)(const void *data, size_t len, void *arg), void *arg, struct error *err)
{
    for (int64_t at = 0; at < bytes;) {
        size_t room = bytes - at < (int64_t)PIECE ? (size_t)(bytes - at) : PIECE;
        ssize_t n = pread(from, buffer, room, at);

        if (stop_asked())
            return error_set(err, "stopped, or out of time");
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            return error_set(err, "the file became shorter meanwhile");
        if (n < 0 || file_write_all(to, buffer, (size_t)n) != 0)
            return error_set(err, "%s", strerror(errno));
        saw(buffer, (size_t)n, arg);
        at += n;
    }
    return fsync(to) == 0 ? 0 : error_set(err, "%s", strerror(errno));
}

static int put_file(void *arg, int lane, const char *name, int fd, int64_t bytes,
                    void (*saw)(const void *data, size_t len, void *arg), void *saw_arg,
                    struct error *err)
{
    struct directory *own = arg;
    int to = tree_make(own->fd, name, err), rc = -1;
    char *buffer = malloc(PIECE);

    (void)lane;
    if (to >= 0 && buffer != NULL)
        rc = copy(fd, to, bytes, buffer, saw, saw_arg, err);
    else if (to >= 0)
        error_set(err, "out of memory");
    if (to >= 0)
        close(to);
    free(buffer);
    return rc == 0 ? 0 : error_prefix(err, "%s", error_path(name).text);
}

static int write_manifest(const struct directory *own, const char *manifest, struct error *err)
{
    int rc, fd = tree_make(own->fd, STATE_MANIFEST, err);

    if (fd < 0)
        return -1;
    rc = file_write_all(fd, manifest, strlen(manifest)) == 0 && fsync(fd) == 0
             ? 0
             : error_set(err, STATE_MANIFEST ": %s", strerror(errno));
    close(fd);
    return rc;
}

static int publish(struct directory *own, int base, struct error *err)
{
    if (partial_publish(base, own->number, err) != 0)
        return error_prefix(err, "%s", error_path(own->path).text);
    own->number = 0;
    return 0;
}

static int finish_state(void *arg, const char *manifest, struct error *err)
{
    struct directory *own = arg;
    int rc, base = open_base(own, err);

    if (base < 0)
        return -1;
    rc = write_manifest(own, manifest, err);
    if (rc == 0)
        rc = tree_flush(own->fd, err);
    if (rc == 0)
        rc = publish(own, base, err);
    close(base);
    return rc;
}

static int remove_entry(const struct directory *own, int base, const char *name, struct error *err)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s", own->path, name);
    return dir_remove_at(base, name, path, err);
}

/* Somebody may have removed it meanwhile, and another writer may have begun one of its name. */
static bool is_ours(const struct directory *own, int base)
{
    struct stat ours, found;

    return fstat(own->fd, &ours) == 0 &&
           fstatat(base, partial_name(own->number).text, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
           ours.st_dev == found.st_dev && ours.st_ino == found.st_ino;
}

static void give_up_state(void *arg)
{
    struct directory *own = arg;
    int base = own->number > 0 ? open_base(own, NULL) : -1;

    if (base >= 0 && is_ours(own, base))
        remove_entry(own, base, partial_name(own->number).text, NULL);
    if (base >= 0)
        close(base);
    own->number = 0;
}

/* ---- others ---------------------------------------------------------------------------------- */

static enum place_result use_state(void *arg, int64_t from, const struct state *state,
                                   struct error *err)
{
    struct directory *own = arg;
    char link[NAME_SIZE];
    int rc, base = open_base(own, err);

    if (base < 0)
        return PLACE_FAILED;
    if (state_list_pointer(base) != from) {
        close(base);
        error_set(err, "%s/" STATE_POINTER ": somebody else has changed it meanwhile",
                  error_path(own->path).text);
        return PLACE_CLASH;
    }
    snprintf(link, sizeof(link), ".new-" STATE_POINTER "-%d", (int)getpid());
    unlinkat(base, link, 0);
    rc = symlinkat(state->name, base, link) == 0 &&
                 renameat(base, link, base, STATE_POINTER) == 0 && fsync(base) == 0
             ? 0
             : failed(own, STATE_POINTER, err);
    close(base);
    return rc == 0 ? PLACE_OK : PLACE_FAILED;
}

static int take_open(int fd, int64_t bytes, char *buffer, const struct s3_sink *sink,
                     struct error *err)
{
    for (int64_t at = 0; at < bytes;) {
        ssize_t n = pread(fd, buffer, PIECE, at);

        if (stop_asked())
            return error_set(err, "stopped, or out of time");
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return error_set(err, "%s", n == 0 ? "it became shorter meanwhile" : strerror(errno));
        if (s3_sink_feed(sink, buffer, (size_t)n, &at, err) != 0)
            return -1;
    }
    return 0;
}

static int take_file(void *arg, int lane, const struct state *state, const struct state_file *file,
                     const struct s3_sink *sink, struct error *err)
{
    struct directory *own = arg;
    char *buffer = malloc(PIECE);
    struct stat st;
    int64_t bytes = 0;
    int base = open_base(own, err), dir = -1, fd = -1, rc = -1;

    (void)lane;
    if (base >= 0)
        dir = entry_open(base, state->name, S_IFDIR, &st, err);
    if (dir >= 0)
        fd = tree_open(dir, file->name, &bytes, err);
    if (fd >= 0 && bytes != file->bytes)
        error_set(err, "%s changed meanwhile", error_path(file->name).text);
    else if (fd >= 0 && buffer == NULL)
        error_set(err, "out of memory");
    else if (fd >= 0)
        rc = take_open(fd, bytes, buffer, sink, err);
    for (int i = 0, open[] = {base, dir, fd}; i < 3; i++)
        if (open[i] >= 0)
            close(open[i]);
    free(buffer);
    return rc;
}

/* Without its manifest it is no state any more, whatever becomes of the rest. Root leaves alone
 * what dir_remove_at() would not remove. */
static int remove_manifest(const struct directory *own, int base, const struct state *state,
                           struct error *err)
{
    struct stat st;
    int rc = 0, dir = entry_open_own(base, state->name, S_IFDIR, &st, err);

    if (dir < 0)
        return error_prefix(err, "%s", error_path(own->path).text);
    if (unlinkat(dir, STATE_MANIFEST, 0) != 0 && errno != ENOENT)
        rc = failed(own, state->name, err);
    close(dir);
    return rc;
}

static int remove_state(void *arg, const struct state *state, struct error *err)
{
    struct directory *own = arg;
    int rc = 0, base = open_base(own, err);

    if (base < 0)
        return -1;
    if (state->kind != STATE_IS_PARTIAL) {
        rc = remove_manifest(own, base, state, err);
        if (rc == 0)
            rc = remove_entry(own, base, state->name, err);
    }
    if (rc == 0)
        rc = remove_entry(own, base, partial_name(state->number).text, err);
    close(base);
    return rc;
}

const struct place_kind place_directory = {
    .close = close_directory,
    .list = list_directory,
    .begin = begin_state,
    .alone = INT64_MAX,
    .put = put_file,
    .finish = finish_state,
    .give_up = give_up_state,
    .use = use_state,
    .take = take_file,
    .remove = remove_state,
};

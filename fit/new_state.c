/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state that a fit makes (new_state.h). */
#include "fit/new_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/entry.h"
#include "common/files.h"
#include "common/monotonic.h"
#include "common/stop.h"
#include "state/digest.h"
#include "state/partial.h"
#include "state/tree.h"

#define ATTEMPT         ".attempt-"
#define PIECE           ((size_t)1 << 20)
#define DISCARD_SECONDS 120

struct new_state_path new_state_path(const char *place, int64_t number, bool whole)
{
    char name[STATE_NAME_SIZE];
    struct new_state_path path;

    state_name(name, number);
    snprintf(path.text, sizeof(path.text), "%.4000s/%s", place,
             whole ? name : partial_name(number).text);
    return path;
}

struct name {
    char text[sizeof(ATTEMPT) + NEW_STATE_ATTEMPT_MAX];
};

static struct name name_of(const char *attempt)
{
    struct name name;

    snprintf(name.text, sizeof(name.text), ATTEMPT "%.*s", NEW_STATE_ATTEMPT_MAX, attempt);
    return name;
}

struct new_state_path new_state_attempt_path(const char *place, int64_t number, const char *attempt)
{
    struct new_state_path path = new_state_path(place, number, false);
    size_t length = strlen(path.text);

    snprintf(path.text + length, sizeof(path.text) - length, "/%s", name_of(attempt).text);
    return path;
}

static int open_place(const struct new_state *state, struct error *err)
{
    int base = open(state->place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return base >= 0 ? base
                     : error_set(err, "%s: %s", error_path(state->place).text, strerror(errno));
}

int new_state_make(const struct new_state *state, struct pin *pin, struct error *err)
{
    struct stat st;
    int base, fd, saved;

    if (dir_make(state->place, err) != 0 || (base = open_place(state, err)) < 0)
        return -1;
    fd = partial_make(base, state->number, err);
    saved = errno;
    if (fd < 0)
        error_prefix(err, "%s", error_path(state->place).text);
    else if (pin != NULL && fstat(fd, &st) == 0)
        *pin = pin_of(&st);
    if (fd >= 0)
        close(fd);
    close(base);
    errno = saved;
    return fd >= 0 ? 0 : -1;
}

static const struct pin *pin_for(const struct new_state *state)
{
    static const struct pin any;

    return state->pin != NULL ? state->pin : &any;
}

static int open_pinned(const struct new_state *state, bool whole, struct error *err)
{
    struct new_state_path path = new_state_path(state->place, state->number, whole);
    int fd = open(path.text, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0)
        return error_set(err, "%s: %s", error_path(path.text).text, strerror(errno));
    if (fstat(fd, &st) == 0 && pin_is_dir(&st, pin_for(state)))
        return fd;
    close(fd);
    return error_set(err, "%s: it is another one than the fit has made",
                     error_path(path.text).text);
}

int new_state_open(const struct new_state *state, struct error *err)
{
    return open_pinned(state, false, err);
}

int new_state_open_done(const struct new_state *state, struct error *err)
{
    struct new_state_path partial = new_state_path(state->place, state->number, false);

    return open_pinned(state, access(partial.text, F_OK) != 0, err);
}

bool new_state_is_other(const struct new_state *state)
{
    struct new_state_path path = new_state_path(state->place, state->number, false);
    struct stat st;

    return lstat(path.text, &st) == 0 && !pin_is_dir(&st, pin_for(state));
}

static bool is_late(void *arg)
{
    return stop_was_asked() || monotonic_s() > *(const time_t *)arg;
}

int new_state_discard(const struct new_state *state, struct error *err)
{
    time_t until = monotonic_s() + DISCARD_SECONDS;
    const struct dir_removal how = {
        .is = pin_is_dir, .is_arg = pin_for(state), .stops = is_late, .stops_arg = &until};

    return dir_remove_so(new_state_path(state->place, state->number, false).text, &how, err);
}

/* ---- attempts -------------------------------------------------------------------------------- */

/* Below an open directory: its path may lead elsewhere. */
static struct new_state_path below(int dir, const char *name)
{
    struct new_state_path path;

    snprintf(path.text, sizeof(path.text), "/proc/self/fd/%d/%s", dir, name);
    return path;
}

static int attempt_error(const struct new_state *state, struct error *err)
{
    struct new_state_path path = new_state_attempt_path(state->place, state->number,
                                                        state->attempt);

    return error_set(err, "%s: %s", error_path(path.text).text, strerror(errno));
}

int new_state_begin(const struct new_state *state, struct error *err)
{
    static const struct dir_removal empty = {.keep = true};
    struct name name = name_of(state->attempt);
    int base = new_state_open(state, err), rc = 0;

    if (base < 0)
        return -1;
    if (mkdirat(base, name.text, 0700) != 0)
        rc = errno == EEXIST ? dir_remove_so(below(base, name.text).text, &empty, err)
                             : attempt_error(state, err);
    close(base);
    return rc;
}

int new_state_seal(const struct new_state *state, const char *name, struct error *err)
{
    struct name from = name_of(state->attempt), to = name_of(name);
    int base = new_state_open(state, err), rc = 0;

    if (base < 0)
        return -1;
    if (faccessat(base, to.text, F_OK, AT_SYMLINK_NOFOLLOW) != 0 &&
        renameat(base, from.text, base, to.text) != 0)
        rc = attempt_error(state, err);
    close(base);
    return rc;
}

static int open_attempt(const struct new_state *state, int base)
{
    return openat(base, name_of(state->attempt).text,
                  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* One name, upwards. A runner that was given up may do the same. */
static int lift(int base, int from, const char *name, struct error *err)
{
    return renameat(from, name, base, name) == 0 || errno == ENOENT
               ? 0
               : error_set(err, "%s: %s", error_path(name).text, strerror(errno));
}

/* Some file systems leave names out of a listing while others of it go. Without complete.json,
 * which comes last, the state is none. */
static int lift_all(int base, int from, struct error *err)
{
    bool lifted = true;
    int rc = 0;

    while (lifted && rc == 0) {
        DIR *list = entry_list(from);
        const char *name;

        if (list == NULL)
            return error_set(err, "%s", strerror(errno));
        lifted = false;
        while (rc == 0 && (name = entry_next(list)) != NULL) {
            if (strcmp(name, STATE_MANIFEST) == 0)
                continue;
            rc = lift(base, from, name, err);
            lifted = true;
        }
        closedir(list);
    }
    return rc == 0 ? lift(base, from, STATE_MANIFEST, err) : -1;
}

/* What an attempt still fills may stay for now: no file of the state is in it. */
static void remove_attempts(int base)
{
    DIR *list = entry_list(base);
    const char *name;

    while (list != NULL && (name = entry_next(list)) != NULL)
        if (strncmp(name, ATTEMPT, strlen(ATTEMPT)) == 0)
            dir_remove(below(base, name).text, NULL);
    if (list != NULL)
        closedir(list);
}

int new_state_take(const struct new_state *state, struct error *err)
{
    int base = new_state_open(state, err), from, rc = 0;

    if (base < 0)
        return -1;
    from = state->attempt != NULL ? open_attempt(state, base) : -1;
    if (from >= 0)
        rc = lift_all(base, from, err);
    else if (state->attempt != NULL && errno != ENOENT)
        rc = attempt_error(state, err);
    if (from >= 0)
        close(from);
    if (rc == 0)
        remove_attempts(base);
    if (rc == 0 && fsync(base) != 0)
        rc = error_set(err, "%s", strerror(errno));
    close(base);
    return rc;
}

/* ---- complete.json --------------------------------------------------------------------------- */

struct files {
    struct state_manifest *manifest;
    int dir;
};

static int digest_file(int fd, char hex[STATE_DIGEST_SIZE], struct error *err)
{
    struct digest digest;
    char *buffer = malloc(PIECE);
    ssize_t n = buffer != NULL ? 0 : -1;

    digest_begin(&digest);
    while (buffer != NULL && (n = read(fd, buffer, PIECE)) > 0)
        digest_saw(buffer, (size_t)n, &digest);
    digest_end(&digest, hex);
    free(buffer);
    return n == 0 && fsync(fd) == 0 ? 0 : error_set(err, "%s", strerror(errno));
}

static int add_file(const char *path, int64_t bytes, void *arg, struct error *err)
{
    struct files *files = arg;
    char hex[STATE_DIGEST_SIZE];
    int64_t size;
    int fd, rc;

    if (strcmp(path, STATE_MANIFEST) == 0 || strncmp(path, ATTEMPT, strlen(ATTEMPT)) == 0)
        return 0;
    fd = tree_open(files->dir, path, &size, err);
    if (fd < 0)
        return -1;
    rc = size == bytes ? digest_file(fd, hex, err)
                       : error_set(err, "somebody writes it, though the training has ended");
    close(fd);
    if (rc != 0)
        return error_prefix(err, "%s", error_path(path).text);
    return state_manifest_add(files->manifest, path, bytes, hex, err);
}

static int collect(struct files *files, const struct new_state *state, const char *run,
                   struct error *err)
{
    if (tree_walk(files->dir, add_file, files, err) != 0 ||
        state_manifest_sort(files->manifest, err) != 0)
        return -1;
    if (files->manifest->count == 0)
        return error_set(err, "the training has written no files");
    files->manifest->previous = state->previous;
    files->manifest->run = strdup(run);
    return files->manifest->run != NULL ? 0 : error_set(err, "out of memory");
}

static int write_manifest(const struct new_state *state, int dir, const char *text,
                          struct error *err)
{
    struct new_state_path path = new_state_path(state->place, state->number, false);

    return file_replace(below(dir, STATE_MANIFEST).text, text, strlen(text), 0600, NULL) == 0
               ? 0
               : error_set(err, "%s/" STATE_MANIFEST ": %s", error_path(path.text).text,
                           strerror(errno));
}

/* The attempt's directory, or the state's. */
static int open_written(const struct new_state *state, struct error *err)
{
    int dir = new_state_open(state, err), base = dir;

    if (base < 0 || state->attempt == NULL)
        return base;
    dir = open_attempt(state, base);
    if (dir < 0)
        attempt_error(state, err);
    close(base);
    return dir;
}

int new_state_finish(const struct new_state *state, const char *run, struct error *err)
{
    struct files files = {.manifest = state_manifest_create()};
    char *text = NULL;
    int rc = -1;

    files.dir = open_written(state, err);
    if (files.dir >= 0 && files.manifest == NULL)
        error_set(err, "out of memory");
    else if (files.dir >= 0)
        rc = collect(&files, state, run, err);
    if (rc == 0 && (text = state_manifest_text(files.manifest)) == NULL)
        rc = error_set(err, "out of memory");
    if (rc == 0)
        rc = write_manifest(state, files.dir, text, err);
    if (rc == 0)
        rc = tree_flush(files.dir, err);
    free(text);
    state_manifest_destroy(files.manifest);
    if (files.dir >= 0)
        close(files.dir);
    return rc;
}

static int64_t size_of(const char *file, void *arg)
{
    int64_t bytes = -1;
    int fd = tree_open(*(const int *)arg, file, &bytes, NULL);

    if (fd >= 0)
        close(fd);
    return fd >= 0 ? bytes : -1;
}

static int judge(int dir, struct state *state, struct error *err)
{
    struct stat st;
    size_t len;
    char *text;
    int fd = entry_open(dir, STATE_MANIFEST, S_IFREG, &st, err);

    if (fd < 0)
        return -1;
    text = entry_text(fd, STATE_MANIFEST_MAX, &len, err);
    close(fd);
    if (text == NULL)
        return -1;
    states_judge(state, text, len, size_of, &dir);
    free(text);
    return state->kind == STATE_IS_COMPLETE
               ? 0
               : error_set(err, "%s", state->why != NULL ? state->why : "it is not complete");
}

int new_state_check(const struct new_state *state, struct error *err)
{
    struct new_state_path path = new_state_path(state->place, state->number, false);
    struct state judged = {.number = state->number, .kind = STATE_IS_TORN};
    int rc, dir = new_state_open(state, err);

    if (dir < 0)
        return -1;
    state_name(judged.name, judged.number);
    rc = judge(dir, &judged, err);
    close(dir);
    state_manifest_destroy(judged.manifest);
    free(judged.why);
    return rc == 0 ? 0 : error_prefix(err, "%s", error_path(path.text).text);
}

/* ---- its end --------------------------------------------------------------------------------- */

/* Whoever may rename there may have put another one to its place: that one goes back. */
static int check_published(const struct new_state *state, int base, const char *to,
                           struct error *err)
{
    struct partial_name partial = partial_name(state->number);
    char name[STATE_NAME_SIZE];
    struct stat st;

    state_name(name, state->number);
    if (lstat(to, &st) == 0 && pin_is_dir(&st, pin_for(state)))
        return 0;
    renameat(base, name, base, partial.text);
    return error_set(err, "%s: it is another one than the fit has made", name);
}

/* One that went on may have made its directory once more. */
static void forget_attempts(const struct new_state *state)
{
    int dir = new_state_open(state, NULL);

    if (dir >= 0)
        remove_attempts(dir);
    if (dir >= 0)
        close(dir);
}

int new_state_publish(const struct new_state *state, struct error *err)
{
    struct new_state_path to = new_state_path(state->place, state->number, true);
    int rc, base = open_place(state, err);

    if (base < 0)
        return -1;
    forget_attempts(state);
    rc = partial_publish(base, state->number, err);
    if (rc != 0 && errno == ENOENT && access(to.text, F_OK) == 0)
        rc = 0; /* it lies there already */
    if (rc == 0)
        rc = check_published(state, base, to.text, err);
    if (rc != 0)
        error_prefix(err, "%s", error_path(state->place).text);
    close(base);
    return rc;
}

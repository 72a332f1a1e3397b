/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The state that a fit makes (new_state.h). */
#include "fit/new_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/entry.h"
#include "common/files.h"
#include "state/digest.h"
#include "state/partial.h"
#include "state/tree.h"

#define PIECE ((size_t)1 << 20)

struct new_state_path new_state_path(const char *place, int64_t number, bool whole)
{
    char name[STATE_NAME_SIZE];
    struct new_state_path path;

    state_name(name, number);
    snprintf(path.text, sizeof(path.text), "%.4000s/%s", place,
             whole ? name : partial_name(number).text);
    return path;
}

static int open_place(const struct new_state *state, struct error *err)
{
    int base = open(state->place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return base >= 0 ? base
                     : error_set(err, "%s: %s", error_path(state->place).text, strerror(errno));
}

int new_state_make(const struct new_state *state, struct error *err)
{
    int base, fd, saved;

    if (dir_make(state->place, err) != 0 || (base = open_place(state, err)) < 0)
        return -1;
    fd = partial_make(base, state->number, err);
    saved = errno;
    if (fd >= 0)
        close(fd);
    else
        error_prefix(err, "%s", error_path(state->place).text);
    close(base);
    errno = saved;
    return fd >= 0 ? 0 : -1;
}

int new_state_again(const struct new_state *state, struct error *err)
{
    return new_state_discard(state, err) == 0 ? new_state_make(state, err) : -1;
}

int new_state_discard(const struct new_state *state, struct error *err)
{
    return dir_remove(new_state_path(state->place, state->number, false).text, err);
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

    if (strcmp(path, STATE_MANIFEST) == 0)
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

int new_state_finish(const struct new_state *state, const char *run, struct error *err)
{
    struct new_state_path path = new_state_path(state->place, state->number, false);
    struct files files = {.manifest = state_manifest_create()};
    char *text = NULL, manifest[PATH_MAX + 32];
    int rc = -1;

    files.dir = open(path.text, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (files.dir < 0)
        error_set(err, "%s: %s", error_path(path.text).text, strerror(errno));
    else if (files.manifest == NULL)
        error_set(err, "out of memory");
    else
        rc = collect(&files, state, run, err);
    if (rc == 0 && (text = state_manifest_text(files.manifest)) == NULL)
        rc = error_set(err, "out of memory");
    snprintf(manifest, sizeof(manifest), "%s/" STATE_MANIFEST, path.text);
    if (rc == 0)
        rc = file_replace(manifest, text, strlen(text), 0600, err);
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
    int rc, dir = open(path.text, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (dir < 0)
        return error_set(err, "%s: %s", error_path(path.text).text, strerror(errno));
    state_name(judged.name, judged.number);
    rc = judge(dir, &judged, err);
    close(dir);
    state_manifest_destroy(judged.manifest);
    free(judged.why);
    return rc == 0 ? 0 : error_prefix(err, "%s", error_path(path.text).text);
}

/* ---- its end --------------------------------------------------------------------------------- */

int new_state_publish(const struct new_state *state, struct error *err)
{
    struct new_state_path to = new_state_path(state->place, state->number, true);
    int rc, base = open_place(state, err);

    if (base < 0)
        return -1;
    rc = partial_publish(base, state->number, err);
    if (rc != 0 && errno == ENOENT && access(to.text, F_OK) == 0)
        rc = 0; /* it lies there already */
    if (rc != 0)
        error_prefix(err, "%s", error_path(state->place).text);
    close(base);
    return rc;
}

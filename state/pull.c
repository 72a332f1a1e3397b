/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A state is copied into a directory (command.h). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/files.h"
#include "common/stop.h"
#include "state/command.h"
#include "state/digest.h"
#include "state/partial.h"
#include "state/tree.h"

#define LOCK_NAME     ".lock"
#define LOCK_PAUSE_NS 20000000L
#define WRITE_PIECE   ((int64_t)8 << 20)

struct pull {
    struct place *from;
    const struct state *state;
    const char *directory;
    char *text; /* the manifest */
    int base;   /* the directory, open */
};

static int failed(const struct pull *pull, const char *name, struct error *err)
{
    return error_set(err, "%s/%s: %s", error_path(pull->directory).text, name, strerror(errno));
}

/* ---- one file -------------------------------------------------------------------------------- */

struct file {
    int fd;
    struct digest digest;
};

/* The disk writes while more comes: fsync() at the end then waits for little. */
static void begin_writing(int fd, int64_t at, int64_t end)
{
    int64_t from = at / WRITE_PIECE * WRITE_PIECE, to = end / WRITE_PIECE * WRITE_PIECE;

    if (to > from)
        sync_file_range(fd, from, to - from, SYNC_FILE_RANGE_WRITE);
}

static int put(const void *data, size_t len, int64_t at, void *arg, struct error *err)
{
    const struct file *to = arg;

    if (file_write_at(to->fd, data, len, at) != 0)
        return error_set(err, "%s", strerror(errno));
    begin_writing(to->fd, at, at + (int64_t)len);
    return 0;
}

static int take(const void *data, size_t len, void *arg, struct error *err)
{
    struct file *to = arg;

    (void)err;
    digest_saw(data, len, &to->digest);
    return 0;
}

struct copy {
    const struct pull *pull;
    int dir; /* where to */
};

static int copy_file(int lane, size_t index, void *arg, struct error *err)
{
    const struct copy *copy = arg;
    const struct pull *pull = copy->pull;
    const struct state_file *file = &pull->state->manifest->files[index];
    struct file to = {.fd = tree_make(copy->dir, file->name, err)};
    const struct s3_sink sink = {.put = put, .take = take, .arg = &to};
    int rc;

    if (to.fd < 0)
        return -1;
    digest_begin(&to.digest);
    rc = place_take(pull->from, lane, pull->state, file, &sink, err);
    if (rc == 0)
        rc = digest_check(&to.digest, file, err);
    if (rc == 0 && fsync(to.fd) != 0)
        rc = failed(pull, file->name, err);
    close(to.fd);
    return rc;
}

static int copy_manifest(const struct pull *pull, int dir, struct error *err)
{
    int fd = tree_make(dir, STATE_MANIFEST, err), rc = 0;

    if (fd < 0)
        return -1;
    if (file_write_all(fd, pull->text, strlen(pull->text)) != 0 || fsync(fd) != 0)
        rc = failed(pull, STATE_MANIFEST, err);
    close(fd);
    return rc;
}

static int copy_files(const struct pull *pull, int dir, struct error *err)
{
    struct copy copy = {.pull = pull, .dir = dir};

    if (place_each_file(pull->from, pull->state->manifest, copy_file, &copy, err) != 0)
        return -1;
    return copy_manifest(pull, dir, err) == 0 ? tree_flush(dir, err) : -1;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int remove_below(const struct pull *pull, const char *name, struct error *err)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof(path), "%s/%s", pull->directory, name) >= (int)sizeof(path))
        return error_set(err, "%s: too long", error_path(pull->directory).text);
    return dir_remove(path, err);
}

/* The lock is ours: what another process has left here is dead. */
static int copy_state(const struct pull *pull, struct error *err)
{
    struct partial_name partial = partial_name(pull->state->number);
    int dir, rc;

    if (remove_below(pull, partial.text, err) != 0 ||
        remove_below(pull, pull->state->name, err) != 0)
        return -1;
    dir = partial_make(pull->base, pull->state->number, err);
    if (dir < 0)
        return error_prefix(err, "%s", error_path(pull->directory).text);
    rc = copy_files(pull, dir, err);
    close(dir);
    if (rc == 0 && partial_publish(pull->base, pull->state->number, err) != 0)
        rc = error_prefix(err, "%s", error_path(pull->directory).text);
    if (rc != 0)
        remove_below(pull, partial.text, NULL);
    return rc;
}

static bool is_same(const struct pull *pull, const struct states *have)
{
    const struct state *state = states_find(have, pull->state->number);
    char *text = NULL;
    bool same = false;

    if (state != NULL && state->kind == STATE_IS_COMPLETE)
        text = state_manifest_text(state->manifest);
    if (text != NULL)
        same = strcmp(text, pull->text) == 0;
    free(text);
    return same;
}

static void prune(struct place *to, const struct states *have, int keep, int64_t own)
{
    for (size_t i = 0; keep > 0 && i < have->count; i++) {
        const struct state *state = &have->list[i];
        struct error err;

        /* keep counts the state that came, which may not be in the list. */
        if (state->number != own && states_may_go(have, state, keep, own) &&
            place_remove(to, state, &err) != 0)
            fprintf(stderr, "elastic-state: %s stays: %s\n", state->name, err.text);
    }
}

static int pull_locked(const struct pull *pull, int keep, struct error *err)
{
    const struct s3_limits limits = S3_LIMITS;
    struct place *to = place_open(pull->directory, &limits, err);
    struct states have = {0};
    int rc = to != NULL ? place_list(to, &have, err) : -1;

    if (rc == 0 && !is_same(pull, &have))
        rc = copy_state(pull, err);
    states_clear(&have);
    if (rc == 0)
        rc = place_list(to, &have, err);
    if (rc == 0)
        prune(to, &have, keep, pull->state->number);
    states_clear(&have);
    place_close(to);
    return rc;
}

/* Of the processes of a node one copies. Whoever may write in the directory can hold the lock as
 * long as he likes. */
static int lock(const struct pull *pull, struct error *err)
{
    int fd = openat(pull->base, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        return failed(pull, LOCK_NAME, err);
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};

        if (errno != EWOULDBLOCK && errno != EINTR) {
            failed(pull, LOCK_NAME, err);
            close(fd);
            return -1;
        }
        if (stop_asked()) {
            error_set(err, "stopped, or out of time");
            close(fd);
            return -1;
        }
        nanosleep(&pause, NULL);
    }
    return fd;
}

int pull_state(struct place *from, const struct state *state, const char *directory, int keep,
               struct error *err)
{
    struct pull pull = {.from = from, .state = state, .directory = directory, .base = -1};
    int fd = -1, rc = -1;

    pull.text = state_manifest_text(state->manifest);
    if (pull.text == NULL)
        return error_set(err, "out of memory");
    if (dir_make(directory, err) == 0) {
        pull.base = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        fd = pull.base >= 0 ? lock(&pull, err) : failed(&pull, ".", err);
    }
    if (fd >= 0)
        rc = pull_locked(&pull, keep, err);
    if (fd >= 0)
        close(fd);
    if (pull.base >= 0)
        close(pull.base);
    free(pull.text);
    return rc;
}

int command_pull(struct place *place, const char *directory, const struct options *options,
                 struct error *err)
{
    const struct state *state;
    struct states states;
    int rc;

    if (place_list(place, &states, err) != 0)
        return -1;
    rc = command_choose(place, &states, options, &state, err);
    if (rc == 0)
        rc = pull_state(place, state, directory, options->keep, err);
    if (rc == 0 && !options->quiet)
        command_print_state(options, directory, state->name);
    states_clear(&states);
    return rc;
}

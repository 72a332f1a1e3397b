/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A directory becomes a state (command.h). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/entry.h"
#include "state/command.h"
#include "state/digest.h"
#include "state/tree.h"

#define CLASHES_MAX 20

struct push {
    struct place *place;
    const struct options *options;
    const char *directory;
    int dir;                      /* open */
    struct state_manifest *files; /* what is to be written */
    struct state_manifest *done;  /* with their digests */
    char (*digests)[STATE_DIGEST_SIZE];
    struct states states; /* of the place */
};

/* ---- what is to be written ------------------------------------------------------------------- */

static int add_file(const char *path, int64_t bytes, void *arg, struct error *err)
{
    struct push *push = arg;

    if (strcmp(path, STATE_MANIFEST) == 0)
        return 0;
    return state_manifest_add(push->files, path, bytes, NULL, err);
}

static int walk(struct push *push, struct error *err)
{
    push->files = state_manifest_create();
    if (push->files == NULL)
        return error_set(err, "out of memory");
    if (tree_walk(push->dir, add_file, push, err) != 0 ||
        state_manifest_sort(push->files, err) != 0)
        return -1;
    return push->files->count > 0 ? 0 : error_set(err, "there are no files");
}

/* A checkpoint has a list of its files already. */
static int find_files(struct push *push, struct error *err)
{
    struct stat st;
    char *text;
    size_t len;
    int fd = entry_open(push->dir, STATE_MANIFEST, S_IFREG, &st, err);

    if (fd < 0)
        return errno == ENOENT ? walk(push, err) : -1;
    text = entry_text(fd, STATE_MANIFEST_MAX, &len, err);
    close(fd);
    if (text != NULL)
        push->files = state_manifest_parse(text, len, err);
    free(text);
    return push->files != NULL ? 0 : error_prefix(err, STATE_MANIFEST);
}

static int begin_manifest(struct push *push, struct error *err)
{
    const struct state *latest = states_latest(&push->states);
    struct state_manifest *done = state_manifest_create();
    const char *run = push->options->run != NULL ? push->options->run : push->files->run;

    push->done = done;
    if (done == NULL)
        return error_set(err, "out of memory");
    done->previous = push->files->previous;
    if (done->previous == 0 && latest != NULL)
        done->previous = latest->number;
    done->has_key = push->files->has_key;
    done->key = push->files->key;
    if (run == NULL)
        return 0;
    done->run = strdup(run);
    return done->run != NULL ? 0 : error_set(err, "out of memory");
}

/* ---- writing it ------------------------------------------------------------------------------ */

static int put_open(struct push *push, int lane, size_t index, int fd, int64_t bytes,
                    struct error *err)
{
    const struct state_file *file = &push->files->files[index];
    char *hex = push->digests[index];
    struct digest digest;

    if (bytes != file->bytes)
        return error_set(err, "%s has not the size that " STATE_MANIFEST " says",
                         error_path(file->name).text);
    digest_begin(&digest);
    if (place_put(push->place, lane, file->name, fd, bytes, digest_saw, &digest, err) != 0)
        return -1;
    digest_end(&digest, hex);
    if (file->digest[0] != '\0' && strcmp(file->digest, hex) != 0)
        return error_set(err, "%s is not what was written, its BLAKE2b is another",
                         error_path(file->name).text);
    return 0;
}

static int put_file(int lane, size_t index, void *arg, struct error *err)
{
    struct push *push = arg;
    int64_t bytes;
    int rc, fd = tree_open(push->dir, push->files->files[index].name, &bytes, err);

    if (fd < 0)
        return -1;
    rc = put_open(push, lane, index, fd, bytes, err);
    close(fd);
    return rc;
}

static int put_files(struct push *push, struct error *err)
{
    const struct state_manifest *files = push->files;

    push->digests = calloc(files->count, sizeof(*push->digests));
    if (push->digests == NULL)
        return error_set(err, "out of memory");
    if (place_each_file(push->place, files, put_file, push, err) != 0)
        return -1;
    for (size_t i = 0; i < files->count; i++)
        if (state_manifest_add(push->done, files->files[i].name, files->files[i].bytes,
                               push->digests[i], err) != 0)
            return -1;
    return state_manifest_sort(push->done, err);
}

/* The number of the state that was begun; 0 with err. */
static int64_t begin_state(struct push *push, struct error *err)
{
    int64_t number = push->options->state > 0 ? push->options->state : states_next(&push->states);
    int most = push->options->state > 0 ? 1 : CLASHES_MAX;

    for (int clashes = 0; clashes < most && number > 0; clashes++) {
        switch (place_begin(push->place, number, err)) {
        case PLACE_OK:
            return number;
        case PLACE_FAILED:
            return 0;
        case PLACE_CLASH:
            break;
        }
        number++;
    }
    if (number == 0)
        error_set(err, "there is no number after the last state");
    else if (push->options->state > 0)
        error_set(err, "somebody else writes this state");
    return 0;
}

static int64_t size_of(const char *file, void *arg)
{
    const struct state_file *found = state_manifest_find(arg, file);

    return found != NULL ? found->bytes : -1;
}

/* What the place has now. NULL: out of memory. */
static struct state *note(struct push *push, int64_t number, const char *text)
{
    char name[STATE_NAME_SIZE];
    struct state *state;

    state_name(name, number);
    if (states_add(&push->states, name, NULL) != 0)
        return NULL;
    states_sort(&push->states);
    state = (struct state *)(uintptr_t)states_find(&push->states, number);
    states_judge(state, text, strlen(text), size_of, push->done);
    return state;
}

static int finish(struct push *push, int64_t number, struct error *err)
{
    char *text = state_manifest_text(push->done);
    int rc = -1;

    if (text == NULL)
        error_set(err, "out of memory");
    else if (place_finish(push->place, text, err) == 0)
        rc = note(push, number, text) != NULL ? 0 : error_set(err, "out of memory");
    free(text);
    return rc;
}

/* ---- and then -------------------------------------------------------------------------------- */

/* Another writer may have a later one. */
static int use(struct push *push, int64_t number, struct error *err)
{
    for (int clashes = 0; clashes < CLASHES_MAX; clashes++) {
        const struct state *state = states_find(&push->states, number);

        if (state == NULL)
            return error_set(err, "another writer has removed it");
        if (push->states.current > number)
            return 0;
        switch (place_use(push->place, push->states.current, state, err)) {
        case PLACE_OK:
            push->states.current = number;
            return 0;
        case PLACE_FAILED:
            return -1;
        case PLACE_CLASH:
            states_clear(&push->states);
            if (place_list(push->place, &push->states, err) != 0)
                return -1;
        }
    }
    return -1;
}

static int write_state(struct push *push, int64_t *number, struct error *err)
{
    if (place_list(push->place, &push->states, err) != 0 || begin_manifest(push, err) != 0)
        return -1;
    *number = begin_state(push, err);
    if (*number == 0)
        return -1;
    if (put_files(push, err) == 0 && finish(push, *number, err) == 0)
        return 0;
    place_give_up(push->place);
    return -1;
}

int command_push(struct place *place, const char *directory, const struct options *options,
                 struct error *err)
{
    struct push push = {.place = place, .options = options, .directory = directory};
    char name[STATE_NAME_SIZE];
    int64_t number = 0;
    int rc;

    push.dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    rc = push.dir >= 0 ? find_files(&push, err) : error_set(err, "%s", strerror(errno));
    if (rc != 0)
        error_prefix(err, "%s", error_path(directory).text);
    if (rc == 0)
        rc = write_state(&push, &number, err);
    if (rc == 0)
        rc = use(&push, number, err);
    if (rc == 0) {
        state_name(name, number);
        if (!options->quiet)
            command_print_state(options, place_where(place), name);
        place_prune(place, &push.states, options->keep, number);
    }
    state_manifest_destroy(push.files);
    state_manifest_destroy(push.done);
    free(push.digests);
    states_clear(&push.states);
    if (push.dir >= 0)
        close(push.dir);
    return rc;
}

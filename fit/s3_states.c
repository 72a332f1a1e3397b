/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The states of a model on S3 (s3_states.h). */
#include "fit/s3_states.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/entry.h"
#include "state/command.h"

#define CLASHES_MAX 20

struct store {
    struct place *place;
    struct states states;
};

static int open_store(struct store *store, const char *url, struct error *err)
{
    const struct s3_limits limits = S3_LIMITS;

    *store = (struct store){.place = place_open(url, &limits, err)};
    return store->place != NULL ? place_list(store->place, &store->states, err) : -1;
}

static int close_store(struct store *store, int rc)
{
    states_clear(&store->states);
    place_close(store->place);
    return rc;
}

int store_look(const char *url, int64_t *latest, int64_t *next, struct error *err)
{
    struct store store;
    int rc = open_store(&store, url, err);
    const struct state *state = rc == 0 ? states_latest(&store.states) : NULL;

    *latest = state != NULL ? state->number : 0;
    *next = rc == 0 ? states_next(&store.states) : 0;
    return close_store(&store, rc);
}

int store_check(const char *url, int64_t number, struct error *err)
{
    struct store store;
    int rc = open_store(&store, url, err);

    if (rc == 0)
        rc = states_check_use(&store.states, number, err);
    return close_store(&store, rc);
}

enum place_result store_claim(const char *url, int64_t number, struct error *err)
{
    struct store store;
    enum place_result result = open_store(&store, url, err) == 0
                                   ? place_begin(store.place, number, err)
                                   : PLACE_FAILED;

    close_store(&store, 0);
    return result;
}

int store_is_claimed(const char *url, int64_t number, bool *claimed, struct error *err)
{
    struct store store;
    int rc = open_store(&store, url, err);
    const struct state *state = rc == 0 ? states_find(&store.states, number) : NULL;

    *claimed = state != NULL && state->kind == STATE_IS_PARTIAL;
    return close_store(&store, rc);
}

int store_fetch(const char *url, int64_t number, const char *place, struct error *err)
{
    const struct options options = {.state = number, .quiet = true};
    struct store store;
    int rc = open_store(&store, url, err);

    if (rc == 0)
        rc = command_pull(store.place, place, &options, err);
    return close_store(&store, rc);
}

/* ---- a new one ------------------------------------------------------------------------------- */

static struct state_manifest *manifest_in(const char *directory, struct error *err)
{
    struct state_manifest *manifest = NULL;
    int dir = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), fd = -1;
    char *text = NULL;
    struct stat st;
    size_t len = 0;

    if (dir >= 0)
        fd = entry_open(dir, STATE_MANIFEST, S_IFREG, &st, err);
    if (fd >= 0)
        text = entry_text(fd, STATE_MANIFEST_MAX, &len, err);
    if (text != NULL)
        manifest = state_manifest_parse(text, len, err);
    free(text);
    if (fd >= 0)
        close(fd);
    if (dir >= 0)
        close(dir);
    else
        error_set(err, "%s cannot be opened", error_path(directory).text);
    return manifest;
}

static bool have_same_files(const struct state_manifest *a, const struct state_manifest *b)
{
    for (size_t i = 0; i < a->count; i++) {
        const struct state_file *other = state_manifest_find(b, a->files[i].name);

        if (other == NULL || other->bytes != a->files[i].bytes ||
            strcmp(other->digest, a->files[i].digest) != 0)
            return false;
    }
    return a->count == b->count;
}

static int push(struct store *store, int64_t number, const char *directory, struct error *err)
{
    const struct options options = {.state = number, .quiet = true};
    const struct state *state = states_find(&store->states, number);
    struct state_manifest *manifest;
    bool same;

    if (state == NULL)
        return command_push(store->place, directory, &options, err);
    if (state->kind != STATE_IS_COMPLETE)
        return place_remove(store->place, state, err) == 0
                   ? command_push(store->place, directory, &options, err)
                   : -1;
    manifest = manifest_in(directory, err);
    if (manifest == NULL)
        return -1;
    same = have_same_files(manifest, state->manifest);
    state_manifest_destroy(manifest);
    return same ? 0
                : error_set(err, "%s/%s: somebody else has written this state meanwhile",
                            error_path(place_where(store->place)).text, state->name);
}

int store_push(const char *url, int64_t number, const char *directory, struct error *err)
{
    struct store store;
    int rc = open_store(&store, url, err);

    if (rc == 0)
        rc = push(&store, number, directory, err);
    rc = close_store(&store, rc);
    return rc == 0 ? store_use(url, number, err) : -1;
}

/* ---- others ---------------------------------------------------------------------------------- */

/* Whoever moves the pointer meanwhile has moved it before. */
static int use(struct store *store, int64_t number, struct error *err)
{
    for (int i = 0; i < CLASHES_MAX; i++) {
        enum place_result result;

        if (states_check_use(&store->states, number, err) != 0)
            return -1;
        if (store->states.current == number)
            return 0;
        result = place_use(store->place, store->states.current, states_find(&store->states, number),
                           err);
        if (result != PLACE_CLASH)
            return result == PLACE_OK ? 0 : -1;
        states_clear(&store->states);
        if (place_list(store->place, &store->states, err) != 0)
            return -1;
    }
    return -1;
}

int store_use(const char *url, int64_t number, struct error *err)
{
    struct store store;
    int rc = open_store(&store, url, err);

    if (rc == 0)
        rc = use(&store, number, err);
    return close_store(&store, rc);
}

int store_remove(const char *url, int64_t number, bool whole, struct error *err)
{
    struct store store;
    int rc = open_store(&store, url, err);
    const struct state *state = rc == 0 ? states_find(&store.states, number) : NULL;

    if (state != NULL && (whole || state->kind != STATE_IS_COMPLETE))
        rc = place_remove(store.place, state, err);
    return close_store(&store, rc);
}

int store_prune(const char *url, int keep, int64_t own, struct error *err)
{
    struct store store;
    int rc = open_store(&store, url, err);

    if (rc == 0)
        place_prune(store.place, &store.states, keep, own);
    return close_store(&store, rc);
}

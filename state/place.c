/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which kind of place it is (place.h). */
#include "state/place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/crew.h"
#include "lib/s3_place.h"
#include "state/place_private.h"

struct place {
    const struct place_kind *kind;
    void *own;
    char *where;
};

struct place *place_open(const char *where, const struct s3_limits *limits, struct error *err)
{
    struct place *place = calloc(1, sizeof(*place));
    size_t len = strlen(where);

    if (place == NULL || (place->where = strdup(where)) == NULL) {
        free(place);
        error_set(err, "out of memory");
        return NULL;
    }
    while (len > 1 && place->where[len - 1] == '/')
        place->where[--len] = '\0';
    place->kind = s3_place_is(where) ? &place_bucket : &place_directory;
    place->own = s3_place_is(where) ? place_bucket_open(place->where, limits, err)
                                    : place_directory_open(place->where, err);
    if (place->own != NULL)
        return place;
    place_close(place);
    return NULL;
}

void place_close(struct place *place)
{
    if (place == NULL)
        return;
    if (place->own != NULL)
        place->kind->close(place->own);
    free(place->where);
    free(place);
}

const char *place_where(const struct place *place)
{
    return place->where;
}

int place_list(struct place *place, struct states *states, struct error *err)
{
    *states = (struct states){0};
    if (place->kind->list(place->own, states, err) == 0)
        return 0;
    states_clear(states);
    return -1;
}

enum place_result place_begin(struct place *place, int64_t number, struct error *err)
{
    return place->kind->begin(place->own, number, err);
}

/* ---- files ----------------------------------------------------------------------------------- */

struct files {
    const struct place *place;
    const struct state_manifest *manifest;
    int (*each)(int lane, size_t index, void *arg, struct error *err);
    void *arg;
};

static bool is_alone(const struct files *files, size_t index)
{
    return files->manifest->files[index].bytes > files->place->kind->alone;
}

static int do_small(struct crew *crew, int lane, size_t piece, void *arg, struct error *err)
{
    const struct files *files = arg;

    (void)crew;
    return is_alone(files, piece) ? 0 : files->each(lane, piece, files->arg, err);
}

int place_each_file(struct place *place, const struct state_manifest *manifest,
                    int (*each)(int lane, size_t index, void *arg, struct error *err), void *arg,
                    struct error *err)
{
    struct files files = {.place = place, .manifest = manifest, .each = each, .arg = arg};
    int rc = crew_run(S3_LANES, manifest->count, do_small, &files, err);

    for (size_t i = 0; rc == 0 && i < manifest->count; i++)
        if (is_alone(&files, i))
            rc = each(0, i, arg, err);
    return rc;
}

int place_put(struct place *place, int lane, const char *name, int fd, int64_t bytes,
              void (*saw)(const void *data, size_t len, void *arg), void *arg, struct error *err)
{
    return place->kind->put(place->own, lane, name, fd, bytes, saw, arg, err);
}

int place_finish(struct place *place, const char *manifest, struct error *err)
{
    return place->kind->finish(place->own, manifest, err);
}

void place_give_up(struct place *place)
{
    place->kind->give_up(place->own);
}

enum place_result place_use(struct place *place, int64_t from, const struct state *state,
                            struct error *err)
{
    return place->kind->use(place->own, from, state, err);
}

int place_take(struct place *place, int lane, const struct state *state,
               const struct state_file *file, const struct s3_sink *sink, struct error *err)
{
    return place->kind->take(place->own, lane, state, file, sink, err);
}

int place_remove(struct place *place, const struct state *state, struct error *err)
{
    return place->kind->remove(place->own, state, err);
}

/* The state is written, whatever becomes of this. */
void place_prune(struct place *place, const struct states *states, int keep, int64_t own)
{
    for (size_t i = 0; keep > 0 && i < states->count; i++) {
        const struct state *state = &states->list[i];
        struct error err;

        if (states_may_go(states, state, keep, own) && place_remove(place, state, &err) != 0)
            fprintf(stderr, "%s: %s stays: %s\n", program_invocation_short_name, state->name,
                    err.text);
    }
}

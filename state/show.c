/* SPDX-License-Identifier: GPL-2.0-or-later */
/* list and show (command.h). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "cmd/shape.h"
#include "cmd/terminal_text.h"
#include "state/command.h"
#include "state/digest.h"

static const char *kind_word(const struct state *state)
{
    static const char *const words[] = {
        [STATE_IS_COMPLETE] = "complete", [STATE_IS_PARTIAL] = "partial", [STATE_IS_TORN] = "torn"};

    return words[state->kind];
}

static const char *why(const struct state *state)
{
    return state->why != NULL ? state->why : "it has no " STATE_MANIFEST;
}

/* None is complete: why? */
static int nothing_complete(struct place *place, const struct states *states, struct error *err)
{
    const struct state *last = states->count > 0 ? &states->list[states->count - 1] : NULL;

    if (last == NULL) {
        error_set(err, "%s has no states", error_path(place_where(place)).text);
        return COMMAND_NOTHING;
    }
    return error_set(err, "%s has no complete state; %s: %s", error_path(place_where(place)).text,
                     last->name,
                     last->kind == STATE_IS_PARTIAL ? "it was not finished" : why(last));
}

int command_choose(struct place *place, const struct states *states, const struct options *options,
                   const struct state **state, struct error *err)
{
    if (options->state > 0) {
        if (states_check_use(states, options->state, err) != 0)
            return error_prefix(err, "%s", error_path(place_where(place)).text);
        *state = states_find(states, options->state);
        return 0;
    }
    *state = states_latest(states);
    return *state != NULL ? 0 : nothing_complete(place, states, err);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void add_number(json_object *to, const char *key, int64_t number)
{
    char name[STATE_NAME_SIZE];

    state_name(name, number);
    json_object_object_add(to, key, number > 0 ? json_object_new_string(name) : NULL);
}

static json_object *state_json(const struct states *states, const struct state *state)
{
    const struct state_manifest *manifest = state->manifest;
    json_object *object = json_object_new_object();

    json_object_object_add(object, "state", json_object_new_string(state->name));
    json_object_object_add(object, "kind", json_object_new_string(kind_word(state)));
    json_object_object_add(object, "current",
                           json_object_new_boolean(state->number == states->current));
    if (state->kind == STATE_IS_TORN)
        json_object_object_add(object, "why", json_object_new_string(why(state)));
    if (manifest == NULL)
        return object;
    json_object_object_add(object, "count", json_object_new_int64((int64_t)manifest->count));
    json_object_object_add(object, "bytes", json_object_new_int64(manifest->bytes));
    add_number(object, "previous", manifest->previous);
    json_object_object_add(object, "run",
                           manifest->run != NULL ? json_object_new_string(manifest->run) : NULL);
    return object;
}

static json_object *files_json(const struct state_manifest *manifest)
{
    json_object *list = json_object_new_array();

    for (size_t i = 0; i < manifest->count; i++) {
        const struct state_file *file = &manifest->files[i];
        json_object *object = json_object_new_object();

        json_object_object_add(object, "name", json_object_new_string(file->name));
        json_object_object_add(object, "bytes", json_object_new_int64(file->bytes));
        json_object_object_add(object, "blake2b",
                               file->digest[0] != '\0' ? json_object_new_string(file->digest)
                                                       : NULL);
        json_object_array_add(list, object);
    }
    return list;
}

static void print(json_object *object)
{
    char *text = shape_serialize(object, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
                                             JSON_C_TO_STRING_NOSLASHESCAPE);

    puts(text);
    free(text);
    json_object_put(object);
}

void command_print_state(const struct options *options, const char *where, const char *name)
{
    json_object *object;

    if (!options->json) {
        printf("%s/%s\n", where, name);
        return;
    }
    object = json_object_new_object();
    json_object_object_add(object, "place", json_object_new_string(where));
    json_object_object_add(object, "state", json_object_new_string(name));
    print(object);
}

/* A line with a text that whoever wrote the state has chosen; NULL: "-". */
static void print_foreign(const char *before, const char *text)
{
    char *clean = text_clean(text, 0);

    printf("%s%s\n", before, clean);
    free(clean);
}

/* ---- list ------------------------------------------------------------------------------------ */

static void print_line(const struct states *states, const struct state *state)
{
    const char *mark = state->number == states->current ? "*" : " ";
    char previous[STATE_NAME_SIZE] = "-";

    if (state->kind != STATE_IS_COMPLETE) {
        printf("%s %-8s  %-8s", mark, state->name, kind_word(state));
        if (state->kind == STATE_IS_TORN)
            print_foreign("  ", why(state));
        else
            putchar('\n');
        return;
    }
    if (state->manifest->previous > 0)
        state_name(previous, state->manifest->previous);
    printf("%s %-8s  %-8s  %8zu  %14" PRId64 "  %-8s", mark, state->name, kind_word(state),
           state->manifest->count, state->manifest->bytes, previous);
    print_foreign("  ", state->manifest->run);
}

int command_list(struct place *place, const struct options *options, struct error *err)
{
    json_object *root, *list;
    struct states states;

    if (place_list(place, &states, err) != 0)
        return -1;
    if (!options->json && states.count == 0) {
        print_foreign("no states in ", place_where(place));
        states_clear(&states);
        return 0;
    }
    if (!options->json) {
        printf("  %-8s  %-8s  %8s  %14s  %-8s  %s\n", "STATE", "KIND", "FILES", "BYTES", "PREVIOUS",
               "RUN");
        for (size_t i = 0; i < states.count; i++)
            print_line(&states, &states.list[i]);
        states_clear(&states);
        return 0;
    }
    root = json_object_new_object();
    list = json_object_new_array();
    for (size_t i = 0; i < states.count; i++)
        json_object_array_add(list, state_json(&states, &states.list[i]));
    json_object_object_add(root, "place", json_object_new_string(place_where(place)));
    add_number(root, "current", states.current);
    json_object_object_add(root, "states", list);
    print(root);
    states_clear(&states);
    return 0;
}

/* ---- show ------------------------------------------------------------------------------------ */

static int take(const void *data, size_t len, void *digest, struct error *err)
{
    (void)err;
    digest_saw(data, len, digest);
    return 0;
}

struct verify {
    struct place *place;
    const struct state *state;
};

static int verify_file(int lane, size_t index, void *arg, struct error *err)
{
    const struct verify *verify = arg;
    const struct state_file *file = &verify->state->manifest->files[index];
    struct digest digest;
    const struct s3_sink sink = {.take = take, .arg = &digest};

    digest_begin(&digest);
    if (place_take(verify->place, lane, verify->state, file, &sink, err) != 0)
        return -1;
    return digest_check(&digest, file, err);
}

static int verify(struct place *place, const struct state *state, struct error *err)
{
    struct verify verify = {.place = place, .state = state};

    if (place_each_file(place, state->manifest, verify_file, &verify, err) == 0)
        return 0;
    return error_prefix(err, "%s/%s", error_path(place_where(place)).text, state->name);
}

static void print_state(const struct place *place, const struct states *states,
                        const struct state *state, bool verified)
{
    const struct state_manifest *manifest = state->manifest;
    char previous[STATE_NAME_SIZE] = "-";

    if (manifest->previous > 0)
        state_name(previous, manifest->previous);
    printf("State:    %s/%s%s\n", place_where(place), state->name,
           state->number == states->current ? " (current)" : "");
    printf("Previous: %s\n", previous);
    print_foreign("Run:      ", manifest->run);
    printf("Files:    %zu, %" PRId64 " bytes%s\n", manifest->count, manifest->bytes,
           verified ? ", as they were written" : "");
    for (size_t i = 0; i < manifest->count; i++) {
        printf("  %14" PRId64, manifest->files[i].bytes);
        print_foreign("  ", manifest->files[i].name);
    }
}

static int show(struct place *place, const struct states *states, const struct options *options,
                struct error *err)
{
    const struct state *state;
    json_object *object;
    int rc = command_choose(place, states, options, &state, err);

    if (rc == 0 && options->verify)
        rc = verify(place, state, err);
    if (rc != 0)
        return rc;
    if (!options->json) {
        print_state(place, states, state, options->verify);
        return 0;
    }
    object = state_json(states, state);
    json_object_object_add(object, "verified", json_object_new_boolean(options->verify));
    json_object_object_add(object, "files", files_json(state->manifest));
    print(object);
    return 0;
}

int command_show(struct place *place, const struct options *options, struct error *err)
{
    struct states states;
    int rc;

    if (place_list(place, &states, err) != 0)
        return -1;
    rc = show(place, &states, options, err);
    states_clear(&states);
    return rc;
}

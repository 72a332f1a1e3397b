/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Manifests of states (state_manifest.h). */
#include "lib/state_manifest.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/s3_place.h"

#define FORMAT        1
#define NAME_MAX_SIZE 255
#define HEX           "0123456789abcdef"
#define INCARNATION   32

struct state_manifest *state_manifest_create(void)
{
    return calloc(1, sizeof(struct state_manifest));
}

void state_manifest_destroy(struct state_manifest *manifest)
{
    if (manifest == NULL)
        return;
    for (size_t i = 0; i < manifest->count; i++)
        free(manifest->files[i].name);
    free(manifest->files);
    free(manifest->run);
    free(manifest);
}

/* ---- files ----------------------------------------------------------------------------------- */

bool state_file_ok(const char *name)
{
    return strlen(name) <= NAME_MAX_SIZE && s3_key_ok(name) && strcmp(name, STATE_MANIFEST) != 0;
}

bool state_run_ok(const char *run)
{
    return run[0] != '\0' && strlen(run) <= STATE_RUN_MAX && strchr(run, '/') == NULL
               ? s3_key_ok(run)
               : false;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct state_file *)a)->name, ((const struct state_file *)b)->name);
}

const struct state_file *state_manifest_find(const struct state_manifest *manifest,
                                             const char *name)
{
    const struct state_file key = {.name = (char *)(uintptr_t)name};

    return manifest->count > 0
               ? bsearch(&key, manifest->files, manifest->count, sizeof(key), compare)
               : NULL;
}

int state_manifest_add(struct state_manifest *manifest, const char *name, int64_t bytes,
                       const char *digest, struct error *err)
{
    struct state_file *grown;

    if (!state_file_ok(name))
        return error_set(err, "a state cannot have a file of the name \"%s\"",
                         error_value(name).text);
    if (bytes < 0 || bytes > SNAPSHOT_BYTES_MAX || manifest->bytes > SNAPSHOT_BYTES_MAX - bytes)
        return error_set(err, "%s: a file has 0 to %" PRId64 " bytes", error_value(name).text,
                         SNAPSHOT_BYTES_MAX);
    grown = reallocarray(manifest->files, manifest->count + 1, sizeof(*grown));
    if (grown == NULL)
        return error_set(err, "out of memory");
    manifest->files = grown;
    grown[manifest->count] = (struct state_file){.name = strdup(name), .bytes = bytes};
    if (grown[manifest->count].name == NULL)
        return error_set(err, "out of memory");
    if (digest != NULL)
        snprintf(grown[manifest->count].digest, sizeof(grown->digest), "%s", digest);
    manifest->count++;
    manifest->bytes += bytes;
    return 0;
}

/* Is a file where this one needs a directory? */
static bool needs_file(const struct state_manifest *manifest, const char *name)
{
    char path[NAME_MAX_SIZE + 1];
    char *slash;

    snprintf(path, sizeof(path), "%s", name);
    while ((slash = strrchr(path, '/')) != NULL) {
        *slash = '\0';
        if (state_manifest_find(manifest, path) != NULL)
            return true;
    }
    return false;
}

int state_manifest_sort(struct state_manifest *manifest, struct error *err)
{
    if (manifest->count > 0)
        qsort(manifest->files, manifest->count, sizeof(*manifest->files), compare);
    for (size_t i = 0; i < manifest->count; i++) {
        const char *name = manifest->files[i].name;

        if ((i > 0 && strcmp(manifest->files[i - 1].name, name) == 0) || needs_file(manifest, name))
            return error_set(err, "%s is there twice, or below a file", error_value(name).text);
    }
    return 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool is_digest(const char *text)
{
    return text != NULL && strlen(text) == STATE_DIGEST_SIZE - 1 &&
           strspn(text, HEX) == STATE_DIGEST_SIZE - 1;
}

static int read_files(json_object *root, struct state_manifest *manifest, struct error *err)
{
    json_object *files, *digests = NULL;

    if (!json_object_object_get_ex(root, "files", &files) ||
        !json_object_is_type(files, json_type_object) || json_object_object_length(files) == 0)
        return error_set(err, "\"files\" must be an object with the sizes of files");
    if (json_object_object_get_ex(root, "blake2b", &digests) &&
        !json_object_is_type(digests, json_type_object))
        return error_set(err, "\"blake2b\" must be an object");
    json_object_object_foreach (files, name, size) {
        const char *digest = digests != NULL ? json_get_string(digests, name) : NULL;

        if (!json_object_is_type(size, json_type_int))
            return error_set(err, "the size of %s is no whole number", error_value(name).text);
        if (digests != NULL && !is_digest(digest))
            return error_set(err, "\"blake2b\" of %s must be 64 hexadecimal digits",
                             error_value(name).text);
        if (state_manifest_add(manifest, name, json_object_get_int64(size), digest, err) != 0)
            return -1;
    }
    return state_manifest_sort(manifest, err);
}

static int read_origin(json_object *root, struct state_manifest *manifest, struct error *err)
{
    const char *run = json_get_string(root, "run");
    json_object *value;

    if (json_object_object_get_ex(root, "previous", &value) &&
        !json_get_int(root, "previous", 0, STATE_NUMBER_MAX, &manifest->previous))
        return error_set(err, "\"previous\" must be the number of a state");
    if (json_object_object_get_ex(root, "run", &value) && (run == NULL || !state_run_ok(run)))
        return error_set(err, "\"run\" must be a name of at most %d bytes", STATE_RUN_MAX);
    manifest->run = run != NULL ? strdup(run) : NULL;
    return run == NULL || manifest->run != NULL ? 0 : error_set(err, "out of memory");
}

/* What snapshot_parse_checkpoint() accepts is of an elastic job. */
static void read_key(const char *text, size_t len, struct state_manifest *manifest)
{
    json_object *files, *root = snapshot_parse_checkpoint(text, len, &manifest->key, &files, NULL);

    manifest->has_key = root != NULL;
    json_object_put(root);
}

struct state_manifest *state_manifest_parse(const char *text, size_t len, struct error *err)
{
    json_object *root = json_text_parse(text, len, err);
    struct state_manifest *manifest = root != NULL ? state_manifest_create() : NULL;
    int64_t format;
    int rc = -1;

    if (root != NULL && manifest == NULL)
        error_set(err, "out of memory");
    else if (root != NULL && !json_get_int(root, "format", FORMAT, FORMAT, &format))
        error_set(err, "\"format\" is not %d, the one that this version reads", FORMAT);
    else if (root != NULL)
        rc = read_files(root, manifest, err);
    if (rc == 0)
        rc = read_origin(root, manifest, err);
    json_object_put(root);
    if (rc == 0) {
        read_key(text, len, manifest);
        return manifest;
    }
    state_manifest_destroy(manifest);
    return NULL;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void add_key(json_object *root, const struct snapshot_key *key)
{
    char incarnation[INCARNATION];

    snprintf(incarnation, sizeof(incarnation), "%" PRIu32 ".%" PRIu32, key->job, key->restarts);
    json_object_object_add(root, "incarnation", json_object_new_string(incarnation));
    json_object_object_add(root, "generation", json_object_new_int(key->generation));
    if (key->step != SNAPSHOT_NO_STEP)
        json_object_object_add(root, "step", json_object_new_int64(key->step));
}

char *state_manifest_text(const struct state_manifest *manifest)
{
    json_object *root = json_object_new_object(), *files = json_object_new_object();
    json_object *digests = json_object_new_object();
    char *text;

    json_object_object_add(root, "format", json_object_new_int(FORMAT));
    for (size_t i = 0; i < manifest->count; i++) {
        const struct state_file *file = &manifest->files[i];

        json_object_object_add(files, file->name, json_object_new_int64(file->bytes));
        if (file->digest[0] != '\0')
            json_object_object_add(digests, file->name, json_object_new_string(file->digest));
    }
    json_object_object_add(root, "files", files);
    if (json_object_object_length(digests) > 0)
        json_object_object_add(root, "blake2b", digests);
    else
        json_object_put(digests);
    if (manifest->previous > 0)
        json_object_object_add(root, "previous", json_object_new_int64(manifest->previous));
    if (manifest->run != NULL)
        json_object_object_add(root, "run", json_object_new_string(manifest->run));
    if (manifest->has_key)
        add_key(root, &manifest->key);
    text = strdup(json_object_to_json_string_ext(root, JSON_C_TO_STRING_PLAIN |
                                                           JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(root);
    return text;
}

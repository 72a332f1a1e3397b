/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Snapshots in node memory (snapshot.h). */
#include "lib/snapshot.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/number.h"

#define FORMAT         1
#define NAME_MAX_BYTES (SNAPSHOT_FILE_SIZE - 1)
#define PATH_MAX_BYTES 4095
#define FLUSHING       ".flushing-"
#define FLUSHED        ".flushed-"
#define DIGITS         "0123456789"

/* JOB.RESTARTS.GENERATION.STEP: jobs may share a checkpoint directory */
#define KEY_FORMAT      "%" PRIu32 ".%" PRIu32 ".%d.%" PRId64
#define KEY_VALUES(key) (key)->job, (key)->restarts, (key)->generation, (key)->step

/* ---- which is newer -------------------------------------------------------------------------- */

int snapshot_key_compare(const struct snapshot_key *a, const struct snapshot_key *b)
{
    if (a->restarts != b->restarts)
        return a->restarts < b->restarts ? -1 : 1;
    if (a->generation != b->generation)
        return a->generation < b->generation ? -1 : 1;
    return (a->step > b->step) - (a->step < b->step);
}

bool snapshot_key_covers(const struct snapshot_key *has, const struct snapshot_key *key)
{
    return has->job == key->job && snapshot_key_compare(has, key) >= 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Read a number as printf writes it, at *text, and move *text behind it. Only one form of a number
 * is allowed, so that two names never mean the same. */
static bool take_number(const char **text, uint32_t *value)
{
    size_t len = strspn(*text, DIGITS);
    uint64_t number = 0;

    if (len == 0 || len > 10 || ((*text)[0] == '0' && len > 1))
        return false;
    for (size_t i = 0; i < len; i++)
        number = 10 * number + (uint64_t)((*text)[i] - '0');
    if (number > UINT32_MAX)
        return false;
    *text += len;
    *value = (uint32_t)number;
    return true;
}

static bool take_text(const char **text, const char *wanted)
{
    size_t len = strlen(wanted);

    if (strncmp(*text, wanted, len) != 0)
        return false;
    *text += len;
    return true;
}

/* JOB.RESTARTS */
static bool take_incarnation(const char **text, uint32_t *job, uint32_t *restarts)
{
    return take_number(text, job) && take_text(text, ".") && take_number(text, restarts);
}

static bool node_ok(const char *node)
{
    size_t len = strspn(node, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" DIGITS "._-");

    return len > 0 && len <= SNAPSHOT_NODE_MAX && node[len] == '\0';
}

int snapshot_run_parse(const char *name, struct snapshot_run *run, struct error *err)
{
    const char *at = name;

    if (!take_text(&at, "elastic-") || !take_number(&at, &run->uid) || !take_text(&at, "-") ||
        !take_incarnation(&at, &run->job, &run->restarts) || !take_text(&at, "-") || !node_ok(at))
        return error_set(err, "'%s' is no run directory: that is elastic-UID-JOB.RESTARTS-NODE",
                         error_value(name).text);
    if (run->uid == UINT32_MAX) /* to the kernel it means: leave the uid as it is */
        return error_set(err, "'%s' is no run directory: there is no uid %" PRIu32,
                         error_value(name).text, run->uid);
    snprintf(run->node, sizeof(run->node), "%s", at);
    return 0;
}

bool snapshot_file_name_ok(const char *name)
{
    return name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL &&
           strlen(name) <= NAME_MAX_BYTES && strcmp(name, SNAPSHOT_MANIFEST) != 0;
}

void snapshot_flushing_name(char name[SNAPSHOT_NAME_SIZE], const struct snapshot_key *key,
                            const char *node, int pid)
{
    snprintf(name, SNAPSHOT_NAME_SIZE, FLUSHING KEY_FORMAT "-%.*s-%d", KEY_VALUES(key),
             SNAPSHOT_NODE_MAX, node, pid);
}

void snapshot_flushed_name(char name[SNAPSHOT_NAME_SIZE], const struct snapshot_key *key,
                           const char *node)
{
    snprintf(name, SNAPSHOT_NAME_SIZE, FLUSHED KEY_FORMAT "-%.*s", KEY_VALUES(key),
             SNAPSHOT_NODE_MAX, node);
}

static bool is_random(const char *text)
{
    return strspn(text, DIGITS "abcdef") == 8 && text[8] == '\0';
}

/* No name of a node has a '+' in it. */
void snapshot_other_name(char name[SNAPSHOT_NAME_SIZE], uint32_t random)
{
    size_t len = strcspn(name, "+");

    snprintf(name + len, SNAPSHOT_NAME_SIZE - len, "+%08" PRIx32, random);
}

int snapshot_flushing_pid(const char *name, const char *node)
{
    const char *at = name;
    size_t len;
    int pid = 0;

    if (!take_text(&at, FLUSHING))
        return 0;
    for (int i = 0; i < 4; i++) { /* JOB.RESTARTS.GENERATION.STEP- */
        at += strspn(at, DIGITS);
        if (!take_text(&at, i < 3 ? "." : "-"))
            return 0;
    }
    if (!take_text(&at, node) || !take_text(&at, "-"))
        return 0;
    len = strcspn(at, "+");
    if (at[len] != '\0' && !is_random(at + len + 1))
        return 0;
    return number_parse(at, len, 1, INT_MAX, &pid) == 0 ? pid : 0;
}

bool snapshot_is_flushed_name(const char *name, uint32_t job)
{
    uint32_t of;

    return take_text(&name, FLUSHED) && take_number(&name, &of) && of == job &&
           take_text(&name, ".");
}

bool snapshot_is_flushing_name(const char *name, uint32_t job, uint32_t restarts)
{
    uint32_t of, run;

    return take_text(&name, FLUSHING) && take_incarnation(&name, &of, &run) && of == job &&
           run < restarts && take_text(&name, ".");
}

int64_t snapshot_checkpoint_number(const char *name)
{
    size_t len = strspn(name, DIGITS);

    if (len == 0 || name[len] != '\0')
        return -1;
    name += strspn(name, "0");
    return strlen(name) > 18 ? INT64_MAX : strtoll(name, NULL, 10);
}

bool snapshot_is_checkpoint_name(const char *name)
{
    return take_text(&name, FLUSHED) || snapshot_checkpoint_number(name) >= 0;
}

bool snapshot_is_parts_name(const char *name)
{
    return take_text(&name, SNAPSHOT_PARTS) &&
           (*name == '\0' || (take_text(&name, "-") && is_random(name)));
}

bool snapshot_is_parts_path(const char *path, const char *node, char **base)
{
    const char *last = strrchr(path, '/');
    size_t len = strlen("/" SNAPSHOT_PARTS);
    const char *parts;

    if (last == NULL || strcmp(last + 1, node) != 0 || (size_t)(last - path) <= len)
        return false;
    parts = last - len;
    if (strncmp(parts, "/" SNAPSHOT_PARTS, len) != 0)
        return false;
    *base = strndup(path, (size_t)(parts - path));
    return true;
}

/* ---- manifests ------------------------------------------------------------------------------- */

/* The common part of both kinds of manifest. */
static int parse_key(json_object *root, bool needs_step, struct snapshot_key *key,
                     struct error *err)
{
    const char *incarnation = json_get_string(root, "incarnation");
    json_object *step = NULL;
    int64_t format, generation;

    if (!json_get_int(root, "format", FORMAT, FORMAT, &format))
        return error_set(err, "\"format\" is not %d, the one that this version reads", FORMAT);
    if (incarnation == NULL || !take_incarnation(&incarnation, &key->job, &key->restarts) ||
        *incarnation != '\0')
        return error_set(err, "\"incarnation\" must be \"JOB.RESTARTS\"");
    if (!json_get_int(root, "generation", 0, INT_MAX, &generation))
        return error_set(err, "\"generation\" must be a number from 0 to %d", INT_MAX);
    key->generation = (int)generation;
    key->step = SNAPSHOT_NO_STEP;
    if (!needs_step && !json_object_object_get_ex(root, "step", &step))
        return 0;
    if (!json_get_int(root, "step", 0, SNAPSHOT_NO_STEP - 1, &key->step))
        return error_set(err, "\"step\" must be a number from 0 to %" PRId64, SNAPSHOT_NO_STEP - 1);
    return 0;
}

static json_object *files_of(json_object *root)
{
    json_object *files = NULL;

    json_object_object_get_ex(root, "files", &files);
    return json_object_is_type(files, json_type_object) ? files : NULL;
}

static bool parse_digest(const char *text, uint8_t digest[SNAPSHOT_DIGEST])
{
    size_t len = 0;

    return text != NULL && strlen(text) == 2 * (size_t)SNAPSHOT_DIGEST &&
           sodium_hex2bin(digest, SNAPSHOT_DIGEST, text, strlen(text), NULL, &len, NULL) == 0 &&
           len == SNAPSHOT_DIGEST;
}

static int parse_file(const char *name, json_object *entry, struct snapshot_file *file,
                      struct error *err)
{
    if (!snapshot_file_name_ok(name))
        return error_set(err,
                         "the file name '%s' is not allowed: at most %d bytes without '/', not "
                         "beginning with '.', and not " SNAPSHOT_MANIFEST,
                         error_value(name).text, NAME_MAX_BYTES);
    if (!json_get_int(entry, "bytes", 0, SNAPSHOT_BYTES_MAX, &file->bytes))
        return error_set(err, "%s: \"bytes\" must be a number from 0 to %" PRId64,
                         error_value(name).text, SNAPSHOT_BYTES_MAX);
    if (!parse_digest(json_get_string(entry, "blake2b"), file->digest))
        return error_set(err, "%s: \"blake2b\" must be %d hexadecimal digits",
                         error_value(name).text, 2 * SNAPSHOT_DIGEST);
    file->name = strdup(name);
    return file->name != NULL ? 0 : error_set(err, "out of memory");
}

static int parse_files(json_object *files, struct snapshot *snapshot, struct error *err)
{
    int count = files != NULL ? json_object_object_length(files) : 0;

    if (count < 1 || count > SNAPSHOT_FILES_MAX)
        return error_set(err, "\"files\" must be an object of 1 to %d files", SNAPSHOT_FILES_MAX);
    json_object_object_foreach (files, name, entry) {
        struct snapshot_file *file = &snapshot->files[snapshot->count];

        if (parse_file(name, entry, file, err) != 0)
            return -1;
        snapshot->count++;
        if (__builtin_add_overflow(snapshot->bytes, file->bytes, &snapshot->bytes))
            return error_set(err, "the files have more than 2^63 bytes in all");
    }
    return 0;
}

static int parse_target(const char *checkpoint, struct snapshot *snapshot, struct error *err)
{
    if (checkpoint == NULL || checkpoint[0] != '/' || strlen(checkpoint) > PATH_MAX_BYTES)
        return error_set(err, "\"checkpoint\" must be an absolute path of at most %d bytes",
                         PATH_MAX_BYTES);
    snapshot->checkpoint = strdup(checkpoint);
    return snapshot->checkpoint != NULL ? 0 : error_set(err, "out of memory");
}

struct snapshot *snapshot_parse(const char *text, size_t len, struct error *err)
{
    json_object *root = json_text_parse(text, len, err);
    struct snapshot *snapshot = calloc(1, sizeof(*snapshot));

    if (root == NULL || snapshot == NULL || parse_key(root, true, &snapshot->key, err) != 0 ||
        parse_target(json_get_string(root, "checkpoint"), snapshot, err) != 0 ||
        parse_files(files_of(root), snapshot, err) != 0) {
        if (snapshot == NULL)
            error_set(err, "out of memory");
        snapshot_destroy(snapshot);
        snapshot = NULL;
    }
    json_object_put(root);
    return snapshot;
}

void snapshot_destroy(struct snapshot *snapshot)
{
    if (snapshot == NULL)
        return;
    for (int i = 0; i < snapshot->count; i++)
        free(snapshot->files[i].name);
    free(snapshot->checkpoint);
    free(snapshot);
}

static json_object *digest_text(const uint8_t digest[SNAPSHOT_DIGEST])
{
    char text[2 * SNAPSHOT_DIGEST + 1];

    for (int i = 0; i < SNAPSHOT_DIGEST; i++)
        snprintf(text + (size_t)2 * (size_t)i, 3, "%02x", digest[i]);
    return json_object_new_string(text);
}

char *snapshot_checkpoint_manifest(const struct snapshot *snapshot)
{
    const struct snapshot_key *key = &snapshot->key;
    json_object *root = json_object_new_object(), *files = json_object_new_object();
    json_object *digests = json_object_new_object();
    char incarnation[32], *text = NULL;
    const char *rendered;

    snprintf(incarnation, sizeof(incarnation), "%" PRIu32 ".%" PRIu32, key->job, key->restarts);
    json_object_object_add(root, "format", json_object_new_int(FORMAT));
    json_object_object_add(root, "incarnation", json_object_new_string(incarnation));
    json_object_object_add(root, "generation", json_object_new_int(key->generation));
    json_object_object_add(root, "step", json_object_new_int64(key->step));
    for (int i = 0; i < snapshot->count; i++) {
        const struct snapshot_file *file = &snapshot->files[i];

        json_object_object_add(files, file->name, json_object_new_int64(file->bytes));
        json_object_object_add(digests, file->name, digest_text(file->digest));
    }
    json_object_object_add(root, "files", files);
    json_object_object_add(root, "blake2b", digests);
    rendered = json_object_to_json_string_ext(root, JSON_C_TO_STRING_PLAIN |
                                                        JSON_C_TO_STRING_NOSLASHESCAPE);
    if (rendered != NULL)
        text = strdup(rendered);
    json_object_put(root);
    return text;
}

json_object *snapshot_parse_checkpoint(const char *text, size_t len, struct snapshot_key *key,
                                       json_object **files, struct error *err)
{
    json_object *root = json_text_parse(text, len, err);

    if (root == NULL)
        return NULL;
    *files = files_of(root);
    if (parse_key(root, false, key, err) == 0) {
        if (*files != NULL && json_object_object_length(*files) > 0)
            return root;
        error_set(err, "\"files\" must be an object of at least one file");
    }
    json_object_put(root);
    return NULL;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* complete.json of a state, which is written last. Pure.
 *
 *     {"format": 1, "files": {"a/b": 4711}, "blake2b": {"a/b": "64 hex digits"},
 *      "previous": 6, "run": "job 12, fit 3",
 *      "incarnation": "12.0", "generation": 3, "step": 1234}
 *
 * A checkpoint's has the same form (lib/snapshot.h), so that a state can be loaded as one. Only
 * format and files are needed. Other people write states, too: nothing in it is trusted. */
#ifndef ELASTIC_STATE_MANIFEST_H
#define ELASTIC_STATE_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"
#include "lib/snapshot.h"

#define STATE_MANIFEST     SNAPSHOT_MANIFEST
#define STATE_MANIFEST_MAX ((size_t)16 << 20)
#define STATE_NUMBER_MAX   999999999999999999
#define STATE_RUN_MAX      200 /* bytes */
#define STATE_DIGEST_SIZE  (2 * SNAPSHOT_DIGEST + 1)

struct state_file {
    char *name; /* a path within the state */
    int64_t bytes;
    char digest[STATE_DIGEST_SIZE]; /* "": unknown */
};

struct state_manifest {
    struct state_file *files; /* by name, after state_manifest_sort() */
    size_t count;
    int64_t bytes;    /* of all files */
    int64_t previous; /* the state before; 0: none */
    char *run;        /* by what it was made; NULL: unknown */
    bool has_key;     /* was it made by an elastic job? */
    struct snapshot_key key;
};

/* A new manifest without files. NULL: out of memory. */
struct state_manifest *state_manifest_create(void);
/* NULL is accepted. */
void state_manifest_destroy(struct state_manifest *manifest);

/* NULL with err. */
struct state_manifest *state_manifest_parse(const char *text, size_t len, struct error *err);

/* A new string, NULL when out of memory. */
char *state_manifest_text(const struct state_manifest *manifest);

/* -1 with err: a name that cannot be. digest may be NULL. */
int state_manifest_add(struct state_manifest *manifest, const char *name, int64_t bytes,
                       const char *digest, struct error *err);

/* After the last file. -1 with err: a name twice, or a file that is a directory, too. */
int state_manifest_sort(struct state_manifest *manifest, struct error *err);

/* NULL: there is no such file. */
const struct state_file *state_manifest_find(const struct state_manifest *manifest,
                                             const char *name);

/* May a state have such a file? A path as keys of S3 are (s3_key_ok), each name of at most 255
 * bytes, all of at most 255 (S3_KEY_MAX holds them behind each prefix); not the manifest's name. */
bool state_file_ok(const char *name);

/* May a run have such a name? One line of UTF-8 with at most STATE_RUN_MAX bytes. */
bool state_run_ok(const char *run);

#endif

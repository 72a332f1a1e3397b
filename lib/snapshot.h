/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Snapshots in node memory and flushed snapshots: manifests, names, and which is newer. Pure.
 *
 * A buffer of a run directory is complete if it holds complete.json, which is written last:
 *
 *     {"format": 1, "incarnation": "12.0", "generation": 3, "step": 1234,
 *      "checkpoint": "/absolute/directory",
 *      "files": {"state.pt": {"bytes": 4711, "blake2b": "64 hex digits"}}}
 *
 * The complete.json of a checkpoint has the sizes ("files": {"state.pt": 4711}), and beside them
 * "blake2b": {"state.pt": "64 hex digits"}, if the digests were noted. A checkpoint that was not
 * made of a snapshot may have no "step". Programs of users write both kinds, so nothing in them is
 * trusted. */
#ifndef ELASTIC_SNAPSHOT_H
#define ELASTIC_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <json-c/json.h>

#include "lib/error.h"

#define SNAPSHOT_MANIFEST     "complete.json"
#define SNAPSHOT_MANIFEST_MAX ((size_t)64 << 10) /* bytes of a buffer's */
#define SNAPSHOT_FILES_MAX    64
#define SNAPSHOT_FILE_SIZE    256 /* of a file's name, with its end */
#define SNAPSHOT_DIGEST       32  /* bytes of the BLAKE2b of a file */
/* Of a file: below the size at which json-c saturates. */
#define SNAPSHOT_BYTES_MAX ((int64_t)1 << 60)
#define SNAPSHOT_NODE_MAX  128
#define SNAPSHOT_NAME_SIZE 256 /* fits every name that is made here */

/* Which state a snapshot holds. Within one job, a larger (restarts, generation, step) is newer. */
struct snapshot_key {
    uint32_t job;
    uint32_t restarts;
    int generation;
    int64_t step; /* SNAPSHOT_NO_STEP: newer than every snapshot of the generation */
};

#define SNAPSHOT_NO_STEP INT64_MAX

/* Less than, equal to or greater than 0 as a is older than, the same as or newer than b. Both are
 * keys of one job. */
int snapshot_key_compare(const struct snapshot_key *a, const struct snapshot_key *b);

/* Does a node that has the state `has` need no `key`? True: `has` is of the same job, and as new or
 * newer. */
bool snapshot_key_covers(const struct snapshot_key *has, const struct snapshot_key *key);

struct snapshot_file {
    char *name;
    int64_t bytes;
    uint8_t digest[SNAPSHOT_DIGEST];
};

/* The contents of a buffer. */
struct snapshot {
    struct snapshot_key key;
    char *checkpoint; /* absolute */
    int64_t bytes;    /* of all files */
    int count;        /* of files, at least 1 */
    struct snapshot_file files[SNAPSHOT_FILES_MAX];
};

/* Parse the manifest of a buffer. NULL with err. Free with snapshot_destroy. */
struct snapshot *snapshot_parse(const char *text, size_t len, struct error *err);

/* NULL is accepted. */
void snapshot_destroy(struct snapshot *snapshot);

/* The complete.json of the checkpoint that a snapshot becomes. A new string, NULL when out of
 * memory. */
char *snapshot_checkpoint_manifest(const struct snapshot *snapshot);

/* Parse the complete.json of a checkpoint. Returns its root, for json_object_put, with *key and
 * *files. *files is an object of names and sizes; it is part of the root, and its values have not
 * been checked. NULL with err. */
json_object *snapshot_parse_checkpoint(const char *text, size_t len, struct snapshot_key *key,
                                       json_object **files, struct error *err);

/* Is it a file name that a snapshot may contain? One component of at most 255 bytes, not hidden,
 * not the manifest's name. */
bool snapshot_file_name_ok(const char *name);

/* A run directory's name: elastic-UID-JOB.RESTARTS-NODE. */
struct snapshot_run {
    uint32_t uid;
    uint32_t job;
    uint32_t restarts;
    char node[SNAPSHOT_NODE_MAX + 1]; /* letters, digits, '.', '_' and '-' */
};

/* Parse the last component of its path. -1 with err. */
int snapshot_run_parse(const char *name, struct snapshot_run *run, struct error *err);

/* Names within the checkpoint directory: of a snapshot that is being written, and of a complete
 * one. */
void snapshot_flushing_name(char name[SNAPSHOT_NAME_SIZE], const struct snapshot_key *key,
                            const char *node, int pid);
void snapshot_flushed_name(char name[SNAPSHOT_NAME_SIZE], const struct snapshot_key *key,
                           const char *node);

/* Another name like it, if somebody else has taken that: NAME+XXXXXXXX. It replaces one that was
 * added before. */
void snapshot_other_name(char name[SNAPSHOT_NAME_SIZE], uint32_t random);

/* The id of the process that has made .flushing-...-PID on this node. 0: the name is another. */
int snapshot_flushing_pid(const char *name, const char *node);

/* The number of a checkpoint, 00000012. INT64_MAX: it has more than 18 digits. -1: the name is
 * another. */
int64_t snapshot_checkpoint_number(const char *name);

/* Is it the name of a flushed snapshot of the job: .flushed-JOB.…? */
bool snapshot_is_flushed_name(const char *name, uint32_t job);

/* Is it the name of a snapshot that an earlier run of the job is still writing:
 * .flushing-JOB.RESTARTS.…? */
bool snapshot_is_flushing_name(const char *name, uint32_t job, uint32_t restarts);

/* Can it be the name of a checkpoint or of a flushed snapshot: 00000012, .flushed-...? */
bool snapshot_is_checkpoint_name(const char *name);

/* Within the checkpoint directory: parts of sharded states. */
#define SNAPSHOT_PARTS ".parts"

/* Is it that name, or .parts-XXXXXXXX, which is there if somebody else has taken that? */
bool snapshot_is_parts_name(const char *name);

/* Does a path name the directory of a node's parts: BASE/.parts/NODE? *base is a new string, NULL
 * when out of memory. */
bool snapshot_is_parts_path(const char *path, const char *node, char **base);

#endif

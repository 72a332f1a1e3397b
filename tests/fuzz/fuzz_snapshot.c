/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fuzz target: manifests of snapshots and of checkpoints, and the names around them. */
#include "tests/fuzz/fuzz.h"

#include "lib/snapshot.h"

/* As a checkpoint it is what it was as a snapshot. */
static void check_snapshot(const struct snapshot *snapshot)
{
    char *text = snapshot_checkpoint_manifest(snapshot);
    json_object *root, *files = NULL;
    struct snapshot_key key;
    int64_t bytes = 0;

    MUST(text != NULL && snapshot->checkpoint[0] == '/');
    MUST(snapshot->count >= 1 && snapshot->count <= SNAPSHOT_FILES_MAX);
    root = snapshot_parse_checkpoint(text, strlen(text), &key, &files, NULL);
    MUST(root != NULL && json_object_object_length(files) == snapshot->count);
    MUST(key.job == snapshot->key.job && snapshot_key_compare(&key, &snapshot->key) == 0);
    for (int i = 0; i < snapshot->count; i++) {
        const struct snapshot_file *file = &snapshot->files[i];
        json_object *size = json_object_object_get(files, file->name);

        MUST(snapshot_file_name_ok(file->name) && file->bytes >= 0);
        MUST(json_object_get_int64(size) == file->bytes);
        bytes += file->bytes;
    }
    MUST(bytes == snapshot->bytes);
    json_object_put(root);
    free(text);
}

static void check_parts(const char *text)
{
    char *base = NULL;

    if (snapshot_is_parts_path(text, "n1", &base))
        MUST(base != NULL && base[0] != '\0' && strncmp(text, base, strlen(base)) == 0);
    else
        MUST(base == NULL);
    free(base);
    MUST(!snapshot_is_parts_name(text) || !snapshot_is_checkpoint_name(text));
}

static void check_names(const char *text)
{
    struct error err = {""};
    struct snapshot_run run;
    struct snapshot_key key = {.restarts = 1, .generation = 2, .step = 3};
    char name[SNAPSHOT_NAME_SIZE];
    int pid = snapshot_flushing_pid(text, "n1");

    check_parts(text);
    MUST(pid >= 0 && (pid == 0 || !snapshot_is_checkpoint_name(text)));
    if (snapshot_run_parse(text, &run, &err) != 0) {
        fuzz_check_refusal(&err);
        return;
    }
    snapshot_flushing_name(name, &key, run.node, 77);
    MUST(snapshot_flushing_pid(name, run.node) == 77);
    snapshot_other_name(name, 1);
    MUST(snapshot_flushing_pid(name, run.node) == 77);
    snapshot_flushed_name(name, &key, run.node);
    MUST(snapshot_is_checkpoint_name(name) && strchr(name, '/') == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct error err = {""};
    struct snapshot *snapshot = snapshot_parse(text, size, &err);
    json_object *root, *files = NULL;
    struct snapshot_key key;

    if (snapshot != NULL)
        check_snapshot(snapshot);
    else
        fuzz_check_refusal(&err);
    snapshot_destroy(snapshot);
    err.text[0] = '\0';
    root = snapshot_parse_checkpoint(text, size, &key, &files, &err);
    if (root != NULL)
        MUST(files != NULL && key.generation >= 0 && key.step >= 0);
    else
        fuzz_check_refusal(&err);
    json_object_put(root);
    check_names(text);
    free(text);
    return 0;
}

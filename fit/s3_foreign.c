/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Objects on S3 of another user (s3_foreign.h). */
#include "fit/s3_foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "common/files.h"
#include "common/s3.h"
#include "common/stop.h"
#include "fit/grant.h"
#include "fit/s3_bucket_grant.h"
#include "lib/s3_place.h"
#include "lib/state_manifest.h"
#include "state/tree.h"

#define SPARE   5 /* seconds that keys have to last */
#define LOOK_NS 300000000L
#define KEY_MAX (S3_KEY_MAX + 1)

#define DEPTH_MAX 32 /* directories of a state below each other */
#define FILES_MAX 200000

/* ---- keys ------------------------------------------------------------------------------------ */

void s3_source_clear(struct s3_source *source)
{
    free(source->text);
    source->text = NULL;
    s3_box_clear(&source->box);
}

/* Whoever has sent them must not have this user ask servers that this user has not named. */
static int check_server(const struct s3_account *account, struct error *err)
{
    struct s3_account own;
    struct error why;
    bool same;

    if (s3_account_load_server(&own, &why) != 0)
        return error_set(err, "%s", why.text);
    same = (own.endpoint == NULL) == (account->endpoint == NULL) &&
           (own.endpoint == NULL || strcmp(own.endpoint, account->endpoint) == 0);
    if (!same)
        error_set(err, "the fit uses the S3 server %s, and the trainer's job names %s",
                  account->endpoint != NULL ? error_value(account->endpoint).text : "of Amazon",
                  own.endpoint != NULL ? error_value(own.endpoint).text : "that of Amazon");
    s3_account_clear(&own);
    return same ? 0 : -1;
}

/* Policies of buckets let this user in, by the keys of its own job. */
static int use_own(struct s3_box *box, struct error *err)
{
    struct s3_account own;
    struct error why;

    if (box->sid[0] == '\0' || s3_account_load(&own, &why) != 0)
        return error_set(err, "the trainer's job: %s",
                         box->sid[0] == '\0' ? "no keys for S3 have come" : why.text);
    s3_account_clear(&box->account);
    box->account = own;
    return 0;
}

/* A box that is for a process before this one is followed by another one. */
static int look(struct s3_source *source, struct error *err)
{
    char *text = file_read(source->path, S3_BOX_MAX, NULL, NULL);
    struct s3_box box;

    if (text == NULL || (source->text != NULL && strcmp(text, source->text) == 0)) {
        free(text);
        return 0;
    }
    free(source->text);
    source->text = text;
    if (s3_box_open(text, source->key, &box, NULL) != 0)
        return 0;
    s3_box_clear(&source->box);
    source->box = box;
    if (check_server(&source->box.account, err) != 0)
        return -1;
    return source->box.account.key == NULL ? use_own(&source->box, err) : 0;
}

static int await_keys(struct s3_source *source, struct error *err)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};

    while (look(source, err) == 0) {
        if (source->box.until > (double)time(NULL) + SPARE)
            return 0;
        if (source->unwanted(source->arg))
            return error_set(err, "stopped before keys for S3 have come");
        nanosleep(&pause, NULL);
    }
    return -1;
}

/* ---- a place --------------------------------------------------------------------------------- */

/* Where objects are, and with which keys. */
struct store {
    struct s3_source *source; /* NULL: with this user's own */
    struct s3_account own;
    struct s3_place where;
    struct s3 *s3;
    double until; /* of the keys that s3 has */
    int dir;      /* of the files */
    /* What a listing has found, or is to be removed. */
    struct found {
        char *key;
        int64_t bytes;
    } * found;
    size_t count, room;
};

/* With keys that may open more than what the other user may. */
static int enter(struct store *store, struct error *err)
{
    s3_give_owner(store->s3);
    return s3_bucket_check_proof(store->s3, store->source->box.sid,
                                 s3_box_key_name(store->source->key), err);
}

/* Also once more, with new keys. */
static int store_open(struct store *store, struct error *err)
{
    const struct s3_limits limits = S3_LIMITS;
    const struct s3_account *account = &store->own;

    if (store->source != NULL) {
        if (await_keys(store->source, err) != 0)
            return -1;
        account = &store->source->box.account;
        if (store->s3 != NULL && store->until >= store->source->box.until)
            return 0;
        store->until = store->source->box.until;
    } else if (store->s3 != NULL) {
        return 0;
    } else if (s3_account_load(&store->own, err) != 0) {
        return -1;
    }
    s3_close(store->s3);
    store->s3 = s3_open(account, store->where.bucket, &limits, err);
    if (store->s3 == NULL)
        return -1;
    return store->source != NULL && store->source->box.sid[0] != '\0' ? enter(store, err) : 0;
}

static void store_close(struct store *store)
{
    s3_close(store->s3);
    s3_account_clear(&store->own);
    for (size_t i = 0; i < store->count; i++)
        free(store->found[i].key);
    free(store->found);
    if (store->dir >= 0)
        close(store->dir);
}

static int add_found(struct store *store, const char *key, int64_t bytes, struct error *err)
{
    if (store->count == store->room) {
        size_t room = store->room > 0 ? 2 * store->room : 64;
        struct found *grown = reallocarray(store->found, room, sizeof(*grown));

        if (grown == NULL)
            return error_set(err, "out of memory");
        store->found = grown;
        store->room = room;
    }
    store->found[store->count] = (struct found){.key = strdup(key), .bytes = bytes};
    return store->found[store->count++].key != NULL ? 0 : error_set(err, "out of memory");
}

/* What some clients make for a directory is no file. */
static int on_entry(const struct s3_entry *entry, void *arg, struct error *err)
{
    struct store *store = arg;
    size_t len = strlen(entry->key);

    return len > 0 && entry->key[len - 1] == '/' && entry->bytes == 0
               ? 0
               : add_found(store, entry->key, entry->bytes, err);
}

static int list(struct store *store, struct error *err)
{
    return s3_list(store->s3, store->where.prefix, false, on_entry, store, err) == S3_OK ? 0 : -1;
}

static int open_dir(struct store *store, const char *path, struct error *err)
{
    store->dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return store->dir >= 0 ? 0 : error_set(err, "%s: %s", error_path(path).text, strerror(errno));
}

/* ---- getting --------------------------------------------------------------------------------- */

static int write_piece(const void *data, size_t len, void *arg, struct error *err)
{
    return file_write_all(*(const int *)arg, data, len) == 0
               ? 0
               : error_set(err, "%s", strerror(errno));
}

/* A path that files of a state may have, and that can be removed. */
static bool is_path(const char *path)
{
    int deep = 0;

    for (const char *at = path; *at != '\0'; at++)
        deep += *at == '/';
    return s3_key_ok(path) && deep <= DEPTH_MAX;
}

static int get_one(struct store *store, const char *key, int64_t bytes, const char *path,
                   struct error *err)
{
    int rc, fd;

    if (!is_path(path))
        return error_set(err, "%s: an object of a name that no file can have",
                         error_path(path).text);
    if (store_open(store, err) != 0)
        return -1;
    fd = tree_make(store->dir, path, err);
    if (fd < 0)
        return -1;
    rc = s3_get(store->s3, key, bytes, write_piece, &fd, err) == S3_OK ? 0 : -1;
    close(fd);
    return rc;
}

/* A tenth of what is free stays free. */
static int check_room(const struct store *store, size_t count, double bytes, struct error *err)
{
    struct statvfs st;

    if (fstatvfs(store->dir, &st) != 0)
        return error_set(err, "the room for copies: %s", strerror(errno));
    return count <= FILES_MAX && bytes < (double)st.f_bavail * (double)st.f_frsize * 0.9
               ? 0
               : error_set(err, "s3://%s/%s: there is no room for copies of %zu objects",
                           store->where.bucket, store->where.prefix, count);
}

static int get_found(struct store *store, struct error *err)
{
    size_t prefix = strlen(store->where.prefix);
    double bytes = 0;
    int rc;

    for (size_t i = 0; i < store->count; i++)
        bytes += (double)store->found[i].bytes;
    rc = check_room(store, store->count, bytes, err);
    for (size_t i = 0; rc == 0 && i < store->count; i++)
        rc = get_one(store, store->found[i].key, store->found[i].bytes,
                     store->found[i].key + prefix, err);
    return rc;
}

/* The object whose name is the prefix. */
static int get_object(struct store *store, const char *to, char result[PATH_MAX], struct error *err)
{
    char key[S3_PREFIX_MAX + 2], etag[S3_ETAG_SIZE];
    const char *name;
    int64_t bytes;

    snprintf(key, sizeof(key), "%s", store->where.prefix);
    if (key[0] == '\0')
        return error_set(err, "s3://%s: the bucket is empty", store->where.bucket);
    key[strlen(key) - 1] = '\0';
    if (s3_size(store->s3, key, etag, &bytes, err) != S3_OK ||
        check_room(store, 1, (double)bytes, err) != 0)
        return -1;
    name = strrchr(key, '/') != NULL ? strrchr(key, '/') + 1 : key;
    snprintf(result, PATH_MAX, "%.2000s/%.2000s", to, name);
    return get_one(store, key, bytes, name, err);
}

int s3_foreign_get(struct s3_source *source, const char *url, const char *to, char result[PATH_MAX],
                   struct error *err)
{
    struct store store = {.source = source, .dir = -1};
    int rc = s3_place_parse(url, &store.where, err);

    if (rc == 0)
        rc = store_open(&store, err);
    if (rc == 0)
        rc = dir_make(to, err) == 0 ? open_dir(&store, to, err) : -1;
    if (rc == 0)
        rc = list(&store, err);
    snprintf(result, PATH_MAX, "%s", to);
    if (rc == 0)
        rc = store.count > 0 ? get_found(&store, err) : get_object(&store, to, result, err);
    store_close(&store);
    return rc;
}

/* ---- putting --------------------------------------------------------------------------------- */

static void saw_nothing(const void *data, size_t len, void *arg)
{
    (void)data;
    (void)len;
    (void)arg;
}

static int put_one(const char *path, int64_t bytes, void *arg, struct error *err)
{
    struct store *store = arg;
    char key[KEY_MAX];
    int rc, fd;

    if (snprintf(key, sizeof(key), "%s%s", store->where.prefix, path) > S3_KEY_MAX)
        return error_set(err, "%s: longer than %d bytes with its prefix", error_path(path).text,
                         S3_KEY_MAX);
    if (store_open(store, err) != 0)
        return -1;
    fd = tree_open(store->dir, path, &bytes, err);
    if (fd < 0)
        return -1;
    rc = s3_put_file(store->s3, key, fd, bytes, saw_nothing, NULL, err) == S3_OK ? 0 : -1;
    close(fd);
    return rc == 0 ? add_found(store, path, bytes, err) : -1;
}

int s3_foreign_put(struct s3_source *source, const char *from, const char *url, struct error *err)
{
    struct store store = {.source = source, .dir = -1};
    int rc = s3_place_parse(url, &store.where, err);

    if (rc == 0)
        rc = open_dir(&store, from, err);
    if (rc == 0)
        rc = tree_walk(store.dir, put_one, &store, err);
    if (rc == 0 && store.count == 0)
        rc = error_set(err, "the training has written no files");
    store_close(&store);
    return rc;
}

/* ---- taking ---------------------------------------------------------------------------------- */

/* What says of a state what is in it, this user writes. */
static int check_names(const struct store *store, struct error *err)
{
    size_t prefix = strlen(store->where.prefix);

    for (size_t i = 0; i < store->count; i++) {
        const char *name = store->found[i].key + prefix;

        if (!state_file_ok(name) || strncmp(name, GRANT_INCOMING, strlen(GRANT_INCOMING)) == 0)
            return error_set(err, "the trainer has written a file of a name that cannot be used");
    }
    return store->count > 0 ? 0 : error_set(err, "the training has written no files");
}

int s3_foreign_take(const char *url, const char *to, struct error *err)
{
    struct store store = {.dir = -1};
    int rc = s3_place_parse(url, &store.where, err);

    if (rc == 0)
        rc = store_open(&store, err);
    if (rc == 0)
        rc = open_dir(&store, to, err);
    if (rc == 0)
        rc = list(&store, err);
    if (rc == 0)
        rc = check_names(&store, err);
    if (rc == 0)
        rc = get_found(&store, err);
    store_close(&store);
    return rc;
}

int s3_foreign_clear(const char *url, struct error *err)
{
    struct store store = {.dir = -1};
    int rc = s3_place_parse(url, &store.where, err);

    if (rc == 0)
        rc = store_open(&store, err);
    if (rc == 0)
        rc = s3_give_up_below(store.s3, store.where.prefix, err) == S3_OK ? 0 : -1;
    if (rc == 0)
        rc = list(&store, err);
    for (size_t i = 0; rc == 0 && i < store.count; i++)
        rc = s3_delete(store.s3, store.found[i].key, err) == S3_OK ? 0 : -1;
    store_close(&store);
    return rc;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Objects on S3 of another user (s3_foreign.h). */
#include "fit/s3_foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/files.h"
#include "common/log.h"
#include "common/s3.h"
#include "common/stop.h"
#include "fit/put_list.h"
#include "fit/room.h"
#include "fit/s3_bucket_grant.h"
#include "lib/s3_place.h"
#include "state/tree.h"

#define SPARE     5  /* seconds that keys have to last */
#define AGAIN     10 /* … between two tries of new keys that cannot be used yet */
#define LOOK_NS   300000000L
#define KEY_MAX   (S3_KEY_MAX + 1)
#define LEFT_SAID 10 /* objects that stay, one line each */

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

/* The keys of a box that came, or this user's own. */
static int use(struct s3_source *source, struct s3_box *box, struct error *err)
{
    if (check_server(&box->account, err) != 0 ||
        (box->account.key == NULL && use_own(box, err) != 0))
        return -1;
    s3_box_clear(&source->box);
    source->box = *box;
    return 0;
}

/* A box that is for a process before this one is followed by another one. One that is refused is
 * looked at again, so it is refused each time. */
static int look(struct s3_source *source, struct error *err)
{
    char *text = file_read(source->path, S3_BOX_MAX, NULL, NULL);
    struct s3_box box;

    if (text == NULL || (source->text != NULL && strcmp(text, source->text) == 0)) {
        free(text);
        return 0;
    }
    if (s3_box_open(text, source->key, &box, NULL) == 0 && use(source, &box, err) != 0) {
        s3_box_clear(&box);
        free(text);
        return -1;
    }
    free(source->text);
    source->text = text;
    return 0;
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

/* The keys are its own: later ones may come meanwhile. */
struct session {
    struct s3_account account;
    struct s3 *s3;
    double until; /* they end by then */
};

/* Where objects are, and with which keys. */
struct store {
    struct s3_source *source; /* NULL: with this user's own */
    struct s3_place where;
    char prefix[S3_PREFIX_MAX + PUT_ATTEMPT_SIZE + 2]; /* of keys there */
    struct session *session;
    double tried; /* when later keys could not be used */
    int dir;      /* of the files */
    struct put_list put;
    json_object *wanted; /* names; NULL: all are */
    /* What a listing has found of these. */
    struct found {
        char *key;
        int64_t bytes;
    } * found;
    size_t count, room;
};

static int store_begin(struct store *store, const char *url, struct error *err)
{
    if (s3_place_parse(url, &store->where, err) != 0)
        return -1;
    snprintf(store->prefix, sizeof(store->prefix), "%s", store->where.prefix);
    return 0;
}

static void session_close(struct session *session)
{
    if (session == NULL)
        return;
    s3_close(session->s3);
    s3_account_clear(&session->account);
    free(session);
}

/* With keys that may open more than what the other user may. */
static int enter(const struct s3_source *source, struct s3 *s3, const struct s3_place *where,
                 struct error *err)
{
    char secret[S3_BOX_SECRET_SIZE];
    const struct s3_place place = s3_proof_place(where);
    const struct s3_bucket_asker asker = {.prefix = place.prefix,
                                          .sid = source->box.sid,
                                          .key_name = s3_box_key_name(source->key),
                                          .secret = secret,
                                          .unwanted = source->unwanted,
                                          .arg = source->arg};

    s3_box_key_secret(source->key, &place, source->box.sid, secret);
    s3_give_owner(s3);
    return s3_bucket_check_proof(s3, &asker, err);
}

static int begin(const struct store *store, struct session *session, struct error *err)
{
    const struct s3_limits limits = S3_LIMITS;
    const struct s3_source *source = store->source;

    if (source == NULL && s3_account_load(&session->account, err) != 0)
        return -1;
    if (source != NULL && s3_account_copy(&source->box.account, &session->account) != 0)
        return error_set(err, "out of memory");
    session->until = source != NULL ? source->box.until : 0;
    session->s3 = s3_open(&session->account, store->where.bucket, &limits, err);
    if (session->s3 == NULL)
        return -1;
    return source != NULL && source->box.sid[0] != '\0'
               ? enter(source, session->s3, &store->where, err)
               : 0;
}

/* NULL with err. */
static struct session *session_open(const struct store *store, struct error *err)
{
    struct session *session = calloc(1, sizeof(*session));

    if (session == NULL) {
        error_set(err, "out of memory");
        return NULL;
    }
    if (begin(store, session, err) == 0)
        return session;
    session_close(session);
    return NULL;
}

/* Is there no reason to try other keys now? */
static bool goes_on(const struct store *store, double now)
{
    const struct session *session = store->session;

    if (session == NULL)
        return false;
    return store->source == NULL || session->until >= store->source->box.until ||
           (session->until > now + SPARE && now < store->tried + AGAIN);
}

/* Also once more, with new keys. If they cannot be used yet, the old ones go on as long as they
 * last. */
static int store_open(struct store *store, struct error *err)
{
    struct session *session;
    double now;

    if (store->source != NULL && await_keys(store->source, err) != 0)
        return -1;
    now = (double)time(NULL);
    if (goes_on(store, now))
        return 0;
    session = session_open(store, err);
    if (session == NULL && store->session != NULL && store->session->until > now + SPARE) {
        store->tried = now;
        return 0;
    }
    session_close(store->session);
    store->session = session;
    return session != NULL ? 0 : -1;
}

static void store_close(struct store *store)
{
    session_close(store->session);
    for (size_t i = 0; i < store->count; i++)
        free(store->found[i].key);
    free(store->found);
    put_list_clear(&store->put);
    json_object_put(store->wanted);
    if (store->dir >= 0)
        close(store->dir);
}

static int add_found(struct store *store, const char *key, int64_t bytes, struct error *err)
{
    if (store->count == ROOM_FILES_MAX)
        return error_set(err, "s3://%s/%s: there are more than %d objects", store->where.bucket,
                         error_path(store->where.prefix).text, ROOM_FILES_MAX);
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

/* Each of the names once: what is left of them was not found. */
static bool is_wanted(struct store *store, const char *name)
{
    if (store->wanted == NULL)
        return true;
    if (json_object_object_get(store->wanted, name) == NULL)
        return false;
    json_object_object_del(store->wanted, name);
    return true;
}

/* What some clients make for a directory is no file. */
static int on_entry(const struct s3_entry *entry, void *arg, struct error *err)
{
    struct store *store = arg;
    size_t len = strlen(entry->key);

    if ((len > 0 && entry->key[len - 1] == '/' && entry->bytes == 0) ||
        !is_wanted(store, entry->key + strlen(store->prefix)))
        return 0;
    return add_found(store, entry->key, entry->bytes, err);
}

static int list(struct store *store, struct error *err)
{
    return s3_list(store->session->s3, store->prefix, false, on_entry, store, err) == S3_OK ? 0
                                                                                            : -1;
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
    return s3_key_ok(path) && deep <= TREE_DEPTH_MAX;
}

static int get_one(struct store *store, const char *key, int64_t bytes, const char *path,
                   struct error *err)
{
    int rc, fd;
    const struct s3_sink sink = {.take = write_piece, .arg = &fd};

    if (!is_path(path))
        return error_set(err, "%s: an object of a name that no file can have",
                         error_path(path).text);
    if (store_open(store, err) != 0)
        return -1;
    fd = tree_make(store->dir, path, err);
    if (fd < 0)
        return -1;
    rc = s3_get(store->session->s3, key, bytes, &sink, err) == S3_OK ? 0 : -1;
    close(fd);
    return rc;
}

static struct room *room_of(const struct store *store, struct room *own)
{
    return store->source != NULL && store->source->room != NULL ? store->source->room : own;
}

/* Is there room for all of them? */
static int check_room(const struct store *store, struct error *err)
{
    size_t prefix = strlen(store->prefix);
    struct room own = {0}, *room = room_of(store, &own);
    int rc = room_find(store->dir, room, err);

    for (size_t i = 0; rc == 0 && i < store->count; i++)
        rc = room_take(room, store->found[i].key + prefix, store->found[i].bytes, err);
    return rc;
}

static int get_found(struct store *store, struct error *err)
{
    size_t prefix = strlen(store->prefix);
    int rc = check_room(store, err);

    for (size_t i = 0; rc == 0 && i < store->count; i++)
        rc = get_one(store, store->found[i].key, store->found[i].bytes,
                     store->found[i].key + prefix, err);
    return rc;
}

/* The object whose name is the prefix. */
static int get_object(struct store *store, const char *to, char result[PATH_MAX], struct error *err)
{
    char key[sizeof(store->prefix)], etag[S3_ETAG_SIZE];
    const char *name;
    struct room own = {0}, *room = room_of(store, &own);
    int64_t bytes;

    snprintf(key, sizeof(key), "%s", store->prefix);
    if (key[0] == '\0')
        return error_set(err, "s3://%s: the bucket is empty", store->where.bucket);
    key[strlen(key) - 1] = '\0';
    name = strrchr(key, '/') != NULL ? strrchr(key, '/') + 1 : key;
    if (s3_size(store->session->s3, key, etag, &bytes, err) != S3_OK ||
        room_find(store->dir, room, err) != 0 || room_take(room, name, bytes, err) != 0)
        return -1;
    snprintf(result, PATH_MAX, "%.2000s/%.2000s", to, name);
    return get_one(store, key, bytes, name, err);
}

int s3_foreign_get(struct s3_source *source, const char *url, const char *to, char result[PATH_MAX],
                   struct error *err)
{
    struct store store = {.source = source, .dir = -1};
    int rc = store_begin(&store, url, err);

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

/* Each attempt has a place of its own: what one before it has put, or puts still, is not there. */
static int put_one(const char *path, int64_t bytes, void *arg, struct error *err)
{
    struct store *store = arg;
    char key[KEY_MAX];
    int rc, fd;

    if (snprintf(key, sizeof(key), "%s%s/%s", store->prefix, store->put.attempt, path) > S3_KEY_MAX)
        return error_set(err, "%s: longer than %d bytes with its prefix", error_path(path).text,
                         S3_KEY_MAX);
    if (store_open(store, err) != 0)
        return -1;
    fd = tree_open(store->dir, path, &bytes, err);
    if (fd < 0)
        return -1;
    rc = s3_put_file(store->session->s3, key, fd, bytes, saw_nothing, NULL, err) == S3_OK ? 0 : -1;
    close(fd);
    json_object_array_add(store->put.names, json_object_new_string(path));
    return rc;
}

/* It comes last, and says which attempt it was. */
static int put_list(struct store *store, struct error *err)
{
    char *text = put_list_text(&store->put, err), key[KEY_MAX];
    int rc = text != NULL ? store_open(store, err) : -1;

    snprintf(key, sizeof(key), "%s" PUT_LIST_FILE, store->prefix);
    if (rc == 0 &&
        s3_put_text(store->session->s3, key, text, strlen(text), NULL, NULL, err) != S3_OK)
        rc = -1;
    free(text);
    return rc;
}

int s3_foreign_put(struct s3_source *source, const char *from, const char *url, struct error *err)
{
    struct store store = {.source = source, .dir = -1};
    int rc = store_begin(&store, url, err);

    if (rc == 0)
        rc = open_dir(&store, from, err);
    put_list_begin(&store.put);
    if (rc == 0)
        rc = tree_walk(store.dir, put_one, &store, err);
    if (rc == 0)
        rc = put_list(&store, err);
    store_close(&store);
    return rc;
}

/* ---- taking ---------------------------------------------------------------------------------- */

static int read_list(struct store *store, struct error *err)
{
    char key[KEY_MAX], *text = NULL;
    size_t len = 0;
    int rc;

    snprintf(key, sizeof(key), "%s" PUT_LIST_FILE, store->prefix);
    if (s3_get_text(store->session->s3, key, PUT_LIST_MAX, &text, &len, NULL, err) != S3_OK)
        return error_prefix(err, "the list of what the trainer has put");
    rc = put_list_parse(text, len, &store->put, err);
    free(text);
    return rc;
}

/* The place of that attempt. */
static void enter_attempt(struct store *store)
{
    size_t len = strlen(store->prefix);

    snprintf(store->prefix + len, sizeof(store->prefix) - len, "%s/", store->put.attempt);
}

/* The names of the list as a set. */
static json_object *set_of(const struct store *store)
{
    json_object *set = json_object_new_object();

    for (size_t i = 0; i < json_object_array_length(store->put.names); i++)
        json_object_object_add(
            set, json_object_get_string(json_object_array_get_idx(store->put.names, i)),
            json_object_new_boolean(true));
    return set;
}

/* What the list names has to be there, and nothing else is looked at. */
static int list_wanted(struct store *store, struct error *err)
{
    const char *absent = NULL;

    store->wanted = set_of(store);
    if (list(store, err) != 0)
        return -1;
    json_object_object_foreach (store->wanted, name, value) {
        (void)value;
        absent = name;
    }
    return absent == NULL ? 0
                          : error_set(err, "the trainer has not put what it names: \"%s\"",
                                      error_value(absent).text);
}

int s3_foreign_take(const char *url, const char *to, struct error *err)
{
    struct store store = {.dir = -1};
    int rc = store_begin(&store, url, err);

    if (rc == 0)
        rc = store_open(&store, err);
    if (rc == 0)
        rc = open_dir(&store, to, err);
    if (rc == 0)
        rc = read_list(&store, err);
    if (rc == 0)
        enter_attempt(&store);
    if (rc == 0)
        rc = list_wanted(&store, err);
    if (rc == 0)
        rc = get_found(&store, err);
    store_close(&store);
    return rc;
}

/* ---- removing -------------------------------------------------------------------------------- */

struct clearing {
    char list[KEY_MAX]; /* a key that can be deleted, if any can */
    atomic_int left;    /* so many stay */
};

/* If the list can be deleted, the server is there and takes the keys: then it is a matter of this
 * one object, such as of a name that libcurl does not sign. Nobody waits for it. */
static int leave(struct s3 *s3, const char *key, void *arg, struct error *err)
{
    struct clearing *clearing = arg;
    struct error why = *err;

    if (s3_delete(s3, clearing->list, err) != S3_OK)
        return -1;
    if (atomic_fetch_add(&clearing->left, 1) < LEFT_SAID)
        log_error("%s stays: %s", error_path(key).text, why.text);
    return 0;
}

/* Whoever may not list uploads cannot end them either. */
static int clear(const struct store *store, struct clearing *clearing, struct error *err)
{
    struct s3 *s3 = store->session->s3;

    if (s3_give_up_below(s3, store->prefix, leave, clearing, err) != S3_OK &&
        leave(s3, store->prefix, clearing, err) != 0)
        return -1;
    return s3_delete_below(s3, store->prefix, leave, clearing, err) == S3_OK ? 0 : -1;
}

int s3_foreign_clear(const char *url, struct error *err)
{
    struct store store = {.dir = -1};
    struct clearing clearing = {.left = 0};
    int rc = store_begin(&store, url, err);

    if (rc == 0)
        rc = store_open(&store, err);
    snprintf(clearing.list, sizeof(clearing.list), "%s" PUT_LIST_FILE, store.prefix);
    if (rc == 0)
        rc = clear(&store, &clearing, err);
    if (clearing.left > LEFT_SAID)
        log_error("%s: %d objects stay", error_path(url).text, clearing.left);
    store_close(&store);
    return rc;
}

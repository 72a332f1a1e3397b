/* SPDX-License-Identifier: GPL-2.0-or-later */
/* States below a prefix of a bucket (place.h).
 *
 * S3 cannot rename. So a writer first claims a number, by a small object that nobody else can put
 * then, puts the files where they stay, and complete.json last. Its claim must still be there at
 * that time: whoever removes what a writer has left replaces the claim first, and deletes it
 * last. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sodium.h>

#include "common/stop.h"
#include "lib/s3_place.h"
#include "state/place_private.h"

#define POINTER_MAX 64
#define CLAIM_BYTES 16
#define CLEAN_UP    20 /* seconds, after a signal or the end of the time */

struct bucket {
    struct s3_account account;
    struct s3_place where;
    struct s3 *s3;
    char name[STATE_NAME_SIZE]; /* the state that is being written; "": none */
    char claim[S3_ETAG_SIZE];
};

/* A key below the prefix: "000007/a", in a buffer of S3_KEY_MAX + 1 bytes. */
static int make_key(const struct bucket *own, char *key, const char *state, const char *file,
                    struct error *err)
{
    int len = snprintf(key, S3_KEY_MAX + 1, "%s%s%s", own->where.prefix, state, file);

    return len <= S3_KEY_MAX ? 0
                             : error_set(err, "%s: longer than %d bytes with its prefix",
                                         error_path(file).text, S3_KEY_MAX);
}

static void close_bucket(void *arg)
{
    struct bucket *own = arg;

    s3_close(own->s3);
    s3_account_clear(&own->account);
    free(own);
}

/* The secret of a key is not sent, but states are, and may hold pickles, which are programs. */
static void warn_if_open(const struct bucket *own)
{
    if (own->account.endpoint != NULL && s3_endpoint_is_open(own->account.endpoint))
        fprintf(stderr,
                "%s: note: %s is not encrypted: whoever is on the way can read and change states; "
                "use https\n",
                program_invocation_short_name, own->account.endpoint);
}

void *place_bucket_open(const char *url, const struct s3_limits *limits, struct error *err)
{
    struct bucket *own = calloc(1, sizeof(*own));

    if (own == NULL) {
        error_set(err, "out of memory");
        return NULL;
    }
    if (s3_place_parse(url, &own->where, err) == 0 && s3_account_load(&own->account, err) == 0)
        own->s3 = s3_open(&own->account, own->where.bucket, limits, err);
    if (own->s3 != NULL) {
        warn_if_open(own);
        return own;
    }
    close_bucket(own);
    return NULL;
}

/* NULL with err. */
static struct s3 *lane_of(struct bucket *own, int lane, struct error *err)
{
    struct s3 *s3 = s3_lane(own->s3, lane);

    if (s3 == NULL)
        error_set(err, "out of memory");
    return s3;
}

/* ---- what is there --------------------------------------------------------------------------- */

struct listing {
    struct states *states;
    size_t prefix; /* bytes in front of what is looked at */
};

static int add_entry(const struct s3_entry *entry, void *arg, struct error *err)
{
    struct listing *listing = arg;
    char name[STATE_NAME_SIZE + 16];
    size_t len = strlen(entry->key + listing->prefix);

    if (len == 0 || len >= sizeof(name))
        return 0;
    snprintf(name, sizeof(name), "%s", entry->key + listing->prefix);
    if (entry->bytes < 0)
        name[len - 1] = '\0'; /* the slash */
    return states_add(listing->states, name, err);
}

/* The sizes of the files of a state, for states_judge(). */
struct sizes {
    struct state_manifest *found;
    size_t prefix;
};

static int add_size(const struct s3_entry *entry, void *arg, struct error *err)
{
    struct sizes *sizes = arg;
    const char *name = entry->key + sizes->prefix;

    if (!state_file_ok(name)) /* it is in no manifest */
        return 0;
    return state_manifest_add(sizes->found, name, entry->bytes, NULL, err);
}

static int64_t size_of(const char *file, void *arg)
{
    const struct sizes *sizes = arg;
    const struct state_file *found = state_manifest_find(sizes->found, file);

    return found != NULL ? found->bytes : -1;
}

static int judge_files(struct bucket *own, struct state *state, const char *text, size_t len,
                       struct error *err)
{
    struct sizes sizes = {.found = state_manifest_create()};
    char prefix[S3_KEY_MAX + 1];
    int rc = -1;

    if (sizes.found == NULL)
        return error_set(err, "out of memory");
    if (make_key(own, prefix, state->name, "/", err) == 0) {
        sizes.prefix = strlen(prefix);
        rc = s3_list(own->s3, prefix, false, add_size, &sizes, err) == S3_OK ? 0 : -1;
    }
    /* Strange files there do not matter: the names that count are unique. */
    if (rc == 0 && state_manifest_sort(sizes.found, err) != 0)
        states_judge_torn(state, err->text);
    else if (rc == 0)
        states_judge(state, text, len, size_of, &sizes);
    state_manifest_destroy(sizes.found);
    return rc;
}

static int judge(struct bucket *own, struct states *states, struct state *state, struct error *err)
{
    char key[S3_KEY_MAX + 1];
    char *text = NULL;
    size_t len = 0;
    enum s3_result result;
    int rc = 0;

    if (make_key(own, key, state->name, "/" STATE_MANIFEST, err) != 0)
        return -1;
    result = s3_get_text(own->s3, key, STATE_MANIFEST_MAX, &text, &len, NULL, err);
    if (result == S3_ABSENT)
        state->kind = STATE_IS_PARTIAL; /* without a claim, too: a writer who was removed */
    else if (result != S3_OK)
        rc = -1;
    else
        rc = judge_files(own, state, text, len, err);
    if (rc == 0 && text != NULL)
        rc = states_weigh(states, state, len, err);
    free(text);
    return rc;
}

/* *etag is "" where there is no pointer. */
static int read_pointer(struct bucket *own, int64_t *number, char etag[S3_ETAG_SIZE],
                        struct error *err)
{
    char key[S3_KEY_MAX + 1];
    char *text = NULL;
    size_t len = 0;
    enum s3_result result;

    *number = 0;
    etag[0] = '\0';
    if (make_key(own, key, STATE_POINTER, "", err) != 0)
        return -1;
    result = s3_get_text(own->s3, key, POINTER_MAX, &text, &len, etag, err);
    if (result == S3_OK)
        *number = state_pointer_number(text, len);
    free(text);
    return result == S3_OK || result == S3_ABSENT ? 0 : -1;
}

static int list_bucket(void *arg, struct states *states, struct error *err)
{
    struct bucket *own = arg;
    struct listing listing = {.states = states, .prefix = strlen(own->where.prefix)};
    char etag[S3_ETAG_SIZE];

    if (s3_list(own->s3, own->where.prefix, true, add_entry, &listing, err) != S3_OK)
        return -1;
    if (states->count == 0)
        return 0;
    states_sort(states);
    for (size_t i = 0; i < states->count; i++)
        if (states->list[i].kind == STATE_IS_TORN && states->list[i].why == NULL &&
            judge(own, states, &states->list[i], err) != 0)
            return -1;
    return read_pointer(own, &states->current, etag, err);
}

/* ---- writing a state ------------------------------------------------------------------------- */

static void describe_claim(char text[2 * CLAIM_BYTES + 2])
{
    unsigned char random[CLAIM_BYTES];

    randombytes_buf(random, sizeof(random));
    sodium_bin2hex(text, 2 * CLAIM_BYTES + 1, random, sizeof(random));
    strcat(text, "\n");
}

static enum s3_result claim(struct bucket *own, const char *name,
                            const struct s3_condition *condition, struct error *err)
{
    char key[S3_KEY_MAX + 1], text[2 * CLAIM_BYTES + 2];

    if (make_key(own, key, name, STATE_PARTIAL, err) != 0)
        return S3_FAILED;
    describe_claim(text);
    return s3_put_text(own->s3, key, text, strlen(text), condition, own->claim, err);
}

static int release(struct bucket *own, const char *name, struct error *err)
{
    char key[S3_KEY_MAX + 1];

    return make_key(own, key, name, STATE_PARTIAL, err) == 0 &&
                   s3_delete(own->s3, key, err) == S3_OK
               ? 0
               : -1;
}

static int found_something(const struct s3_entry *entry, void *arg, struct error *err)
{
    bool *found = arg;

    (void)entry;
    (void)err;
    *found = true;
    return 0;
}

/* Somebody may have written this state, and released it, since the number was chosen. */
static enum place_result check_free(struct bucket *own, struct error *err)
{
    char key[S3_KEY_MAX + 1];
    bool found = false;

    if (make_key(own, key, own->name, "/", err) != 0 ||
        s3_list(own->s3, key, true, found_something, &found, err) != S3_OK)
        return PLACE_FAILED;
    return found ? PLACE_CLASH : PLACE_OK;
}

static enum place_result begin_state(void *arg, int64_t number, struct error *err)
{
    const struct s3_condition absent = {.absent = true};
    struct bucket *own = arg;
    enum place_result result;

    state_name(own->name, number);
    switch (claim(own, own->name, &absent, err)) {
    case S3_OK:
        result = check_free(own, err);
        if (result != PLACE_OK)
            release(own, own->name, NULL);
        break;
    case S3_CLASH:
        result = PLACE_CLASH;
        break;
    default:
        result = PLACE_FAILED;
    }
    if (result != PLACE_OK)
        own->name[0] = '\0';
    return result;
}

static int put_file(void *arg, int lane, const char *name, int fd, int64_t bytes,
                    void (*saw)(const void *data, size_t len, void *arg), void *saw_arg,
                    struct error *err)
{
    struct bucket *own = arg;
    struct s3 *s3 = lane_of(own, lane, err);
    char key[S3_KEY_MAX + 1], state[STATE_NAME_SIZE + 1];

    snprintf(state, sizeof(state), "%s/", own->name);
    if (s3 == NULL || make_key(own, key, state, name, err) != 0)
        return -1;
    return s3_put_file(s3, key, fd, bytes, saw, saw_arg, err) == S3_OK ? 0 : -1;
}

/* Is the number still ours? */
static int check_claim(struct bucket *own, struct error *err)
{
    char key[S3_KEY_MAX + 1], etag[S3_ETAG_SIZE];
    enum s3_result result;

    if (make_key(own, key, own->name, STATE_PARTIAL, err) != 0)
        return -1;
    result = s3_head(own->s3, key, etag, err);
    if (result == S3_FAILED)
        return -1;
    if (result == S3_OK && strcmp(etag, own->claim) == 0)
        return 0;
    own->name[0] = '\0'; /* what is there belongs to somebody else */
    return error_set(err, "another writer has taken this state for one of a dead writer, and has "
                          "removed it");
}

static int finish_state(void *arg, const char *manifest, struct error *err)
{
    const struct s3_condition absent = {.absent = true};
    struct bucket *own = arg;
    char key[S3_KEY_MAX + 1];

    if (check_claim(own, err) != 0 || make_key(own, key, own->name, "/" STATE_MANIFEST, err) != 0 ||
        s3_put_text(own->s3, key, manifest, strlen(manifest), &absent, NULL, err) != S3_OK)
        return -1;
    release(own, own->name, NULL); /* beside a complete state it says nothing any more */
    own->name[0] = '\0';
    return 0;
}

/* ---- removing -------------------------------------------------------------------------------- */

/* The claim of this process must be there: a writer that lives notices that it has lost the number,
 * and nobody else begins there. The manifest of a complete state goes first, so that what is left
 * is no state. */
static int remove_claimed(struct bucket *own, const char *name, struct error *err)
{
    char key[S3_KEY_MAX + 1];

    if (make_key(own, key, name, "/" STATE_MANIFEST, err) != 0 ||
        s3_delete(own->s3, key, err) != S3_OK || make_key(own, key, name, "/", err) != 0 ||
        s3_delete_below(own->s3, key, NULL, NULL, err) != S3_OK)
        return -1;
    /* Whoever may not list them cannot end them either. */
    s3_give_up_below(own->s3, key, NULL, NULL, NULL);
    if (stop_asked())
        return error_set(err, "stopped, or out of time");
    return release(own, name, err);
}

static void give_up_state(void *arg)
{
    struct bucket *own = arg;

    if (own->name[0] == '\0')
        return;
    if (stop_asked())
        stop_watch(CLEAN_UP);
    if (check_claim(own, NULL) == 0)
        remove_claimed(own, own->name, NULL);
    own->name[0] = '\0';
}

static int remove_state(void *arg, const struct state *state, struct error *err)
{
    struct bucket *own = arg;

    if (claim(own, state->name, NULL, err) != S3_OK)
        return -1;
    return remove_claimed(own, state->name, err);
}

/* ---- others ---------------------------------------------------------------------------------- */

static enum place_result use_state(void *arg, int64_t from, const struct state *state,
                                   struct error *err)
{
    struct bucket *own = arg;
    char key[S3_KEY_MAX + 1], etag[S3_ETAG_SIZE], text[STATE_NAME_SIZE + 1];
    struct s3_condition condition = {.absent = true};
    enum s3_result result;
    int64_t found;

    if (make_key(own, key, STATE_POINTER, "", err) != 0 ||
        read_pointer(own, &found, etag, err) != 0)
        return PLACE_FAILED;
    if (etag[0] != '\0')
        condition = (struct s3_condition){.etag = etag};
    if (found != from) {
        error_set(err, "%s: somebody else has changed it meanwhile", key);
        return PLACE_CLASH;
    }
    snprintf(text, sizeof(text), "%s\n", state->name);
    result = s3_put_text(own->s3, key, text, strlen(text), &condition, NULL, err);
    /* What had the ETag was removed: S3 calls that absent. */
    if (result == S3_ABSENT)
        result = S3_CLASH;
    return result == S3_OK ? PLACE_OK : result == S3_CLASH ? PLACE_CLASH : PLACE_FAILED;
}

static int take_file(void *arg, int lane, const struct state *state, const struct state_file *file,
                     const struct s3_sink *sink, struct error *err)
{
    struct bucket *own = arg;
    struct s3 *s3 = lane_of(own, lane, err);
    char key[S3_KEY_MAX + 1], prefix[STATE_NAME_SIZE + 1];

    snprintf(prefix, sizeof(prefix), "%s/", state->name);
    if (s3 == NULL || make_key(own, key, prefix, file->name, err) != 0)
        return -1;
    return s3_get(s3, key, file->bytes, sink, err) == S3_OK ? 0 : -1;
}

const struct place_kind place_bucket = {
    .close = close_bucket,
    .list = list_bucket,
    .begin = begin_state,
    .alone = S3_PART_BYTES,
    .put = put_file,
    .finish = finish_state,
    .give_up = give_up_state,
    .use = use_state,
    .take = take_file,
    .remove = remove_state,
};

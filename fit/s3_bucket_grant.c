/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Access to S3 by policies (s3_bucket_grant.h). */
#include "fit/s3_bucket_grant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/s3_bucket_policy.h"
#include "fit/s3_box.h"

#define TRIES          5
#define PROOF_MAX      256
#define PROOF_KEY_SIZE (S3_PREFIX_MAX + 2 + S3_SID_MAX + sizeof(S3_PROOF) + sizeof(S3_ASKED))
#define PLACE_MAX      (S3_BUCKET_MAX + S3_PREFIX_MAX + 4)
#define PROOF_NS       500000000L /* between two looks at a proof … */
#define PROOF_LOOKS    240        /* … so many */

static const struct s3_limits limits = {.connect = 5, .stall = 5, .tries = 3, .answer = 20};
/* The trainer ends a training if it hears nothing meanwhile; and it is tried again. */
static const struct s3_limits hurry = {.connect = 5, .stall = 5, .tries = 1, .answer = 10};

struct work {
    const struct s3_bucket_order *order; /* NULL: take back */
    const struct s3_scope *scope;
    const char *sid;
    struct s3_place place;
    bool first; /* of its bucket: the policy is changed */
};

/* ---- proofs ---------------------------------------------------------------------------------- */

static void proof_key(char key[PROOF_KEY_SIZE], const char *prefix, const char *sid,
                      const char *behind)
{
    snprintf(key, PROOF_KEY_SIZE, "%s" S3_PROOF "%.*s%s", prefix, S3_SID_MAX, sid, behind);
}

/* "KEY SECRET", as it is asked for, and as the proof has it then. */
static void describe(const struct s3_bucket_asker *asker, char text[PROOF_MAX])
{
    snprintf(text, PROOF_MAX, "%s %s", asker->key_name, asker->secret);
}

/* 1: it is there, and has the secret; 0: it is of this key. -1 with err. */
static int look_at_proof(struct s3 *s3, const struct s3_bucket_asker *asker, struct error *err)
{
    char key[PROOF_KEY_SIZE], wanted[PROOF_MAX], *text = NULL;
    size_t len = 0, name = strlen(asker->key_name);
    int rc;

    proof_key(key, asker->prefix, asker->sid, "");
    if (s3_get_text(s3, key, PROOF_MAX, &text, &len, NULL, err) != S3_OK)
        return -1;
    describe(asker, wanted);
    if (strcmp(text, wanted) == 0)
        rc = 1;
    else if (strncmp(text, asker->key_name, name) == 0 && (text[name] == ' ' || text[name] == '\0'))
        rc = 0;
    else
        rc = error_set(err, "%s is another's", key);
    free(text);
    return rc;
}

static int ask(struct s3 *s3, const struct s3_bucket_asker *asker, struct error *err)
{
    char key[PROOF_KEY_SIZE], text[PROOF_MAX];

    proof_key(key, asker->prefix, asker->sid, S3_ASKED);
    describe(asker, text);
    return s3_put_text(s3, key, text, strlen(text), NULL, NULL, err) == S3_OK ? 0 : -1;
}

static int await_proof(struct s3 *s3, const struct s3_bucket_asker *asker, struct error *err)
{
    const struct timespec pause = {.tv_nsec = PROOF_NS};
    int rc = look_at_proof(s3, asker, err);

    if (rc == 0 && ask(s3, asker, err) != 0)
        return -1;
    for (int i = 0; rc == 0 && i < PROOF_LOOKS; i++) {
        rc = look_at_proof(s3, asker, err);
        if (rc == 0 && asker->unwanted(asker->arg))
            break;
        if (rc == 0)
            nanosleep(&pause, NULL);
    }
    if (rc == 0)
        error_set(err, "nobody has read there what was put beside %s" S3_PROOF "%s",
                  error_path(asker->prefix).text, asker->sid);
    return rc > 0 ? 0 : -1;
}

int s3_bucket_check_proof(struct s3 *s3, const struct s3_bucket_asker *asker, struct error *err)
{
    return await_proof(s3, asker, err) == 0
               ? 0
               : error_prefix(err, "the bucket does not let this trainer in");
}

/* The proof, with what the replica of that key has asked for, if that can be read. */
static bool read_asked(struct s3 *s3, const char *prefix, const char *sid, const char *key_name,
                       char text[PROOF_MAX])
{
    char key[PROOF_KEY_SIZE], *asked = NULL;
    size_t len = 0, name = strlen(key_name);
    bool is;

    proof_key(key, prefix, sid, S3_ASKED);
    snprintf(text, PROOF_MAX, "%s", key_name);
    is = s3_get_text(s3, key, PROOF_MAX - 1, &asked, &len, NULL, NULL) == S3_OK &&
         strncmp(asked, key_name, name) == 0 && asked[name] == ' ' &&
         strspn(asked + name + 1, "0123456789abcdef") == S3_BOX_SECRET_SIZE - 1 &&
         strlen(asked) == name + S3_BOX_SECRET_SIZE;
    if (is)
        snprintf(text, PROOF_MAX, "%s", asked);
    free(asked);
    return is;
}

/* ---- one bucket ------------------------------------------------------------------------------ */

static size_t count_own(json_object *policy, const char *sid)
{
    json_object *list = json_object_object_get(policy, "Statement");
    size_t before = json_object_array_length(list);

    return before - s3_policy_remove(policy, sid);
}

/* Somebody else may write the policy at the same time, and so undo this. 1 with err: that is so. */
static int is_written(struct s3 *s3, const struct work *work, size_t wanted, struct error *err)
{
    json_object *policy = s3_bucket_policy_read(s3, err);
    bool same = policy != NULL && count_own(policy, work->sid) == wanted;

    json_object_put(policy);
    if (policy == NULL)
        return -1;
    if (same)
        return 0;
    error_set(err, "the policy of bucket %s is changed by others at the same time",
              work->place.bucket);
    return 1;
}

static int change(struct s3 *s3, const struct work *work, struct error *err)
{
    json_object *policy = s3_bucket_policy_read(s3, err), *list, *own;
    size_t removed, wanted = 0;
    int rc = 0;

    if (policy == NULL)
        return -1;
    removed = count_own(policy, work->sid);
    list = json_object_object_get(policy, "Statement");
    if (work->order != NULL) {
        own = s3_bucket_statements(work->scope, work->place.bucket, work->order->arn, work->sid,
                                   work->order->until);
        wanted = json_object_array_length(own);
        for (size_t i = 0; i < wanted; i++)
            json_object_array_add(list, json_object_get(json_object_array_get_idx(own, i)));
        json_object_put(own);
    }
    if (removed > 0 || wanted > 0)
        rc = s3_bucket_policy_write(s3, policy, err);
    json_object_put(policy);
    return rc == 0 && (removed > 0 || wanted > 0) ? is_written(s3, work, wanted, err) : rc;
}

static int remove_proof(struct s3 *s3, const char *prefix, const char *sid, struct error *err)
{
    char key[PROOF_KEY_SIZE], asked[PROOF_KEY_SIZE];

    proof_key(key, prefix, sid, "");
    proof_key(asked, prefix, sid, S3_ASKED);
    return s3_delete(s3, key, err) == S3_OK && s3_delete(s3, asked, err) == S3_OK ? 0 : -1;
}

static int put_proof(struct s3 *s3, const char *prefix, const char *sid, const char *text,
                     struct error *err)
{
    char key[PROOF_KEY_SIZE];

    proof_key(key, prefix, sid, "");
    return s3_put_text(s3, key, text, strlen(text), NULL, NULL, err) == S3_OK ? 0 : -1;
}

static int set_proof(struct s3 *s3, const struct work *work, struct error *err)
{
    char text[PROOF_MAX];

    if (work->order == NULL)
        return remove_proof(s3, work->place.prefix, work->sid, err);
    read_asked(s3, work->place.prefix, work->sid, work->order->key_name, text);
    return put_proof(s3, work->place.prefix, work->sid, text, err);
}

static int do_place(const struct s3_account *account, const struct work *work, struct error *err)
{
    struct s3 *s3 = s3_open(account, work->place.bucket, &limits, err);
    int rc = s3 != NULL ? set_proof(s3, work, err) : -1;
    bool again = rc == 0 && work->first;

    for (int i = 0; again && i < TRIES; i++) {
        rc = change(s3, work, err);
        again = rc > 0;
    }
    s3_close(s3);
    return rc == 0 ? 0 : -1;
}

/* ---- all ------------------------------------------------------------------------------------- */

json_object *s3_bucket_places(const struct s3_scope *scope)
{
    struct s3_place places[S3_READS_MAX + 1];
    int count = s3_proof_places(scope, places);
    json_object *array = json_object_new_array();

    for (int i = 0; i < count; i++) {
        char text[PLACE_MAX];

        snprintf(text, sizeof(text), "%s%s%s", places[i].bucket,
                 places[i].prefix[0] != '\0' ? "/" : "", places[i].prefix);
        json_object_array_add(array, json_object_new_string(text));
    }
    return array;
}

/* Earlier versions have noted buckets: their proofs have no prefix. */
static struct s3_place place_at(json_object *places, size_t i)
{
    const char *text = json_object_get_string(json_object_array_get_idx(places, i));
    struct s3_place place = {"", ""};

    if (text == NULL)
        return place;
    snprintf(place.bucket, sizeof(place.bucket), "%.*s", (int)strcspn(text, "/"), text);
    if (strchr(text, '/') != NULL)
        snprintf(place.prefix, sizeof(place.prefix), "%s", strchr(text, '/') + 1);
    return place;
}

static bool is_first(json_object *places, size_t i)
{
    const struct s3_place place = place_at(places, i);

    for (size_t k = 0; k < i; k++)
        if (strcmp(place_at(places, k).bucket, place.bucket) == 0)
            return false;
    return true;
}

/* Who cannot give all of it is soon asked again. What is taken back is tried in each of them. */
static int do_all(const struct s3_account *account, json_object *places, struct work *work,
                  struct error *err)
{
    bool gives = work->order != NULL;
    int rc = 0;

    for (size_t i = 0; i < json_object_array_length(places) && (rc == 0 || !gives); i++) {
        struct error why = {""};

        work->place = place_at(places, i);
        work->first = is_first(places, i);
        if (do_place(account, work, &why) == 0)
            continue;
        if (rc == 0)
            *err = why;
        rc = -1;
    }
    return rc;
}

int s3_bucket_give(const struct s3_bucket_order *order, const struct s3_scope *scope,
                   struct error *err)
{
    struct work work = {.order = order, .scope = scope, .sid = order->sid};
    json_object *places = s3_bucket_places(scope);
    int rc = do_all(order->account, places, &work, err);

    json_object_put(places);
    return rc;
}

int s3_bucket_take_back(const struct s3_account *account, json_object *places, const char *sid,
                        struct error *err)
{
    struct work work = {.sid = sid};

    return json_object_is_type(places, json_type_array) ? do_all(account, places, &work, err) : 0;
}

static bool answer_one(const struct s3_account *account, const struct s3_place *place,
                       const char *sid, const char *key_name)
{
    struct s3 *s3 = s3_open(account, place->bucket, &hurry, NULL);
    char text[PROOF_MAX];
    bool done = s3 != NULL && read_asked(s3, place->prefix, sid, key_name, text) &&
                put_proof(s3, place->prefix, sid, text, NULL) == 0;

    s3_close(s3);
    return done;
}

void s3_bucket_answer(const struct s3_account *account, json_object *places, const char *sid,
                      const char *key_name)
{
    for (size_t i = json_object_array_length(places); i-- > 0;) {
        const struct s3_place place = place_at(places, i);

        if (answer_one(account, &place, sid, key_name))
            json_object_array_del_idx(places, i, 1);
    }
}

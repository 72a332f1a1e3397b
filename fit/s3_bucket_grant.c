/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Access to S3 by policies (s3_bucket_grant.h). */
#include "fit/s3_bucket_grant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/s3_bucket_policy.h"

#define TRIES     5
#define PROOF_MAX 128

struct work {
    const struct s3_bucket_order *order; /* NULL: take back */
    const struct s3_scope *scope;
    const char *sid, *bucket;
};

/* ---- proofs ---------------------------------------------------------------------------------- */

static void proof_key(char *key, size_t size, const char *sid)
{
    snprintf(key, size, S3_PROOF "%s", sid);
}

int s3_bucket_check_proof(struct s3 *s3, const char *sid, const char *key_name, struct error *err)
{
    char key[S3_SID_MAX + sizeof(S3_PROOF)], *text = NULL;
    size_t len = 0;
    bool same;

    proof_key(key, sizeof(key), sid);
    if (s3_get_text(s3, key, PROOF_MAX, &text, &len, NULL, err) != S3_OK)
        return error_prefix(err, "the bucket does not let this trainer in");
    same = strcmp(text, key_name) == 0;
    free(text);
    return same ? 0
                : error_set(err, "the bucket does not let this trainer in: %s is another's", key);
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
    error_set(err, "the policy of bucket %s is changed by others at the same time", work->bucket);
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
        own = s3_bucket_statements(work->scope, work->bucket, work->order->arn, work->sid,
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

static int set_proof(struct s3 *s3, const struct work *work, struct error *err)
{
    char key[S3_SID_MAX + sizeof(S3_PROOF)];

    proof_key(key, sizeof(key), work->sid);
    if (work->order == NULL)
        return s3_delete(s3, key, err) == S3_OK ? 0 : -1;
    return s3_put_text(s3, key, work->order->key_name, strlen(work->order->key_name), NULL, NULL,
                       err) == S3_OK
               ? 0
               : -1;
}

static int do_bucket(const struct s3_account *account, const struct work *work, struct error *err)
{
    const struct s3_limits limits = {.connect = 5, .stall = 5, .tries = 3};
    struct s3 *s3 = s3_open(account, work->bucket, &limits, err);
    int rc = s3 != NULL ? set_proof(s3, work, err) : -1;
    bool again = rc == 0;

    for (int i = 0; again && i < TRIES; i++) {
        rc = change(s3, work, err);
        again = rc > 0;
    }
    s3_close(s3);
    return rc == 0 ? 0 : -1;
}

/* ---- all ------------------------------------------------------------------------------------- */

static void add_name(json_object *names, const char *bucket)
{
    for (size_t i = 0; i < json_object_array_length(names); i++)
        if (strcmp(json_object_get_string(json_object_array_get_idx(names, i)), bucket) == 0)
            return;
    json_object_array_add(names, json_object_new_string(bucket));
}

json_object *s3_bucket_names(const struct s3_scope *scope)
{
    json_object *names = json_object_new_array();

    for (int i = 0; i < scope->reads; i++)
        add_name(names, scope->read[i].bucket);
    if (scope->writes)
        add_name(names, scope->write.bucket);
    return names;
}

/* Who cannot give all of it is soon asked again. What is taken back is tried in each of them. */
static int do_all(const struct s3_account *account, json_object *buckets, struct work *work,
                  struct error *err)
{
    bool gives = work->order != NULL;
    int rc = 0;

    for (size_t i = 0; i < json_object_array_length(buckets) && (rc == 0 || !gives); i++) {
        struct error why = {""};

        work->bucket = json_object_get_string(json_object_array_get_idx(buckets, i));
        if (do_bucket(account, work, &why) == 0)
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
    json_object *buckets = s3_bucket_names(scope);
    int rc = do_all(order->account, buckets, &work, err);

    json_object_put(buckets);
    return rc;
}

int s3_bucket_take_back(const struct s3_account *account, json_object *buckets, const char *sid,
                        struct error *err)
{
    struct work work = {.sid = sid};

    return json_object_is_type(buckets, json_type_array) ? do_all(account, buckets, &work, err) : 0;
}

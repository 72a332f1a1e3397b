/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Access to S3 by the policies of buckets, for a user of the server: until a time, and until it is
 * taken back. In each bucket lies a proof, that is an object with the name of the key of the
 * replica that trains: so that replica knows that whoever sends it there may write there, and does
 * not open with its own keys what that one may not open. */
#ifndef FIT_S3_BUCKET_GRANT_H
#define FIT_S3_BUCKET_GRANT_H

#include <json-c/json.h>

#include "common/s3.h"
#include "lib/error.h"
#include "lib/s3_policy.h"

struct s3_bucket_order {
    const struct s3_account *account; /* of the owner of the buckets */
    const char *arn;                  /* who gets access */
    const char *sid;                  /* letters and digits, of this fit */
    const char *key_name;             /* for the proof */
    double until;
};

/* The names of the buckets of a scope, a new array. */
json_object *s3_bucket_names(const struct s3_scope *scope);

/* Give it, or have it last longer. -1 with err: some of it may be given. */
int s3_bucket_give(const struct s3_bucket_order *order, const struct s3_scope *scope,
                   struct error *err);
/* Take it back in these buckets. All are tried; -1 with the first err. */
int s3_bucket_take_back(const struct s3_account *account, json_object *buckets, const char *sid,
                        struct error *err);

/* Is there a proof for that key? -1 with err. */
int s3_bucket_check_proof(struct s3 *s3, const char *sid, const char *key_name, struct error *err);

#endif

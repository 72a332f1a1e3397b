/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Access to S3 by the policies of buckets, for a user of the server: until a time, and until it is
 * taken back.
 *
 * The replica that trains does not open with its own keys what the one may not open who sends it
 * there. Beside each place (s3_proof_place) lies a proof, that is an object with the name of the
 * key of that replica: whoever has put that may write there. The replica puts a secret beside it,
 * which then is in the proof, too: whoever has put that may read there.
 *
 * A list of places is an array of texts "BUCKET/PREFIX"; "BUCKET" is one, too. */
#ifndef FIT_S3_BUCKET_GRANT_H
#define FIT_S3_BUCKET_GRANT_H

#include <stdbool.h>

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

/* The places where the proofs for a scope are, a new array. */
json_object *s3_bucket_places(const struct s3_scope *scope);

/* Give it, or have it last longer. -1 with err: some of it may be given. */
int s3_bucket_give(const struct s3_bucket_order *order, const struct s3_scope *scope,
                   struct error *err);
/* Take it back at these places, and in their buckets. All are tried; -1 with the first err. */
int s3_bucket_take_back(const struct s3_account *account, json_object *places, const char *sid,
                        struct error *err);

/* Put what the replica with that key has asked for into the proofs at these places. Those where
 * that is done are taken out of the array; the others are to be tried again. */
void s3_bucket_answer(const struct s3_account *account, json_object *places, const char *sid,
                      const char *key_name);

/* Who asks for a proof. */
struct s3_bucket_asker {
    const char *prefix; /* of the proof's place */
    const char *sid, *key_name;
    const char *secret;          /* of that place and this process */
    bool (*unwanted)(void *arg); /* the training is: then nobody waits for the proof */
    void *arg;
};

/* Waits for the proof, for a while. -1 with err. */
int s3_bucket_check_proof(struct s3 *s3, const struct s3_bucket_asker *asker, struct error *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What somebody may do on S3 who trains for somebody else, as policies. Pure.
 *
 * The name of whom it is for says how it is given: a role (arn:aws:iam::ACCOUNT:role/NAME) by
 * session credentials of STS that this policy limits, a user (arn:aws:iam::ACCOUNT:user/NAME) by
 * statements in the policies of the buckets. */
#ifndef ELASTIC_S3_POLICY_H
#define ELASTIC_S3_POLICY_H

#include <json-c/json.h>

#include "lib/error.h"
#include "lib/s3_place.h"

enum s3_grant_kind {
    S3_GRANT_NONE, /* it is no such name */
    S3_GRANT_STS,
    S3_GRANT_POLICY,
};

#define S3_ARN_MAX   512
#define S3_READS_MAX 4
#define S3_SID_MAX   64
#define S3_PROOF     ".elastic-fit-" /* the name of a proof; the sid of the fit follows */
#define S3_ASKED     ".asked"        /* … and this, of what the trainer asks for a proof of */

enum s3_grant_kind s3_grant_kind(const char *arn);

/* Places to read, and one to write. */
struct s3_scope {
    struct s3_place read[S3_READS_MAX];
    int reads;
    struct s3_place write;
    bool writes;
};

/* Where the proof for a place is: beside it, as it may be an object, and as others list what is
 * below it. prefix: "", or with a slash at its end. */
struct s3_place s3_proof_place(const struct s3_place *place);
/* The proof places of a scope, each once. Returns how many. */
int s3_proof_places(const struct s3_scope *scope, struct s3_place places[S3_READS_MAX + 1]);

/* May it stand in a policy? A "*", "?" or "$" would mean more than itself there. -1 with err. */
int s3_scope_check(const struct s3_place *place, struct error *err);

/* The policy of a session of that role, without a blank; a new string. NULL: out of memory. */
char *s3_session_policy(const struct s3_scope *scope, const char *arn);

/* The statements of a bucket's policy for that user, a new array: empty if the scope has nothing
 * there. Their Sid begins with sid, and they hold until then (seconds of the epoch). The proofs
 * S3_PROOF sid can be read, too, and what S3_ASKED follows can be put (fit/s3_bucket_grant.h). */
json_object *s3_bucket_statements(const struct s3_scope *scope, const char *bucket, const char *arn,
                                  const char *sid, double until);

/* Take the statements whose Sid begins with sid out of a policy. Returns how many stay. */
size_t s3_policy_remove(json_object *policy, const char *sid);

#endif

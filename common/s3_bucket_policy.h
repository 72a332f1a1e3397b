/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The policy of a bucket: who else may do what there. */
#ifndef ELASTIC_COMMON_S3_BUCKET_POLICY_H
#define ELASTIC_COMMON_S3_BUCKET_POLICY_H

#include <json-c/json.h>

#include "common/s3.h"
#include "lib/error.h"

/* A new object whose Statement is an array: without statements if the bucket has no policy. NULL
 * with err. */
json_object *s3_bucket_policy_read(struct s3 *s3, struct error *err);

/* Replace it; a policy without statements is removed. -1 with err. */
int s3_bucket_policy_write(struct s3 *s3, json_object *policy, struct error *err);

#endif

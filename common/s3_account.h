/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who this process is for an S3 server, and where that server is. */
#ifndef ELASTIC_COMMON_S3_ACCOUNT_H
#define ELASTIC_COMMON_S3_ACCOUNT_H

#include "lib/error.h"

struct s3_account {
    char *key, *secret;
    char *token;    /* of session credentials; NULL: none */
    char *region;   /* "us-east-1" if nothing says another */
    char *endpoint; /* without a slash at the end; NULL: Amazon's */
    char *source;   /* where the keys are from, for messages */
};

/* As other programs for S3 find it: the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
 * AWS_SESSION_TOKEN, AWS_REGION, AWS_DEFAULT_REGION, AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL), then
 * the profile $AWS_PROFILE of ~/.aws/credentials and ~/.aws/config (or of the files that
 * AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE name). -1 with err; the account is empty then. */
int s3_account_load(struct s3_account *account, struct error *err);

/* Region and endpoint alone. */
int s3_account_load_server(struct s3_account *account, struct error *err);

/* to is empty. -1: out of memory; it is empty then, too. */
int s3_account_copy(const struct s3_account *account, struct s3_account *to);

void s3_account_clear(struct s3_account *account);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Session credentials of STS: keys for somebody else that a policy limits, and that end by
 * themselves. */
#ifndef ELASTIC_COMMON_S3_SESSION_H
#define ELASTIC_COMMON_S3_SESSION_H

#include "common/s3_account.h"
#include "lib/error.h"

struct s3_session_order {
    const char *role;   /* its ARN: what the session can do at most */
    const char *name;   /* of the session, for the logs of the server */
    const char *policy; /* what it can do of that */
    int seconds;        /* how long it lasts */
};

/* The server that is asked: an endpoint, which need not be well-formed. NULL: Amazon's. Its answer
 * has the secret of the session, in clear if it comes by http:// (s3_endpoint_is_open). */
const char *s3_session_server(const struct s3_account *account);

/* AssumeRole at the server of the account (AWS_ENDPOINT_URL_STS names another one). Some seconds at
 * most. -1 with err; the session is empty then. */
int s3_session_begin(const struct s3_account *account, const struct s3_session_order *order,
                     struct s3_account *session, struct error *err);

#endif

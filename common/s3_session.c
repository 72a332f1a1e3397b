/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Session credentials (s3_session.h). */
#include "common/s3_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/s3_private.h"

/* Whoever asks has something else to do. */
#define LIMITS                                                                                     \
    {                                                                                              \
        .connect = 5, .stall = 5, .tries = 3, .answer = 30                                         \
    }

static void add_field(char *body, size_t size, const char *name, const char *value)
{
    char *encoded = s3_encode(value, false);
    size_t len = strlen(body);

    if (encoded != NULL)
        snprintf(body + len, size - len, "&%s=%s", name, encoded);
    free(encoded);
}

/* A new string. NULL: out of memory. */
static char *make_body(const struct s3_session_order *order)
{
    size_t size = 3 * (strlen(order->role) + strlen(order->name) + strlen(order->policy)) + 256;
    char *body = malloc(size), seconds[16];

    if (body == NULL)
        return NULL;
    snprintf(body, size, "Action=AssumeRole");
    snprintf(seconds, sizeof(seconds), "%d", order->seconds);
    add_field(body, size, "DurationSeconds", seconds);
    add_field(body, size, "Policy", order->policy);
    add_field(body, size, "RoleArn", order->role);
    add_field(body, size, "RoleSessionName", order->name);
    add_field(body, size, "Version", "2011-06-15");
    return body;
}

static char *copy(const char *text)
{
    return text != NULL ? strdup(text) : NULL;
}

/* They are used at the account's server. */
static int understand(const struct s3_account *account, const struct s3_session_order *order,
                      const struct s3_reply *reply, struct s3_account *session, struct error *err)
{
    struct s3_credentials credentials;

    if (s3_credentials_parse(reply->text != NULL ? reply->text : "", reply->len, &credentials,
                             err) != 0)
        return error_prefix(err, "session credentials of %s", error_path(order->role).text);
    *session = (struct s3_account){.key = credentials.key,
                                   .secret = credentials.secret,
                                   .token = credentials.token,
                                   .region = copy(account->region),
                                   .endpoint = copy(account->endpoint),
                                   .source = strdup("a session of STS")};
    if (session->region != NULL && session->source != NULL &&
        (session->endpoint != NULL || account->endpoint == NULL))
        return 0;
    s3_account_clear(session);
    return error_set(err, "out of memory");
}

const char *s3_session_server(const struct s3_account *account)
{
    const char *named = getenv("AWS_ENDPOINT_URL_STS");

    return named != NULL && named[0] != '\0' ? named : account->endpoint;
}

int s3_session_begin(const struct s3_account *account, const struct s3_session_order *order,
                     struct s3_account *session, struct error *err)
{
    const struct s3_limits limits = LIMITS;
    struct s3_account at = *account;
    char *body = make_body(order);
    struct s3_request request = {.what = "session credentials of",
                                 .method = "POST",
                                 .key = order->role,
                                 .headers = {"Content-Type: application/x-www-form-urlencoded"},
                                 .body = body,
                                 .body_len = body != NULL ? strlen(body) : 0,
                                 .most = S3_ANSWER_MAX};
    struct s3_reply reply = {0};
    enum s3_result result;
    struct s3 *sts;
    int rc;

    *session = (struct s3_account){0};
    at.endpoint = (char *)(uintptr_t)s3_session_server(account);
    if (at.endpoint != NULL && !s3_endpoint_ok(at.endpoint)) {
        free(body);
        return error_set(err, "AWS_ENDPOINT_URL_STS is \"%s\": it must be http[s]://HOST[:PORT]",
                         error_value(at.endpoint).text);
    }
    sts = body != NULL ? s3_open_sts(&at, &limits, err) : NULL;
    result = sts != NULL ? s3_ask(sts, &request, &reply, err) : S3_FAILED;
    if (result == S3_ABSENT)
        error_set(err, "session credentials of %s: %s has no such role",
                  error_path(order->role).text, at.endpoint != NULL ? at.endpoint : "Amazon");
    rc = result == S3_OK ? 0 : -1;
    if (rc == 0)
        rc = understand(account, order, &reply, session, err);
    if (reply.text != NULL)
        explicit_bzero(reply.text, reply.len);
    s3_reply_clear(&reply);
    s3_close(sts);
    free(body);
    return rc;
}

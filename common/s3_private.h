/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One request to an S3 server: what s3.c and s3_upload.c make of s3_request.c. */
#ifndef ELASTIC_COMMON_S3_PRIVATE_H
#define ELASTIC_COMMON_S3_PRIVATE_H

#include <stdbool.h>

#include "common/s3.h"
#include "lib/s3_place.h"

#define S3_HEADERS_MAX 2

struct s3_request {
    const char *what; /* "get", "list", for messages */
    const char *method;
    const char *key;
    const struct s3_parameter *parameters; /* NULL: none */
    const char *headers[S3_HEADERS_MAX];   /* further ones, from the first; NULL: no more */
    const void *body;                      /* of PUT and POST */
    size_t body_len;
    size_t most; /* bytes of the answer that are kept: more is an error */
    /* Where the content goes instead, and its size. */
    int (*take)(const void *data, size_t len, void *arg, struct error *err);
    void *arg;
    int64_t bytes;
    /* NULL: the whole object; else the bytes from `offset` of the one with this ETag. */
    const char *version;
    int64_t offset;
    bool object; /* it makes one: it says whose that is */
    bool late;   /* the status comes before the work is done: a 2xx may say an error */
};

struct s3_reply {
    int status;
    char *text; /* with a NUL behind it */
    size_t len;
    char etag[S3_ETAG_SIZE];
    int64_t bytes; /* of the object, as an answer to HEAD says; -1: it is not said */
    bool repeated; /* an earlier try may have reached the server */
    struct s3_fault fault;
};

/* Ask until there is an answer that cannot pass. S3_OK for a status of 2xx that says no error. The
 * reply is cleared by s3_reply_clear() whatever the result is. */
enum s3_result s3_ask(struct s3 *s3, const struct s3_request *request, struct s3_reply *reply,
                      struct error *err);
void s3_reply_clear(struct s3_reply *reply);

/* A page of a listing of the bucket. What is absent then is the bucket itself: S3_FAILED. */
enum s3_result s3_ask_list(struct s3 *s3, const char *what, const struct s3_parameter *parameters,
                           struct s3_reply *reply, struct error *err);

/* Give up an upload in parts that was begun. One that is not there is given up. */
enum s3_result s3_end_upload(struct s3 *s3, const char *key, const char *id, struct error *err);

/* The service that gives session credentials: of its requests the key is for messages only. */
struct s3 *s3_open_sts(const struct s3_account *account, const struct s3_limits *limits,
                       struct error *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an S3 server answers: XML of listings, uploads and errors, and what an error means. Pure.
 *
 * A server is a stranger: a document type is refused, and with it every entity; sizes are
 * bounded. */
#ifndef ELASTIC_S3_ANSWER_H
#define ELASTIC_S3_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"

#define S3_ANSWER_MAX ((size_t)8 << 20) /* a thousand keys of 1,024 bytes, each byte escaped */
#define S3_ETAG_SIZE  128

struct s3_entry {
    char *key;               /* of a common prefix: with the slash at its end */
    int64_t bytes;           /* -1: a common prefix */
    char etag[S3_ETAG_SIZE]; /* "": it is not said */
};

struct s3_listing {
    struct s3_entry *entries;
    size_t count;
    char *next; /* the token for the rest; NULL: this is the end */
};

/* Parse a listing that was asked for with list-type=2 and encoding-type=url. -1 with err; nothing
 * is in the listing then. */
int s3_listing_parse(const char *text, size_t len, struct s3_listing *listing, struct error *err);
void s3_listing_clear(struct s3_listing *listing);

/* The UploadId of a begun upload, a new string. NULL with err. */
char *s3_upload_parse(const char *text, size_t len, struct error *err);

/* Session credentials, new strings. */
struct s3_credentials {
    char *key, *secret, *token;
};

/* Those of an answer to AssumeRole. -1 with err; then there are none. */
int s3_credentials_parse(const char *text, size_t len, struct s3_credentials *credentials,
                         struct error *err);
void s3_credentials_clear(struct s3_credentials *credentials);

/* Uploads that were begun and not ended: a page of them. */
struct s3_upload {
    char *key, *id;
};
struct s3_uploads {
    struct s3_upload *list;
    size_t count;
    bool more;
    char *key, *id; /* the rest is behind these (key-marker, upload-id-marker); NULL: not said */
};

/* Parse a listing that was asked for with uploads and encoding-type=url. -1 with err; nothing is in
 * the listing then. */
int s3_uploads_parse(const char *text, size_t len, struct s3_uploads *uploads, struct error *err);
void s3_uploads_clear(struct s3_uploads *uploads);

struct s3_fault {
    char code[64];     /* "NoSuchKey"; "" if the answer says none */
    char message[200]; /* of the server */
    char region[64];   /* the one that would be right, if the answer says it */
};

/* What an answer says about an error; all empty if it is not about one. */
void s3_fault_parse(const char *text, size_t len, struct s3_fault *fault);

/* Does it help to try again later? */
bool s3_fault_passes(int status, const struct s3_fault *fault);

/* Is it about something that is not there: the key, not the bucket? */
bool s3_fault_is_absence(int status, const struct s3_fault *fault);

/* Has somebody else been there first: a condition of the request did not hold? */
bool s3_fault_is_clash(int status, const struct s3_fault *fault);

/* What a line about a fault may name. */
struct s3_asker {
    const char *what;   /* "get s3://bucket/key" */
    const char *bucket; /* its name */
    const char *host;   /* of the server, with the port */
    const char *region; /* that was used */
    const char *key;    /* the id of the access key */
    const char *source; /* where it is from: "AWS_ACCESS_KEY_ID", "profile x of /home/u/.aws/..." */
    int64_t ahead;      /* seconds that this machine's clock is ahead of the server's */
};

/* One line: what was wrong, and what would be right. Always returns -1. */
int s3_fault_line(const struct s3_asker *asker, int status, const struct s3_fault *fault,
                  struct error *err);

#endif

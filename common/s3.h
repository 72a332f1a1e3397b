/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One bucket of an S3 server, through libcurl. Each call waits: this is for processes that do
 * nothing else.
 *
 * What can pass is tried again, with pauses that double: an answer 429 or 5xx, a connection that
 * is refused, cut or silent. Bodies are signed, so that the server refuses what is not what was
 * sent. stop_asked() ends each call. */
#ifndef ELASTIC_COMMON_S3_H
#define ELASTIC_COMMON_S3_H

#include <stddef.h>
#include <stdint.h>

#include "common/s3_account.h"
#include "lib/error.h"
#include "lib/s3_answer.h"
#include "lib/s3_parts.h"

struct s3_limits {
    int connect; /* seconds for a connection */
    int stall;   /* seconds without a byte, after which a connection is given up */
    int tries;   /* of one request */
    /* Seconds for one try whose answer is kept in memory; a body that goes there has more, for its
     * size. However slowly a server answers, that is the end of it. 0: there is no such limit. */
    int answer;
};

#define S3_LIMITS                                                                                  \
    {                                                                                              \
        .connect = 10, .stall = 30, .tries = 6, .answer = 60                                       \
    }

enum s3_result {
    S3_OK,
    S3_ABSENT, /* there is no such key; err says it, too */
    S3_CLASH,  /* the condition does not hold: somebody else was first; err says it, too */
    S3_FAILED, /* for the reason in err */
};

/* What must hold for a put. */
struct s3_condition {
    bool absent;      /* there is no such key yet */
    const char *etag; /* the key has this ETag; NULL: whatever it has */
};

struct s3;

/* A lane is a connection of its own, for a thread of its own. Lane 0 is the handle itself, up to
 * S3_LANES - 1; they live as long as it. All functions take any lane. NULL: out of memory. */
struct s3 *s3_lane(struct s3 *s3, int lane);

/* The account is borrowed. NULL with err. */
struct s3 *s3_open(const struct s3_account *account, const char *bucket,
                   const struct s3_limits *limits, struct error *err);
/* NULL is accepted. */
void s3_close(struct s3 *s3);

/* What is put belongs to the owner of the bucket, too: for another user's bucket. */
void s3_give_owner(struct s3 *s3);

/* The text of an object of at most max bytes, a new string with a NUL behind it. etag may be
 * NULL. */
enum s3_result s3_get_text(struct s3 *s3, const char *key, size_t max, char **text, size_t *len,
                           char etag[S3_ETAG_SIZE], struct error *err);

/* Where the bytes of an object go. Both functions return -1 with err to stop; NULL: not wanted. */
struct s3_sink {
    /* Each piece, with its place in the object, in any order and by several threads at one time. */
    int (*put)(const void *data, size_t len, int64_t at, void *arg, struct error *err);
    /* After put(): each piece in order, by several threads, one at a time. */
    int (*take)(const void *data, size_t len, void *arg, struct error *err);
    void *arg;
};

/* The next piece in order: both functions, and *at is behind it. */
int s3_sink_feed(const struct s3_sink *sink, const void *data, size_t len, int64_t *at,
                 struct error *err);

/* Hand an object of exactly so many bytes to the sink. A cut connection goes on where it was cut,
 * if the object has an ETag. A large object comes by all lanes. */
enum s3_result s3_get(struct s3 *s3, const char *key, int64_t bytes, const struct s3_sink *sink,
                      struct error *err);

/* The ETag of an object. */
enum s3_result s3_head(struct s3 *s3, const char *key, char etag[S3_ETAG_SIZE], struct error *err);

/* The same, and its size. */
enum s3_result s3_size(struct s3 *s3, const char *key, char etag[S3_ETAG_SIZE], int64_t *bytes,
                       struct error *err);

/* Put a small object. condition and etag (of what was put) may be NULL. */
enum s3_result s3_put_text(struct s3 *s3, const char *key, const char *text, size_t len,
                           const struct s3_condition *condition, char etag[S3_ETAG_SIZE],
                           struct error *err);

/* Put a file from its beginning. If it is large, it goes in parts by all lanes. saw() gets each
 * piece that is sent, once and in order, one thread at a time. */
enum s3_result s3_put_file(struct s3 *s3, const char *key, int fd, int64_t bytes,
                           void (*saw)(const void *data, size_t len, void *arg), void *arg,
                           struct error *err);

/* Call each() for all keys with that prefix, in the order of their bytes. With shallow, what has a
 * slash behind the prefix is one entry. each() returns -1 with err to stop. A server that lists
 * other keys, or more than a million, makes this fail. */
enum s3_result s3_list(struct s3 *s3, const char *prefix, bool shallow,
                       int (*each)(const struct s3_entry *entry, void *arg, struct error *err),
                       void *arg, struct error *err);

/* The same, however many keys there are: for whoever keeps none of them. */
enum s3_result s3_list_all(struct s3 *s3, const char *prefix, bool shallow,
                           int (*each)(const struct s3_entry *entry, void *arg, struct error *err),
                           void *arg, struct error *err);

/* Delete an object; one that is not there is deleted. */
enum s3_result s3_delete(struct s3 *s3, const char *key, struct error *err);

/* A key below a prefix that cannot be removed, for the reason in err. 0: the others are; -1 with
 * err: that is the end of it. s3 is a lane; several threads call it. */
typedef int s3_stuck(struct s3 *s3, const char *key, void *arg, struct error *err);

/* Delete all objects below a prefix, a page of the listing at a time. stuck NULL: what cannot be
 * deleted is the end of it. */
enum s3_result s3_delete_below(struct s3 *s3, const char *prefix, s3_stuck *stuck, void *arg,
                               struct error *err);

/* End all uploads in parts below a prefix that were begun and not ended, so that their parts go. */
enum s3_result s3_give_up_below(struct s3 *s3, const char *prefix, s3_stuck *stuck, void *arg,
                                struct error *err);

#endif

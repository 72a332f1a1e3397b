/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keys for S3 on their way to the replica that trains, through links and files of others: only that
 * process can open the box. It has made a key for that, which is nowhere else. */
#ifndef FIT_S3_BOX_H
#define FIT_S3_BOX_H

#include <stdbool.h>

#include "common/s3_account.h"
#include "lib/error.h"
#include "lib/s3_policy.h"

#define S3_BOX_MAX         16384 /* bytes of its text */
#define S3_BOX_SECRET_SIZE 65

struct s3_box_key;

/* A new one. NULL: out of memory. */
struct s3_box_key *s3_box_key_create(void);
void s3_box_key_destroy(struct s3_box_key *key); /* accepts NULL */
/* What others need to seal a box for it. */
const char *s3_box_key_name(const struct s3_box_key *key);
/* A text that only this process can say, for that place and that sid. */
void s3_box_key_secret(const struct s3_box_key *key, const struct s3_place *place, const char *sid,
                       char secret[S3_BOX_SECRET_SIZE]);
/* Is that such a name? */
bool s3_box_key_ok(const char *name);

/* What is in a box. */
struct s3_box {
    struct s3_account account; /* without keys: whoever opens it uses its own */
    double until;              /* they have ended by then */
    char sid[S3_SID_MAX + 1];  /* of the proof in each bucket, if there are no keys */
};

void s3_box_clear(struct s3_box *box);

/* A new text. NULL with err. */
char *s3_box_seal(const struct s3_box *box, const char *key_name, struct error *err);
/* -1 with err: it is for another key, or is none. */
int s3_box_open(const char *text, const struct s3_box_key *key, struct s3_box *box,
                struct error *err);

#endif

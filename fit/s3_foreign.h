/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Objects on S3 of another user: of whom this process trains for, or who trains for it
 * (fit/foreign.h, for files).
 *
 * The trainer uses the keys that come for the training (fit/s3_box.h), at the server that its own
 * job names. All functions return 0, or -1 with err. */
#ifndef FIT_S3_FOREIGN_H
#define FIT_S3_FOREIGN_H

#include <limits.h>
#include <stdbool.h>

#include "fit/room.h"
#include "fit/s3_box.h"
#include "lib/error.h"

/* How the trainer comes to its keys. They are looked for again for each object: new ones come
 * before the old ones have ended. */
struct s3_source {
    const struct s3_box_key *key;
    const char *path;            /* the file of the box */
    bool (*unwanted)(void *arg); /* the training is: then the keys are not waited for */
    void *arg;
    struct room *room; /* of all copies together; NULL: each has its own */
    /* Its own. */
    char *text;
    struct s3_box box;
};

void s3_source_clear(struct s3_source *source);

/* The object of that name, or all below it, become files in the directory `to`, which is made.
 * result: what the URL is there. */
int s3_foreign_get(struct s3_source *source, const char *url, const char *to, char result[PATH_MAX],
                   struct error *err);

/* All files of `from` become objects below the URL. */
int s3_foreign_put(struct s3_source *source, const char *from, const char *url, struct error *err);

/* With this user's own keys: what the trainer has put there becomes files in `to`, which is there;
 * and it is removed, also what was begun. */
int s3_foreign_take(const char *url, const char *to, struct error *err);
int s3_foreign_clear(const char *url, struct error *err);

#endif

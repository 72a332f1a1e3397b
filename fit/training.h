/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the replica that trains does alike for fits of its own service, and for guests. */
#ifndef FIT_TRAINING_H
#define FIT_TRAINING_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "fit/home.h"
#include "fit/spec.h"
#include "lib/error.h"

#define TRAINING_ATTEMPTS  2 /* starts of a training: it may lose its node once */
#define TRAINING_LOST      "it was lost with its node or its replica, %d times"
#define TRAINING_ADDED_MAX 12

/* trainer.json: where it is, so that people find it. The runner goes on by that. key: for
 * fit/s3_box.h; NULL: none. */
int training_here(const struct home *home, int64_t id, const char *key, struct error *err);

/* This start is the first, or the second after the first has gone with its node. False with errno:
 * EEXIST if there have been enough. */
bool training_attempt(const struct home *home, int64_t id, int *attempt);
/* Another start has followed that one: it was taken for lost. */
bool training_is_followed(const struct home *home, int64_t id, int attempt);

/* The fit for which the replica that trains, or the world, is there: *id, 0 if there is none. Then
 * spec, which is cleared by whoever has it, and record are of it. */
int training_find(const struct home *home, int64_t *id, struct spec *spec,
                  struct home_record *record, struct error *err);
/* Is the replica, or the world, there for it? */
bool training_is_wanted(const struct fit *fit);

/* What is told to the attempt of that name: a file, if there is none yet. */
int training_call(const struct home *home, int64_t id, const struct spec *spec,
                  const struct home_record *record, const char *attempt, struct error *err);

/* How a program has ended. */
int training_say(const struct home *home, int64_t id, const char *file, int code,
                 const struct error *why, struct error *err);
/* The training has ended with 0: that attempt has written the files. */
int training_done(const struct home *home, int64_t id, const char *attempt, struct error *err);

/* A new empty directory on this node. It is locked as long as its process lives. */
struct training_scratch {
    char path[PATH_MAX]; /* "": not made */
    int lock;
};

int training_scratch_make(struct training_scratch *scratch, struct error *err);
void training_scratch_remove(struct training_scratch *scratch); /* also one that is not made */
/* Those of processes that were killed go. */
void training_scratch_sweep(void);

/* Variables for a program. */
struct training_added {
    char *list[TRAINING_ADDED_MAX + 1];
    int count;
};

/* … that an attempt at the training of a fit of this service finds. staged: "": no such
 * directory. */
struct training_added training_environment(const struct home *home, int64_t id,
                                           const struct spec *spec,
                                           const struct home_record *record, const char *attempt,
                                           const char *staged);
void training_add(struct training_added *added, const char *name, const char *value);
void training_added_clear(struct training_added *added);

#endif

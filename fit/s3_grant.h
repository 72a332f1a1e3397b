/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a trainer of another user may do on S3 for a fit (fit/grant.h, for files).
 *
 * By session credentials of STS, which are for the places of this fit and end by themselves. They
 * are in the memory of the runner, and go to the trainer in a box (fit/s3_box.h). Or by policies of
 * the buckets (fit/s3_bucket_grant.h), for the trainer's own keys. Both are given for a time, and
 * once more while it trains. s3_grant.json says until when, and what is to be taken back. */
#ifndef FIT_S3_GRANT_H
#define FIT_S3_GRANT_H

#include <stdbool.h>
#include <stdint.h>

#include "fit/home.h"
#include "fit/spec.h"
#include "lib/error.h"

#define HOME_S3_GRANT_FILE "s3_grant.json"

/* Is anything of the fit on S3 that the trainer has to reach? */
bool s3_grant_is_needed(const struct spec *spec);

/* Can it be given? -1 with err. */
int s3_grant_check(const struct spec *spec, struct error *err);

/* Where the trainer writes to; "" if that is no place on S3. */
struct home_path s3_grant_incoming(const struct spec *spec, int64_t id, int64_t state);
/* The state before, for the trainer; "" if it is in files. */
struct home_path s3_grant_previous(const struct spec *spec, int64_t previous);

/* What the runner holds for the trainer of one fit. */
struct s3_grant;

/* NULL: out of memory. */
struct s3_grant *s3_grant_create(const struct home *home, int64_t id, const struct spec *spec);
void s3_grant_destroy(struct s3_grant *grant); /* accepts NULL */

/* The replica with this key has access that lasts for a while. -1 with err. */
int s3_grant_give(struct s3_grant *grant, const struct home_record *record, const char *key_name,
                  double now, struct error *err);

/* The box that the replica with this key is to have, a new text; NULL: it has it already. *err is
 * "" then. */
char *s3_grant_box(struct s3_grant *grant, const struct home_record *record, const char *key_name,
                   double now, struct error *err);
/* It has that box. Until then it gets one with each question. */
void s3_grant_delivered(struct s3_grant *grant, const char *key_name);

/* No more is given, and what can be is taken back. -1 with err. */
int s3_grant_revoke(struct s3_grant *grant, double now, struct error *err);

/* Does what was given hold? */
bool s3_grant_is_open(const struct home *home, int64_t id, double now, double *until);

#endif

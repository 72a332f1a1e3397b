/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What trainers of other users have put on S3 after the clean-up of their fits: a session holds
 * for a while after it. */
#ifndef FIT_S3_LEFT_H
#define FIT_S3_LEFT_H

#include <stdint.h>

#include "fit/home.h"

/* Remove what such trainers have put for fits of this service that are over, of which s3_grant.json
 * is there. It goes when they can put no more. What cannot be removed is for the next time. */
void s3_left_clear(const struct home *home, double now);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* In which parts a file goes to S3. Pure. */
#ifndef ELASTIC_S3_PARTS_H
#define ELASTIC_S3_PARTS_H

#include <stdint.h>

#define S3_PARTS_MAX  10000 /* S3's limit */
#define S3_PART_BYTES ((int64_t)8 << 20)
#define S3_BYTES_MAX  ((int64_t)5 << 40) /* of an object, S3's limit */
#define S3_LANES      8                  /* requests at one time, at most */

struct s3_parts {
    int64_t part; /* bytes of each part but the last one */
    int count;    /* 1: one request; no upload in parts */
};

/* For a file of so many bytes, at most S3_BYTES_MAX. */
struct s3_parts s3_parts_plan(int64_t bytes);

/* How many parts are under way at one time: so that their memory is bounded. */
int s3_parts_lanes(const struct s3_parts *parts);

/* Bytes of part number index (from 0). */
int64_t s3_parts_size(const struct s3_parts *parts, int64_t bytes, int index);

#endif

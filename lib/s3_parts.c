/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parts of an upload (s3_parts.h). */
#include "lib/s3_parts.h"

#define MEBIBYTE ((int64_t)1 << 20)

struct s3_parts s3_parts_plan(int64_t bytes)
{
    struct s3_parts parts = {.part = S3_PART_BYTES, .count = 1};
    int64_t least = (bytes + S3_PARTS_MAX - 1) / S3_PARTS_MAX;

    if (least > parts.part)
        parts.part = (least + MEBIBYTE - 1) / MEBIBYTE * MEBIBYTE;
    if (bytes > parts.part)
        parts.count = (int)((bytes + parts.part - 1) / parts.part);
    return parts;
}

int s3_parts_lanes(const struct s3_parts *parts)
{
    int64_t lanes = S3_LANES * S3_PART_BYTES / parts->part;

    if (lanes > parts->count)
        lanes = parts->count;
    return lanes > 1 ? (int)lanes : 1;
}

int64_t s3_parts_size(const struct s3_parts *parts, int64_t bytes, int index)
{
    int64_t left = bytes - parts->part * index;

    return left < parts->part ? left : parts->part;
}

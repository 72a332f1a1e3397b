/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which of several things are the cheapest that together give enough. Pure. */
#ifndef ELASTIC_COVER_H
#define ELASTIC_COVER_H

#include <stdbool.h>
#include <stdint.h>

struct cover_item {
    int gives;    /* 0 or more; one that gives nothing is never picked */
    int64_t cost; /* 0 or more, less than 2^62 for all together */
};

/* Pick items that together give at least need (> 0), at the least cost. Of equal sets the first one
 * is picked: the one with the first item, then with the second, and so on. picked has one element
 * for each item. False: all items together are not enough, and nothing is picked.
 *
 * With very many items, or without memory, the set is good but not always the cheapest. */
bool cover_pick(const struct cover_item *items, int count, int need, bool *picked);

#endif

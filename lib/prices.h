/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file with the prices of pools at this moment (the key prices of elastic.conf), from its text.
 *
 * A line is `POOL PRICE [NODES]`: what a node of the pool costs in an hour, and how many nodes can
 * be had. '#' begins a comment as in elastic.conf. A program of the site writes the file. */
#ifndef ELASTIC_PRICES_H
#define ELASTIC_PRICES_H

#include <stddef.h>

#include "lib/error.h"
#include "lib/policy.h"

#define PRICES_FILE_MAX (1024 * 1024) /* bytes */

struct price {
    char pool[POLICY_POOL_NAME_MAX + 1];
    double price;
    /* -1: the line does not say. */
    int nodes;
};

struct prices;

/* The prices, to be freed with prices_destroy(). NULL with err set at the first line that is wrong
 * ("line 3: …"; the caller adds the file), and for a pool that has two lines. */
struct prices *prices_parse(const char *text, size_t len, struct error *err);
void prices_destroy(struct prices *prices); /* accepts NULL */

/* The line of a pool. NULL: it has none, or prices is NULL. */
const struct price *prices_find(const struct prices *prices, const char *pool);

#endif

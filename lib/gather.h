/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Collectives among nodes of a world: every node gives its part, and when all have, each may have all
 * parts. A barrier is one in which the parts are empty. Pure.
 *
 * A collective is known by a key, the same on all nodes. It exists from the first part until it is
 * removed; after that the same key names another one. */
#ifndef ELASTIC_GATHER_H
#define ELASTIC_GATHER_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/error.h"

/* Limits for one node: more than this is no program that means well. */
#define GATHER_OPEN_MAX  64                 /* collectives it takes part in that are not complete */
#define GATHER_BYTES_MAX ((size_t)64 << 20) /* of its parts of those */

struct gather;

/* Among nodes 0 … node_count-1. NULL: out of memory. */
struct gather *gather_create(int node_count);
void gather_destroy(struct gather *gather);

enum gather_result {
    GATHER_REFUSED = -1, /* with the reason in err; the collective is as it was */
    GATHER_WAITING = 0,
    GATHER_COMPLETE = 1 /* all have given their parts: read and remove it */
};

/* A piece of what node gives to the collective of that key, in which nodes (count of them, ascending)
 * take part. The last piece has last set, and only that may be empty. Data is copied. */
enum gather_result gather_add(struct gather *gather, const char *key, const int *nodes, int count,
                              int node, const void *data, size_t len, bool last, struct error *err);

/* Who takes part: count indices, ascending. NULL: there is no such collective. */
const int *gather_nodes(const struct gather *gather, const char *key, int *count);
/* What that node has given so far; NULL with *len 0: nothing. Valid until the collective changes. */
const void *gather_part(const struct gather *gather, const char *key, int node, size_t *len);
/* Has that node given all of its part, and the collective is not complete? */
bool gather_has_given(const struct gather *gather, const char *key, int node);
void gather_remove(struct gather *gather, const char *key);

/* The key of a collective in which that node takes part and which is not complete, NULL: there is none.
 * For a node that is gone: tell the others, remove it, ask again. */
const char *gather_with(const struct gather *gather, int node);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Collectives among the nodes of a world: every node gives its part, then each node may have all
 * parts. A barrier is a collective with empty parts. Pure.
 *
 * A key names a collective; the key is the same on all nodes. The collective exists from its first
 * part until gather_remove(). After that the same key names another collective. */
#ifndef ELASTIC_GATHER_H
#define ELASTIC_GATHER_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/error.h"

/* Limits for one node: a program that works as it should stays below them. */
#define GATHER_OPEN_MAX  64                 /* incomplete collectives that the node takes part in */
#define GATHER_BYTES_MAX ((size_t)64 << 20) /* of the node's parts in these collectives */

struct gather;

/* Among nodes 0 … node_count-1. NULL: out of memory. */
struct gather *gather_create(int node_count);
void gather_destroy(struct gather *gather);

enum gather_result {
    GATHER_REFUSED = -1, /* the reason is in err; the collective is as it was */
    GATHER_WAITING = 0,
    GATHER_COMPLETE = 1 /* all nodes have given their parts: read them and remove the collective */
};

/* Add a piece of the part that `node` gives to the collective of that key. `nodes` (count of them,
 * ascending) take part in the collective. The last piece of a part has `last` set, and only the
 * last piece may be empty. The data is copied. */
enum gather_result gather_add(struct gather *gather, const char *key, const int *nodes, int count,
                              int node, const void *data, size_t len, bool last, struct error *err);

/* The nodes that take part in a collective: count indices, ascending. NULL: there is no such
 * collective. */
const int *gather_nodes(const struct gather *gather, const char *key, int *count);
/* The bytes that a node has given so far. NULL with *len 0: none. Valid until the collective
 * changes. */
const void *gather_part(const struct gather *gather, const char *key, int node, size_t *len);
/* Has that node given all of its part, while the collective is not complete? */
bool gather_has_given(const struct gather *gather, const char *key, int node);
void gather_remove(struct gather *gather, const char *key);

/* The key of an incomplete collective in which that node takes part. NULL: there is none. For a
 * node that is gone: tell the other nodes, remove the collective, ask again. */
const char *gather_with(const struct gather *gather, int node);

#endif

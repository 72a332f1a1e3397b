/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which numbers of nodes an elastic job may have: MIN:MAX[:STEP] or a list N,N,N. */
#ifndef ELASTIC_SIZES_H
#define ELASTIC_SIZES_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/error.h"

#define SIZES_LIST_MAX  64
#define SIZES_NODES_MAX 65533 /* Slurm's own limit for a job */

/* Enough for sizes_format: 64 numbers of 5 digits, each with a separator or the final NUL. */
#define SIZES_TEXT_MAX (SIZES_LIST_MAX * 6)

struct sizes {
    /* Nodes of the base job. 0: not set. */
    int min;
    int max;
    /* 0: the sizes are a list. */
    int step;
    /* Entries of list, which ascends from min to max. */
    int count;
    int list[SIZES_LIST_MAX];
};

/* Parse "2:8", "2:8:2", "2,4,8" or "4" (the same as 4:4). STEP must divide MAX - MIN. Blanks are
 * refused. Returns -1 with sizes unchanged and a text that says what is wrong and what would be
 * right. The caller adds where the value came from (policy_set does). */
int sizes_parse(const char *text, struct sizes *sizes, struct error *err);

/* The sizes of a job whose nodes come and go by so many: each size has to be a multiple of it. A
 * STEP of 1, which is also that of MIN:MAX, becomes this one. Returns -1 with sizes unchanged and a
 * text that says what is wrong and what would be right. */
int sizes_keep_together(struct sizes *sizes, int nodes, struct error *err);

/* Write the canonical form ("2:8", "2:8:2", "2,4,8"), which sizes_parse reads back, into buf;
 * returns buf. */
char *sizes_format(const struct sizes *sizes, char *buf, size_t size);

bool sizes_allowed(const struct sizes *sizes, int nodes);

/* The largest allowed size <= nodes, 0 if there is none. */
int sizes_floor(const struct sizes *sizes, int nodes);

/* The smallest allowed size > nodes, 0 if there is none. */
int sizes_next(const struct sizes *sizes, int nodes);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The shapes file, which `selastic topology collect` writes: the shape of each node, by name.
 *
 *     {"format": 1,
 *      "shapes": {"a100": {...}, "h100": {...}},
 *      "nodes": {"n[1-8]": "a100", "n[9-16]": "h100"}}
 *
 * The contents of the objects in "shapes" are for people and for `selastic topology`. Here only the
 * names count. Pure: names of nodes are written as Slurm writes them. */
#ifndef ELASTIC_SHAPES_H
#define ELASTIC_SHAPES_H

#include <stddef.h>

#include "lib/error.h"

#define SHAPES_FORMAT   1
#define SHAPES_MAX      4096               /* shapes */
#define SHAPES_FILE_MAX (16 * 1024 * 1024) /* bytes that a reader should allow */

struct shapes;

/* Parse the text of a file. NULL with err at the first mistake. A node with two shapes is a
 * mistake, and so is a shape that is not described. */
struct shapes *shapes_parse(const char *text, size_t len, struct error *err);
void shapes_destroy(struct shapes *shapes); /* accepts NULL */

/* The number of shapes; the name of a shape, in the order of the file. */
int shapes_count(const struct shapes *shapes);
const char *shapes_name(const struct shapes *shapes, int shape);

/* The number of nodes that have a shape. */
int shapes_nodes(const struct shapes *shapes);

/* The shape of a node. -1: the file does not name the node, or shapes is NULL. */
int shapes_of(const struct shapes *shapes, const char *node);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which node has which shape: the file that `selastic topology collect` writes.
 *
 * See doc/admin/placement.md. Pure: the caller gives the functions that expand and compress
 * hostlist expressions. */
#ifndef SELASTIC_TOPOLOGY_MAP_H
#define SELASTIC_TOPOLOGY_MAP_H

#include <stddef.h>

#include "lib/machine.h"

#define TOPOLOGY_FORMAT   1
#define TOPOLOGY_FILE_MAX (16 * 1024 * 1024) /* bytes */

struct topology_shape {
    char name[MACHINE_NAME_MAX];
    struct machine machine;
};

struct topology_entry {
    char *node;
    int shape; /* index into shapes */
};

struct topology_map {
    struct topology_shape *shapes;
    int shape_count;
    struct topology_entry *entries; /* sorted by node as people count: n2 before n10 */
    int entry_count;
};

/* "n[1-3]" as an array for strings_free, and back (new string). NULL: cannot be done. */
typedef char **topology_expand(const char *hostlist);
typedef char *topology_compress(char *const *names, int count);

void topology_map_clear(struct topology_map *map);

/* Set the shape of a node. */
void topology_map_set(struct topology_map *map, const char *node, const struct machine *machine);

/* The shape of a node. NULL: not known. */
const struct topology_shape *topology_map_find(const struct topology_map *map, const char *node);

/* The text of a file. Shapes that no node has are left out. New string. */
char *topology_map_format(const struct topology_map *map, topology_compress *compress);

/* Its meaning, into an empty map. -1 with err, and the map empty. */
int topology_map_parse(struct topology_map *map, const char *text, size_t len,
                       topology_expand *expand, struct error *err);

/* The nodes of a shape as a hostlist expression (new string), and how many. */
char *topology_map_nodes(const struct topology_map *map, int shape, topology_compress *compress,
                         int *count);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Answers of nodes to `selastic topology collect`, which come through srun. Pure.
 *
 * srun mixes the output of tasks every 1024 bytes. So everything is sent in short lines, each with
 * the node's name. */
#ifndef SELASTIC_TOPOLOGY_ANSWERS_H
#define SELASTIC_TOPOLOGY_ANSWERS_H

#include <stdbool.h>
#include <stdio.h>

#include "cmd/topology_map.h"

struct topology_answer {
    char *node;
    char *reason; /* why there is no answer; NULL: there is one, or the reason is not known */
    bool answered;
    char *text; /* the pieces so far */
    int pieces;
};

struct topology_answers {
    struct topology_answer *list; /* sorted by node */
    int count;
    struct topology_map *map; /* where shapes go */
};

/* Begin to wait for the answers of these nodes. */
void topology_answers_begin(struct topology_answers *answers, char *const *nodes, int count,
                            struct topology_map *map);
void topology_answers_clear(struct topology_answers *answers);

/* Take a line of output, without its end. Other lines, and lines of other nodes, are ignored. */
void topology_answers_take(struct topology_answers *answers, const char *line);

/* The answer of a node. NULL: the node is not one of them. */
struct topology_answer *topology_answers_find(const struct topology_answers *answers,
                                              const char *node);

/* Say why there is no answer, unless something is known already. */
void topology_answer_fail(struct topology_answer *answer, const char *reason);

/* The lines of a node. */
void topology_answer_print(FILE *out, const char *node, const struct machine *machine);
void topology_answer_print_error(FILE *out, const char *node, const char *reason);

#endif

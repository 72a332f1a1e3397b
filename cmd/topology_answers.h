/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What nodes say of themselves to `selastic topology collect`, through srun, which mixes the output of tasks every 1024 bytes: so
 * everything is sent in short lines, each with the node's name. Pure. */
#ifndef SELASTIC_TOPOLOGY_ANSWERS_H
#define SELASTIC_TOPOLOGY_ANSWERS_H

#include <stdbool.h>
#include <stdio.h>

#include "cmd/topology_map.h"

struct topology_answer {
    char *node;
    char *reason; /* why there is no answer, NULL: there is one, or it is not known */
    bool answered;
    char *text; /* the pieces so far */
    int pieces;
};

struct topology_answers {
    struct topology_answer *list; /* sorted by node */
    int count;
    struct topology_map *map; /* where shapes go */
};

/* Answers of these nodes are awaited. */
void topology_answers_begin(struct topology_answers *answers, char *const *nodes, int count,
                            struct topology_map *map);
void topology_answers_clear(struct topology_answers *answers);

/* A line of output, without its end. What is none of these lines, or of another node, is passed over. */
void topology_answers_take(struct topology_answers *answers, const char *line);

/* NULL: not one of them. */
struct topology_answer *topology_answers_find(const struct topology_answers *answers,
                                              const char *node);

/* Say why there is no answer, unless something is known already. */
void topology_answer_fail(struct topology_answer *answer, const char *reason);

/* The lines of a node. */
void topology_answer_print(FILE *out, const char *node, const struct machine *machine);
void topology_answer_print_error(FILE *out, const char *node, const char *reason);

#endif

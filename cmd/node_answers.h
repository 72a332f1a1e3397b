/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Answers of nodes, JSON objects, which come through srun. Pure.
 *
 * srun mixes the output of tasks every 1024 bytes. So everything is sent in short lines, each with
 * the node's name. */
#ifndef SELASTIC_NODE_ANSWERS_H
#define SELASTIC_NODE_ANSWERS_H

#include <stdbool.h>
#include <stdio.h>

#include <json-c/json.h>

#include "lib/error.h"

struct node_answer {
    char *node;
    char *reason; /* why there is no answer; NULL: there is one, or the reason is not known */
    bool answered;
    char *text; /* the pieces so far */
    int pieces;
};

/* Called once for each node with what it says, which is freed afterwards. -1 with err: it is no
 * answer. */
typedef int node_answer_taker(void *owner, const char *node, json_object *answer,
                              struct error *err);

struct node_answers {
    struct node_answer *list; /* sorted by node */
    int count;
    node_answer_taker *taker;
    void *owner;
};

/* Begin to wait for the answers of these nodes. */
void node_answers_begin(struct node_answers *answers, char *const *nodes, int count,
                        node_answer_taker *taker, void *owner);
void node_answers_clear(struct node_answers *answers);

/* Take a line of output, without its end. Other lines, and lines of other nodes, are ignored. */
void node_answers_take(struct node_answers *answers, const char *line);

/* The answer of a node. NULL: the node is not one of them. */
struct node_answer *node_answers_find(const struct node_answers *answers, const char *node);

/* Say why there is no answer, unless something is known already. */
void node_answer_fail(struct node_answer *answer, const char *reason);

/* The lines of a node. */
void node_answer_print(FILE *out, const char *node, json_object *answer);
void node_answer_print_error(FILE *out, const char *node, const char *reason);

/* Slurm's name of this node, where a step runs; else the machine's. A new string. */
char *node_answer_own_name(void);

#endif

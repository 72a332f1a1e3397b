/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the tasks of a gang fit: slots on nodes. Pure.
 *
 * A slot is what a task occupies on a node. All tasks of a gang get their slots, or none does. The
 * same question always has the same answer. */
#ifndef ELASTIC_SLOTS_H
#define ELASTIC_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slots_size {
    int cpus, gpus;
    int64_t memory; /* MiB */
};

struct slots_node {
    struct slots_size free;
    bool closed;    /* no task of this gang may come here */
    uint32_t group; /* a gang on several nodes is on nodes of one group */
    int avoided;    /* nodes for which this is less come first */
};

struct slots_gang {
    struct slots_size size; /* of a task */
    int tasks;              /* at least 1 */
    int per_node;           /* so many tasks on each node, the last one may have fewer; 0: any */
    bool owned;             /* another replica owns it (lib/reconcile): no matter here */
};

bool slots_equal(const struct slots_gang *a, const struct slots_gang *b);

/* So many tasks of that size fit into what is free; at most INT_MAX. */
int slots_fit(const struct slots_size *free, const struct slots_size *size);
void slots_take(struct slots_size *free, const struct slots_size *size);
void slots_give(struct slots_size *free, const struct slots_size *size);

/* Finds a slot for each task, as the index of its node, in where[tasks]. It takes nothing. Tasks of
 * a gang are on as few nodes as it can be. Of the nodes that can hold them, they get the one that
 * is least avoided, and of equal ones the one with the least left: GPUs count before CPUs, CPUs
 * before memory, and then the first one. False: they do not fit. Without memory for the search a
 * gang of several nodes does not fit. */
bool slots_place(const struct slots_node *nodes, int count, const struct slots_gang *gang,
                 int *where);

/* What keeps a gang from ever fitting on nodes of that size, of which there are as many as it
 * takes: "12 CPUs", "2 GPUs" or "4096 MiB of memory". NULL: nothing does. In text, which is as long
 * as size says. */
const char *slots_too_large(const struct slots_size *node, const struct slots_gang *gang,
                            char *text, size_t size);

#endif

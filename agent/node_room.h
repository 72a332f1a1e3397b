/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a node has for replicas: CPUs, memory, and GPUs, which are given to tasks by their ids.
 *
 * CPUs and memory are only said; the leader counts what replicas take of them. */
#ifndef ELASTIC_AGENT_NODE_ROOM_H
#define ELASTIC_AGENT_NODE_ROOM_H

#include <stdbool.h>

#include "lib/error.h"
#include "lib/slots.h"

/* What the machine has, where Slurm does not say what the job has of it. */
struct node_machine {
    int cpus;
    int64_t memory; /* MiB */
    bool amd;       /* its GPUs are AMD's */
};

void node_machine_read(struct node_machine *machine);

/* The ids of the GPUs that the job has on this node, from its environment ("K=V"): new strings,
 * NULL after the last; free with strings_free. NULL: out of memory. */
char **node_gpus(char *const *env);

/* The rest of that environment, without what names the GPUs: a copy, free with strings_free. NULL:
 * out of memory. */
char **node_env_without_gpus(char *const *env);

struct node_room;

/* NULL: out of memory. */
struct node_room *node_room_create(char *const *env, const struct node_machine *machine);
void node_room_destroy(struct node_room *room); /* accepts NULL */

/* All of it, whether tasks have it or not. */
void node_room_size(const struct node_room *room, struct slots_size *size);

/* That many GPUs for a task: their ids with commas, "" for none of them. A new string. NULL with
 * err: fewer are free. */
char *node_room_take(struct node_room *room, int gpus, struct error *err);
/* Take back what node_room_take() gave. NULL is accepted. */
void node_room_give(struct node_room *room, const char *ids);

/* The variables by which the programs of this node know their GPUs. A node without GPUs has
 * neither, and one of AMD's not CUDA's, by which AMD's programs would choose once more. */
bool node_room_cuda(const struct node_room *room);
bool node_room_rocr(const struct node_room *room);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One generation: its nodes in rank order, and the texts made of it for workers. Pure.
 *
 * These are the environment of a worker, and the host files. */
#ifndef ELASTIC_WORLD_H
#define ELASTIC_WORLD_H

#include <stdint.h>

#include <json-c/json.h>

#include <stdbool.h>

#include "lib/error.h"
#include "lib/text.h" /* strings_free */

#define WORLD_SLOTS_MAX 4096 /* workers on one node */
#define WORLD_NAME_MAX  253  /* bytes of a host name, RFC 1035 */

struct world_node {
    char *name;
    int slots; /* workers on this node */
};

struct world {
    int generation;
    int node_count;
    struct world_node *nodes; /* owned, in rank order */
    char *kind;               /* start, grow, shrink, fault */
    char *reason;             /* one line */
    char *master_addr;
    int master_port; /* 0: the node of rank 0 picks it (of a gang) */
    int restarts;    /* faults so far; never resizes */
    int replica;     /* nodes that are one data-parallel unit, in rank order; at least 1 */

    /* world_fold(): the lists of a message, so that it is not made anew for each node; NULL: they
     * have not been folded. */
    char *folded_names, *folded_slots;
    int folded_size; /* workers */
};

struct world *world_create(int generation, int node_count);
void world_destroy(struct world *world);
int world_set_node(struct world *world, int index, const char *name, int slots);
/* All nodes have been set: many messages will be made. Without memory nothing is folded. */
void world_fold(struct world *world);

/* Can it be the name of a node? 1 to 253 of [A-Za-z0-9._-], and '-' not first. NULL cannot. */
bool world_name_ok(const char *name);
int world_size(const struct world *world); /* workers */
int world_first_rank(const struct world *world, int node_index);
/* The node that a rank is on, -1: there is no such rank. */
int world_node_of(const struct world *world, int64_t rank);

/* The members `world`, `nodes`, `slots`, … of a `start` message (doc/internals/protocol.md), both
 * ways. world_from_json checks types and bounds. */
json_object *world_to_json(const struct world *world);
struct world *world_from_json(json_object *msg, struct error *err);

/* The names of the nodes and their numbers of workers, in rank order as Slurm writes them:
 * "n[1-3,7],m1", "2(x3),1". New strings, NULL when out of memory. With suffixes also names that
 * differ in the middle are folded, "n[1-3]-ib", which Slurm 22.05 cannot read. */
char *world_fold_names(const struct world *world, bool suffixes);
char *world_fold_slots(const struct world *world);

/* The way back: a world with these nodes and nothing else, NULL with err. Text that stands for more
 * nodes than SIZES_NODES_MAX is refused before it takes memory. A name may appear twice. */
struct world *world_unfold(int generation, const char *names, const char *slots, struct error *err);

/* The same from names alone: each node has one worker, and the generation is 0. */
struct world *world_unfold_names(const char *names, struct error *err);

/* What a worker's environment needs besides the world. Strings may be NULL where they do not
 * apply. */
struct world_place {
    int node_index;
    int local_rank;
    const char *job_id;      /* of the base */
    const char *incarnation; /* "12.0" */
    const char *step_id;     /* of the base's step, NULL: unknown */
    int min_nodes, max_nodes;
    int max_restarts;
    const char *event_file, *error_file, *run_dir, *state_dir, *checkpoint_dir;
    const char *scale_config;            /* JSON text */
    const char *scale_configs;           /* scale_config of all world sizes; NULL: none */
    const char *lib;                     /* path of libelastic.so */
    const char *release;                 /* of elasticrun */
    const char *python;                  /* directory of the Python package; NULL: not there */
    const char *store;                   /* path of the agent's store; NULL: none */
    const char *mlflow_uri, *mlflow_run; /* NULL: no run of MLflow that goes with the job */
    int attempt;                         /* number of this start of a world */
    int cpus;           /* of all workers of the node, as its role says; 0: it does not say */
    char *const *added; /* "K=V" more, where the user has not set K; NULL: nothing */
    char *const *role;  /* the same, of its role; NULL: nothing */
};

/* The environment of a worker, from three parts. `user` is the environment of the base's step
 * ("K=V"), cleaned. `own` is the environment of this member's own job, for names that belong to the
 * node. Then follow our own variables. A new NULL-terminated array; free with strings_free. */
char **world_environment(const struct world *world, const struct world_place *place,
                         char *const *user, char *const *own);

/* Host files as text, new strings. Sorted by name. */
char *world_discover_hosts(const struct world *world); /* Horovod's script */
char *world_hostfile_openmpi(const struct world *world);
char *world_hostfile_mpich(const struct world *world);
char *world_generation_json(const struct world *world, const char *incarnation, double unix_time);

#endif

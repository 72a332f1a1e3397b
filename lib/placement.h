/* SPDX-License-Identifier: GPL-2.0-or-later */
/* On which nodes elastic jobs should be, and which extension jobs leave first. Pure.
 *
 * Two things make nodes belong together: the switches above them, and their shape (their hardware).
 * Nothing here decides whether a job fits a node. The answers are sets of nodes that Slurm is to
 * try in turn, the best set first.
 *
 * A set of nodes is an array of bool with one element for each node. */
#ifndef ELASTIC_PLACEMENT_H
#define ELASTIC_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

#define PLACEMENT_NONE (-1)

/* The nodes of a cluster. The arrays belong to the caller. */
struct placement_map {
    int node_count;
    /* The shape of each node. PLACEMENT_NONE: not known. Nodes without a known shape count as
     * alike. */
    const int *shape;
    const int *leaf;  /* the switch of each node, PLACEMENT_NONE: none */
    int switch_count; /* 0: no switches are known, all nodes are equally near */
    /* The switch above each switch, PLACEMENT_NONE: it is at the top. No circles. */
    const int *parent;
};

/* Levels from the leaf switches to the top, at least 1. A map without switches has one level. */
int placement_levels(const struct placement_map *map);

/* The switch above the switch `at`. A switch at the top gives itself, PLACEMENT_NONE gives
 * PLACEMENT_NONE. */
int placement_next_above(const struct placement_map *map, int at);

/* How far two nodes are from each other. This is the number of levels up from the leaf switches to
 * the first switch above both nodes; 0 for nodes on the same leaf switch. Where no switch is above
 * both nodes, it is the number of levels. */
int placement_distance(const struct placement_map *map, int a, int b);

#define PLACEMENT_TIERS_MAX 12
#define PLACEMENT_ANY       (-2) /* of tier.level and tier.shape: does not matter */

/* Nodes to be tried. */
struct placement_tier {
    bool *nodes;
    int count; /* of nodes */
    int level; /* of the switch above all nodes, 0: a leaf. PLACEMENT_ANY: no particular switch */
    int above; /* that switch; PLACEMENT_NONE: none, or several (of the base's nodes) */
    int shape; /* of all nodes, PLACEMENT_NONE: not known. PLACEMENT_ANY: any shape */
    int free;  /* free nodes among them; of bases only */
    bool nearest; /* these very nodes are the nearest, below several leaf switches */
};

struct placement_tiers {
    int count;
    struct placement_tier tier[PLACEMENT_TIERS_MAX];
};

/* The nodes by which a running elastic job may still grow. They should have the leaf switch and the
 * shape of the job's first node. */
struct placement_claim {
    int node;
    int growth; /* nodes, 0 or less: none */
};

/* Clear those free nodes into which running jobs are to grow, so that the next job goes elsewhere.
 * 0, or -1 when out of memory. */
int placement_keep(const struct placement_map *map, const struct placement_claim *claims, int count,
                   bool *free_nodes);

/* The nodes of a cluster from a job's point of view. */
struct placement_room {
    const bool *usable; /* nodes that the job may have at all */
    const bool *idle;   /* of the usable nodes: no job has them now */
    const bool *free;   /* of the idle nodes: they are not kept for other jobs */
};

/* The sets of nodes to be tried for a base job of min nodes that may grow to max.
 *
 * The first set is the leaf switch where max nodes of one shape are free, and as few more as
 * possible. Where no leaf switch has that many, it is the lowest switch that has. Below that switch
 * the leaf switch with the most free nodes follows, if it has min of them. Where no switch at all
 * has that many, it is the leaf switch with the most. The set of all usable nodes, which the caller
 * tries last, is not among the results.
 *
 * Returns 0, or -1 when out of memory. The caller clears tiers in both cases. */
int placement_base(const struct placement_map *map, const struct placement_room *room, int min,
                   int max, struct placement_tiers *tiers);

/* The sets of nodes to be tried for an extension of min nodes. Its elastic job has `nodes` now and
 * may have `growth` more (at least min). In this order:
 *
 * 1. The min idle nodes of the job's shape that are nearest to its nodes (nearest.h). Where these
 * are below one leaf switch: all usable nodes of the shape there.
 *
 * 2. Nodes of the job's shape on its leaf switches, then below the next switches up, and so on.
 *
 * 3. The same as 2. without regard to the shape.
 *
 * Below other leaf switches than the job's own, the leaf switch where growth nodes of the shape are
 * free, and as few more as possible, comes first; else the leaf switch with the most. The set of
 * all usable nodes, which the caller tries last, is not among the results. No set comes twice.
 *
 * A job's shape is the shape of most of its nodes. Result: as placement_base. */
int placement_extension(const struct placement_map *map, const struct placement_room *room,
                        const bool *nodes, int min, int growth, struct placement_tiers *tiers);

void placement_tiers_clear(struct placement_tiers *tiers);

enum placement_kind {
    PLACEMENT_RIGID,
    PLACEMENT_EXTENSION,
    PLACEMENT_BASE,
};

/* A job that may be preempted. */
struct placement_candidate {
    uint32_t job;
    enum placement_kind kind;
    int64_t priority; /* jobs of lower priority are preempted first, as the site has it */
    int64_t start;    /* when the job began, in seconds */
    int nodes;        /* nodes of the job, and of a base's extensions those in `extended` */
    int usable;       /* of these nodes, the number that the request could use */
    int distance;     /* of an extension: distance of its farthest node from its base */
    int extended;     /* of a base: nodes that it has by extensions which may leave as well, as far
                       * as placement_node_counts() */
};

/* Does a node of an extension count as one that the base has grown by? The extension has at least
 * as much of a resource there as the base has on a node of its own, which has base_amount on
 * base_nodes nodes. The caller asks this of each resource that the base has: cores, memory, GPUs.
 * So nobody makes a job larger by a core on each of many nodes, or by nodes without the GPUs that
 * others need. */
bool placement_node_counts(int64_t amount, int64_t base_amount, int base_nodes);

/* Is a job spared for as long as others are enough? A base is, for its extensions would leave with
 * it. But no more nodes are spared than the extensions have. A base with more nodes of its own
 * counts as a rigid job: one small extension is no reason to take the nodes of somebody else. */
bool placement_is_spared(const struct placement_candidate *candidate);

/* The nodes that count when the job leaves. These are its own nodes, and with a spared base also
 * the nodes of its extensions. */
int placement_cost(const struct placement_candidate *candidate);

/* Does a rigid job leave, while a spared base of a lower priority stays that is of use to the
 * request? leaves has one element for each candidate. */
bool placement_passes_over(const struct placement_candidate *list, int count, const bool *leaves);

/* Which jobs are to leave for a request that lacks `need` nodes (> 0).
 *
 * `order` has room for count indices of list. It is filled with all jobs in the order in which they
 * are best preempted: by priority; extensions before rigid jobs; spared bases last; far from their
 * base before near; younger before older; larger job ids first.
 *
 * A spared base is compared with rigid jobs by its own priority. Against extensions it is raised.
 * It comes directly after the extensions of the highest priority, but before each rigid job whose
 * priority is above its own. Of raised bases those of lower priority come first. So no rigid job
 * leaves for a base of a lower priority.
 *
 * Then the jobs that leave are moved to the front, in that order, and their number is returned.
 * Four rules choose them, the first one first:
 *
 * 1. No job leaves that is later in the order than needed. Extensions and rigid jobs of one
 *    priority count as equal if no raised base is between them.
 * 2. No rigid job leaves where spared bases before it are enough.
 * 3. No spared base leaves where other jobs are enough: extensions, and rigid jobs before it.
 * 4. No set of jobs that costs fewer nodes in all (placement_cost) would do.
 *
 * Of equal sets, the first in the order above is taken.
 *
 * 0: all jobs together are not enough. -1: out of memory. */
int placement_victims(const struct placement_candidate *list, int count, int need, int *order);

#endif

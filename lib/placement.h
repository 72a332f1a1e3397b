/* SPDX-License-Identifier: GPL-2.0-or-later */
/* On which nodes elastic jobs should be, and which extension jobs leave first. Pure.
 *
 * Two things make nodes belong together: the switches above them, and their shape (what they are
 * made of). Nothing here decides whether a job fits a node: the answers are sets of nodes, the best
 * one first, that Slurm is to try in turn.
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
    const int
        *shape;      /* of each node, PLACEMENT_NONE: not known. Those are alike among themselves */
    const int *leaf; /* the switch of each node, PLACEMENT_NONE: none */
    int switch_count;  /* 0: no switches are known, all nodes are equally near */
    const int *parent; /* of each switch, PLACEMENT_NONE: it is at the top. No circles */
};

/* Levels from the leaf switches to the top, at least 1. A map without switches has one. */
int placement_levels(const struct placement_map *map);

/* The switch above one, itself at the top. PLACEMENT_NONE stays that. */
int placement_next_above(const struct placement_map *map, int at);

/* How far two nodes are from each other: the number of levels up from the leaf switches to the first
 * switch above both, 0 on the same one; the number of levels where no switch is above both. */
int placement_distance(const struct placement_map *map, int a, int b);

#define PLACEMENT_TIERS_MAX 12
#define PLACEMENT_ANY       (-2) /* of tier.level and tier.shape: does not matter */

/* Nodes to be tried. */
struct placement_tier {
    bool *nodes;
    int count; /* of nodes */
    int level; /* of the switch that they are below, 0: a leaf. PLACEMENT_ANY: none in particular */
    int above; /* that switch; PLACEMENT_NONE: none or several (of the base's nodes) */
    int shape; /* theirs, PLACEMENT_NONE: not known. PLACEMENT_ANY */
    int free;  /* of them, the number that was free; of bases only */
    bool nearest; /* the very nodes that are, below several leaf switches */
};

struct placement_tiers {
    int count;
    struct placement_tier tier[PLACEMENT_TIERS_MAX];
};

/* What a running elastic job may still grow by, next to its first node: that has the leaf switch and
 * the shape of the nodes it should have. */
struct placement_claim {
    int node;
    int growth; /* nodes, 0 or less: none */
};

/* Clear those of the free nodes that running jobs are to grow into, so that the next one goes
 * elsewhere. 0, or -1 if there is no memory. */
int placement_keep(const struct placement_map *map, const struct placement_claim *claims, int count,
                   bool *free_nodes);

/* Which nodes there are for a job. */
struct placement_room {
    const bool *usable; /* it may have at all */
    const bool *idle;   /* of those: that nobody has now */
    const bool *free;   /* of those: that are not kept for others */
};

/* The sets of nodes to be tried for a base job of min nodes that may grow to max.
 *
 * First the leaf switch where max nodes of one shape are free, and as few more as possible; where
 * no leaf has so many, the lowest switch that has, and of the leaves below it the one with the most
 * (if that has min). Where there is no such switch at all, the leaf with the most. What the caller
 * tries last, all of usable, is not among them.
 *
 * 0, or -1 if there is no memory. The caller clears tiers in both cases. */
int placement_base(const struct placement_map *map, const struct placement_room *room, int min,
                   int max, struct placement_tiers *tiers);

/* The sets of nodes to be tried for an extension of min nodes of an elastic job that may have growth
 * more (at least min) and has nodes now. First the min idle ones of its shape that are nearest to
 * them (nearest.h); where those are below one leaf switch, all that are usable there. Then those of its
 * shape on its leaf switches; then below the next switches up, and so on; then the same without
 * regard to the shape. Below other than its own leaf switches, first the leaf where growth nodes of
 * its shape are free, and as few more as possible, else the one with the most. What the caller tries
 * last, all of usable, is not among them, nor the same set twice.
 *
 * A job's shape is that of most of its nodes. Result: as placement_base. */
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
    int64_t priority; /* lower ones are preempted first, as the site has it */
    int64_t start;    /* when it began, in seconds */
    int nodes;        /* that it has, and that leave with it */
    int usable;       /* of them, those that the request could use */
    int distance;     /* of an extension: of its farthest node from its base */
};

/* Which jobs are to leave for a request that lacks need nodes (> 0).
 *
 * order: room for count indices of list; they are put into the order in which the jobs are best
 * preempted: by priority, where that of a base is at least that of every extension; bases last of
 * their priority; extensions before rigid jobs; far from their base before near; younger before older;
 * larger job ids first.
 *
 * Then those that leave are moved to the front, in that order, and their number is returned: no job
 * leaves whose priority is higher than that of all that would do; of those that need be looked at then
 * no base leaves where anything else does, and no set with fewer nodes in all would do. Of equal sets,
 * it is the first in that order.
 * 0: all together would not do. -1: no memory. */
int placement_victims(const struct placement_candidate *list, int count, int need, int *order);

#endif

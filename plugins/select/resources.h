/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What running jobs have of the nodes: cores, memory and GRES such as GPUs. */
#ifndef ELASTIC_SELECT_RESOURCES_H
#define ELASTIC_SELECT_RESOURCES_H

#include <stdbool.h>
#include <stdint.h>

struct job_record; /* slurmctld's */

#define RESOURCES_GRES_MAX 16 /* names of GRES, such as gpu, that one job has */

/* One name of GRES, in all. */
struct resources_gres {
    uint32_t name, type; /* Slurm's numbers of them */
    bool typed;          /* all of it is of that type */
    int64_t count;
};

/* What a job has in all. */
struct resources {
    int nodes;
    int64_t cores;
    int64_t memory; /* 0 where Slurm does not count it */
    int gres_count;
    struct resources_gres gres[RESOURCES_GRES_MAX];
};

/* False: it is not known. Or the job has GRES of more names. */
bool resources_of(const struct job_record *job, struct resources *resources);

/* Has a job at least as much of its node as the other job has of one of its own, by
 * placement_node_counts() for each resource of the other job? number: the place of the node among
 * the nodes of the job, from 0. */
bool resources_match(const struct job_record *job, uint32_t number, const struct resources *other);

#endif

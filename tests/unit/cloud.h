/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A cloud with spot zones that come and go, and one job on it, in virtual time: lib/pools decides,
 * or a rigid policy of the literature does. For tests/unit/test_pools.c and bench/spot.
 *
 * A node is paid for from the moment when the cloud grants it. It works when it has booted. Nodes
 * that are lost are chosen at random. A zone that has no more nodes refuses at once. */
#ifndef ELASTIC_TESTS_CLOUD_H
#define ELASTIC_TESTS_CLOUD_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/pools.h"

#define CLOUD_ZONES_MAX 8

/* Nodes that a zone has, one sample each `gap` seconds. */
struct cloud_trace {
    int gap, count;
    int *nodes;
};

struct cloud_job {
    const struct cloud_trace *zones[CLOUD_ZONES_MAX];
    int zone_count;
    int first;          /* sample at which the job begins */
    uint64_t seed;      /* of the nodes that are lost, and of boots; not 0 */
    const char *sizes;  /* MIN:MAX */
    int base;           /* on-demand nodes that the job always has */
    int nodes;          /* of a rigid job; the work is in hours of so many nodes */
    double hours;       /* work */
    double deadline;    /* hours; 0: none */
    double boot;        /* seconds */
    double boot_spread; /* a boot takes from 1 - spread to 1 + spread of that */
    double pause;       /* seconds, when the world changes */
    double suspend;     /* seconds that a node costs after it was given back */
    double spot_price;  /* of a node hour; on-demand nodes cost 1 */
    double budget;      /* 0: none */
    double refusal;     /* the share of on-demand requests that fail */
    bool waits;         /* requests for spot nodes wait in Slurm; else they are refused */
    int zone_nodes;     /* max_nodes of a spot pool; 0: no limit */
    int max_resume;     /* of on-demand nodes; 0: no limit */
    double overhead;    /* share of the speed that is lost at `nodes` nodes */
    enum pools_mode mode;
    double after;
    double no_demand_until; /* hours: no on-demand node can be had before */
    /* Called with each decision; may be NULL. */
    void (*check)(const struct pools_input *in, const struct pools_memory *memory,
                  const struct pools_output *out, void *cookie);
    void *cookie;
};

struct cloud_result {
    bool done;
    double hours;                    /* until the work was done */
    double cost;                     /* in node hours of on-demand nodes */
    double spot_hours, demand_hours; /* of nodes, booting ones too */
    int changes, decisions;
};

enum cloud_rigid { CLOUD_GREEDY, CLOUD_UNIFORM };

/* Returns -1 when out of memory. */
int cloud_run(const struct cloud_job *job, struct cloud_result *result);

/* The same work by a job that always has `nodes` nodes of one kind, or none: Wu et al., Can't Be
 * Late (NSDI 2024). Greedy: spot nodes until only on-demand nodes are in time. Uniform Progress:
 * on-demand nodes also when it is behind an even pace. */
void cloud_run_rigid(const struct cloud_job *job, enum cloud_rigid policy,
                     struct cloud_result *result);

/* What it costs if all is known beforehand, and nothing takes time: no policy is cheaper. */
double cloud_bound(const struct cloud_job *job, int max);

#endif

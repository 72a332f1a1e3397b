/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The place of this task in its job, and how many workers its node runs. */
#ifndef ELASTIC_AGENT_PLACE_H
#define ELASTIC_AGENT_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/options.h"
#include "lib/error.h"

struct place {
    uint32_t job, restarts;
    int nodeid, localid;
    int nodes; /* of the step; of the job where there is no step */
    const char *node;
    bool in_step;
};

/* Read the environment of this task, and make it alike for all versions of Slurm: without the step
 * id of a batch script, and with SIGCHLD not blocked. -1 with err: this is no job, or no task that
 * srun has started on each node. */
int place_read(struct place *place, struct error *err);

/* The number of workers on this node, from --nproc-per-node, the GPUs and the tasks of each node. 0
 * with err: there are none. */
int place_slots(const struct place *place, const struct options *options, struct error *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs that ask nodes for their shape: one srun for each partition, all at once, until a
 * deadline. */
#ifndef SELASTIC_TOPOLOGY_RUN_H
#define SELASTIC_TOPOLOGY_RUN_H

#include "cmd/topology_answers.h"

struct topology_step {
    const char *partition; /* NULL: Slurm's default */
    char **nodes;          /* NULL-terminated; owned */
    int count;
};

/* Run the steps. answers takes what the nodes say; nodes that say nothing have a reason afterwards.
 * -1 with err if nothing could be started. */
int topology_run(const struct topology_step *steps, int count, int timeout,
                 struct topology_answers *answers, struct error *err);

#endif

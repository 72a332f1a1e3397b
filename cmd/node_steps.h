/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs that ask nodes something: one srun for each partition, all at once, until a deadline. Each
 * task runs `selastic` of the same path, which answers in lines of node_answers.h. */
#ifndef SELASTIC_NODE_STEPS_H
#define SELASTIC_NODE_STEPS_H

#include "cmd/node_answers.h"

struct node_step {
    const char *partition; /* NULL: Slurm's default */
    char **nodes;          /* NULL-terminated; owned */
    int count;
};

struct node_question {
    const char *job_name;
    const char *const *words; /* after the program's name; NULL-terminated, at most 8 */
};

/* Run the steps. answers takes what the nodes say; nodes that say nothing have a reason afterwards.
 * A signal that asks for an end ends the steps, and this returns. timeout: seconds. -1 with err if
 * nothing could be started. */
int node_steps_run(const struct node_question *question, const struct node_step *steps, int count,
                   int timeout, struct node_answers *answers, struct error *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `selastic wait` waits for, and whether it has come. Pure. */
#ifndef SELASTIC_WAIT_RULE_H
#define SELASTIC_WAIT_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include <json-c/json.h>

#include "common/slurm_client.h"
#include "lib/error.h"

/* All that is asked for has to hold at the same time. */
struct wait_goal {
    int min, max;      /* nodes; 0: not asked for */
    int64_t step;      /* of all generations together; 0: not asked for */
    const char *state; /* one of the documented words; NULL: not asked for */
    bool ended;        /* the end of the job, and nothing else */
};

/* "4" or "4:8"; "1000"; a state. -1 with err: what was written, and what would be right. */
int wait_goal_size(struct wait_goal *goal, const char *text, struct error *err);
int wait_goal_step(struct wait_goal *goal, const char *text, struct error *err);
int wait_goal_state(struct wait_goal *goal, const char *text, struct error *err);
/* Is anything asked for, and can it be? */
int wait_goal_check(const struct wait_goal *goal, struct error *err);

enum wait_verdict {
    WAIT_ON,
    WAIT_REACHED,
    WAIT_ENDED, /* the job has ended before it was reached */
    WAIT_NEVER, /* this job cannot reach it: err says why */
};

/* kind is the job's in Slurm: what is known last. state is the leader's answer (shape.h), NULL if
 * it has not answered. */
enum wait_verdict wait_decide(const struct wait_goal *goal, enum job_state_kind kind,
                              json_object *state, struct error *err);

/* How many seconds after the n-th question in a row (n = 0, 1, ...) Slurm is asked again, while no
 * leader answers. */
int wait_pause(int n);

#endif

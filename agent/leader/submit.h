/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the leader asks of Slurm: sbatch for extension jobs, and their end. */
#ifndef ELASTIC_AGENT_LEADER_SUBMIT_H
#define ELASTIC_AGENT_LEADER_SUBMIT_H

#include <stdbool.h>
#include <stdint.h>

struct leader;
struct submit;

/* NULL: out of memory. */
struct submit *submit_create(void);
void submit_destroy(struct submit *submit);

/* Submit an extension of that many nodes, to begin after delay seconds. One at a time. */
void submit_extension(struct leader *leader, int nodes, int increments, double delay);
/* Cancel these jobs; last: the job is ending, and nothing follows. */
void submit_cancel(struct leader *leader, const uint32_t *jobs, int count, bool last);

/* Does an sbatch run? */
bool submit_submitting(const struct leader *leader);
/* … or a cancellation? */
bool submit_busy(const struct leader *leader);
/* Submissions so far: tells whether one fell into a look at Slurm. */
int submit_count(const struct leader *leader);
/* No sbatch before that time (leader_now), since one was refused. */
double submit_after(const struct leader *leader);
/* Why the latest sbatch was refused; "" if it was not. */
const char *submit_error(const struct leader *leader);
void submit_forget_error(struct leader *leader);
/* Have all extensions been cancelled at the end? */
bool submit_cleaned(const struct leader *leader);
/* The extensions are another leader's: none is cancelled at the end. */
void submit_disown(struct leader *leader);

#endif

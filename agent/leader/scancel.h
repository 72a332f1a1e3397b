/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The leader asks Slurm to end extension jobs. */
#ifndef ELASTIC_AGENT_LEADER_SCANCEL_H
#define ELASTIC_AGENT_LEADER_SCANCEL_H

#include <stdbool.h>
#include <stdint.h>

struct leader;
struct scancel;

/* NULL: out of memory. */
struct scancel *scancel_create(void);
void scancel_destroy(struct scancel *scancel);

/* Cancel these jobs; last: the job is ending, and nothing follows. */
void scancel_jobs(struct leader *leader, const uint32_t *jobs, int count, bool last);
/* Is a cancellation under way? */
bool scancel_busy(const struct leader *leader);
/* Have all extensions been cancelled at the end? */
bool scancel_cleaned(const struct leader *leader);
/* The extensions are another leader's: none is cancelled at the end. */
void scancel_disown(struct leader *leader);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When lib/plan is asked again, and what it has to know of growth so far. */
#ifndef ELASTIC_AGENT_LEADER_PLANNING_H
#define ELASTIC_AGENT_LEADER_PLANNING_H

#include "lib/plan.h"

struct leader;
struct planning;

/* NULL: out of memory. */
struct planning *planning_create(void);
void planning_destroy(struct planning *planning);

/* Plan again after so many seconds at the latest. */
void planning_later(struct leader *leader, double seconds);
/* A plan is being made. */
void planning_begins(struct leader *leader);

/* Growth has failed, or nodes were lost: the next growth waits for a while. */
void planning_setback(struct leader *leader);
/* An extension that was asked for then has failed, or Slurm takes it back: so does this, for longer
 * each time. */
void planning_taken_back(struct leader *leader, double asked);
/* … or does not, since a user or a program wants nodes now. */
void planning_forget_setback(struct leader *leader);
struct setbacks planning_setbacks(const struct leader *leader);
/* An extension of so many increments was asked for; 0: that has come to nothing. */
void planning_note_increments(struct leader *leader, int increments);
int planning_last_increments(const struct leader *leader);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What should be: lib/plan is asked, and the answer is carried out. */
#ifndef ELASTIC_AGENT_LEADER_DECIDE_H
#define ELASTIC_AGENT_LEADER_DECIDE_H

#include <stdbool.h>

#include "lib/plan.h"

struct leader;

/* Plan again after so many seconds at the latest. */
void decide_later(struct leader *leader, double seconds);
/* Growth has failed, or nodes were lost: the next growth waits for a while. */
void decide_setback(struct leader *leader);
/* … or does not, since a user or a program wants nodes now. */
void decide_forget_setback(struct leader *leader);
/* An extension of so many increments was asked for; 0: that has come to nothing. */
void decide_note_increments(struct leader *leader, int increments);

/* What should be, now (struct change_questions). 0, and the caller clears *out; -1: out of
 * memory. */
int decide_plan(void *leader, bool only_warm, struct plan_output *out);
/* May this leader begin what cannot be taken back? */
bool decide_may_act(void *leader);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What should be: lib/plan is asked, and the answer is carried out. */
#ifndef ELASTIC_AGENT_LEADER_DECIDE_H
#define ELASTIC_AGENT_LEADER_DECIDE_H

#include <stdbool.h>

#include <uv.h>

#include "lib/plan.h"

/* It is time to: the callback of the timer that planning.c sets. */
void decide_now(uv_timer_t *timer);
/* What should be, now (struct change_questions). 0, and the caller clears *out; -1: out of
 * memory. */
int decide_plan(void *leader, bool only_warm, struct plan_output *out);
/* May this leader begin what cannot be taken back? */
bool decide_may_act(void *leader);

#endif

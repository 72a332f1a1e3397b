/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The job that has the service next: it is submitted, announces itself, and takes over
 * (lib/service_handover.h). Both jobs' sides. */
#ifndef ELASTIC_AGENT_LEADER_SERVICE_NEXT_H
#define ELASTIC_AGENT_LEADER_SERVICE_NEXT_H

#include <stdbool.h>

#include "lib/error.h"

struct leader;
struct leader_service;
struct service_task;

/* Of the job that has the service, or has handed it: what is due. */
void service_next_watch(struct leader *leader);
/* The other job that has the service is there, as it says (a claim's answer). */
void service_next_others(struct leader *leader, const struct service_task *task);
/* This job has the service from now on, by that claim. */
void service_next_mine(struct leader *leader, const struct service_task *task);
/* The user wants the next job to be submitted now. -1 with err: that cannot be. */
int service_next_ask(struct leader *leader, struct error *err);
/* Is there, or will there be, anything to say of a handover? */
bool service_next_any(const struct leader *leader);
/* Seconds until the next try to claim. */
double service_next_pause(const struct leader *leader);
/* The leader is about to be gone: a question to Slurm may still be under way. */
void service_next_forget(struct leader_service *own);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A small process between slurmstepd and the agent of a base node, for as long as the agent lives.
 *
 * srun's exit status is the highest of its tasks: an agent that is killed would make it 137, even
 * if the training ends well on the other nodes. So the task that slurmstepd has started only waits,
 * and starts the agent again. The new agent joins the leader as any newcomer does. The old agent
 * leaves the addresses of possible leaders in memory that both share. */
#ifndef ELASTIC_SUPERVISE_H
#define ELASTIC_SUPERVISE_H

#include <stdbool.h>
#include <sys/types.h>

#include "agent/leader_places.h"

/* The name of the process in ps. */
#define SUPERVISE_NAME "elasticrun-wait"

/* What an agent leaves to the agent that is started in its place. */
struct agent_handover {
    int starts;      /* starts of an agent; 1: this is the first agent */
    bool stepd_gone; /* slurmstepd has ended, and so has the process in between */
    bool known;      /* the first agent has had a leader, and the fields below are complete */
    int term;
    struct leader_places places;
};

/* Returns in the agent: the record that the agent keeps up to date, NULL if no process is between
 * it and slurmstepd. The process in between never returns. It ends as the agent does. After a
 * signal it waits `pause` seconds and starts another agent, if that agent can find a leader, a few
 * times. */
struct agent_handover *supervise(double pause);

/* The slurmstepd of the agent's step. Its SIGTERM is for the agent only. The process in between
 * hands its SIGTERM and SIGINT, notices (lib/drain_notices.h) and signals for the training program
 * on to the agent. */
pid_t supervise_stepd(void);

/* Does slurmstepd not watch this agent any more? spoiled: srun has heard of a task that was
 * killed. */
bool supervise_lost(const struct agent_handover *agent_handover, bool *spoiled);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A small process between slurmstepd and the agent, for as long as the agent of a base node lives.
 *
 * srun's status is the highest of its tasks: an agent that is killed would make it 137, however well the training ends on the other nodes. So the task that slurmstepd has
 * started only waits, and starts the agent again: that joins the leader as any newcomer does. It says which leaders there may be in memory that both share. */
#ifndef ELASTIC_SUPERVISE_H
#define ELASTIC_SUPERVISE_H

#include <stdbool.h>
#include <sys/types.h>

#include "agent/successor.h"

/* What ps calls it. */
#define SUPERVISE_NAME "elasticrun-wait"

/* What an agent leaves to the one that is started in its place. */
struct agent_handover {
    int starts;      /* of agents; 1: this is the first one */
    bool stepd_gone; /* slurmstepd has ended, and so has the process in between */
    bool known;      /* the first agent has had a leader, and what follows is complete: */
    char leader[256];
    int leader_port, term;
    int count;
    struct agent_handover_successor {
        int port;
        char address[256];
    } successors[SUCCESSORS_MAX];
};

/* Returns in the agent: what it has to keep up to date, NULL if there is nobody between it and slurmstepd. The process in between never returns. It ends as the agent does; after a
 * signal it waits for `pause` seconds and starts another one, if that can find a leader, a few times. */
struct agent_handover *supervise(double pause);

/* The slurmstepd of the agent's step, whose SIGTERM is for the agent only. */
pid_t supervise_stepd(void);

/* Does slurmstepd not watch this agent any more? spoiled: srun has heard of a task that was killed. */
bool supervise_lost(const struct agent_handover *agent_handover, bool *spoiled);

#endif

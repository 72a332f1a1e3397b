/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent: what one elasticrun is in its job. It is always a member. It leads, or may lead if
 * the leader is lost. */
#ifndef ELASTIC_AGENT_AGENT_H
#define ELASTIC_AGENT_AGENT_H

#include <uv.h>

#include "agent/leader/leader.h"
#include "agent/member/member.h"
#include "lib/error.h"

struct agent;

struct agent_options {
    /* What is the same for whoever leads the job. The rest comes from agent_lead(), or from the
     * leader before. */
    struct leader_options lead;
    struct member_options
        member; /* its hooks, and for the node that leads its port, are filled in */
};

/* Nothing is begun yet. done(code, arg) is called once, from the loop, when neither member nor
 * leader has anything left to do. What options point to must
 * outlive the agent. NULL: out of memory. */
struct agent *agent_create(uv_loop_t *loop, const struct agent_options *options,
                           void (*done)(int code, void *arg), void *arg);
/* Be the job's first leader. */
int agent_lead(struct agent *agent, const struct leader_options *options, struct error *err);
/* Be a member: of the leader at options' address, or of the own one. */
int agent_join(struct agent *agent, struct error *err);
/* Slurm or the user has told this process to end. */
void agent_leave(struct agent *agent, const char *reason);
/* job_submit/elastic says that a node of this job is drained, or no longer (lib/drain_notices.h).
 * NULL: there is no agent yet. */
void agent_notice(struct agent *agent);
/* Slurm or the user has sent a signal that is for the training program. */
void agent_pass_signal(struct agent *agent, int number);
/* Free; only when the loop has nothing left to do. NULL is accepted. */
void agent_destroy(struct agent *agent);

#endif

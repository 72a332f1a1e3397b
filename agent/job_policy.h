/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The policy of a job, put together by the agents of its base. */
#ifndef ELASTIC_AGENT_JOB_POLICY_H
#define ELASTIC_AGENT_JOB_POLICY_H

#include "agent/options.h"
#include "lib/conf.h"
#include "lib/error.h"
#include "lib/policy.h"

struct roles;

/* Fill policy, which is empty: the command line wins, then the environment, then the file of
 * --elastic-config, then elastic.conf. Where elastic.conf names no pools, conf gets one for each
 * partition that the policy or a role names. roles may be NULL. -1 with err. */
int job_policy_build(struct policy *policy, const struct options *options,
                     const struct roles *roles, struct conf *conf, struct error *err);

/* Can a step of that many nodes begin a job of this policy? -1: no, and err says what would be
 * right. */
int job_policy_check_size(const struct policy *policy, int nodes, struct error *err);

#endif

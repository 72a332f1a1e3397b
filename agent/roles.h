/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What one elasticrun is in its job: always a member, and the leader, or one that may lead if
 * the leader is lost. */
#ifndef ELASTIC_ROLES_H
#define ELASTIC_ROLES_H

#include <uv.h>

#include "agent/leader/leader.h"
#include "agent/member/member.h"
#include "lib/error.h"

struct roles;

struct roles_options {
    /* What is the same for whoever leads the job. The rest comes from roles_lead(), or from the
     * leader before. */
    struct leader_options lead;
    struct member_options
        member; /* its hooks, and for the node that leads its port, are filled in */
};

/* Nothing is begun yet. done(code, arg) is called once, from the loop, when neither member nor
 * leader has anything left to do. What options point to must
 * outlive the roles. NULL: out of memory. */
struct roles *roles_create(uv_loop_t *loop, const struct roles_options *options,
                           void (*done)(int code, void *arg), void *arg);
/* Be the job's first leader. */
int roles_lead(struct roles *roles, const struct leader_options *options, struct error *err);
/* Be a member: of the leader at options' address, or of the own one. */
int roles_join(struct roles *roles, struct error *err);
/* Slurm or the user has told this process to end. */
void roles_leave(struct roles *roles, const char *reason);
/* Free; only when the loop has nothing left to do. NULL is accepted. */
void roles_destroy(struct roles *roles);

#endif

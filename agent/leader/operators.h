/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slurm's operators and administrators may use selastic with the jobs of others, as scontrol. */
#ifndef ELASTIC_LEADER_OPERATORS_H
#define ELASTIC_LEADER_OPERATORS_H

#include <sys/types.h>

#include "agent/leader/leader.h"

struct operators;

struct operators *operators_create(void);
void operators_destroy(struct operators *operators); /* accepts NULL */

/* This user was refused. If Slurm says that it is an operator, the next try will succeed; it
 * will as a guest's (agent/leader/fit_desk.h) if the service allows it. */
void operators_stranger(struct leader *leader, uid_t uid);

#endif

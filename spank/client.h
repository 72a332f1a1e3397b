/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The plugin in sbatch, salloc and srun. */
#ifndef ELASTIC_SPANK_CLIENT_H
#define ELASTIC_SPANK_CLIENT_H

#include <slurm/spank.h>

#include "lib/error.h"

/* Before any option is read: remove what an elastic job has left in the environment of this
 * command, which may run in the script of that job. */
void client_forget_outer_job(spank_t sp);

/* After the options: merge and check the policy, and send it along. Does not return if the policy
 * is wrong. */
int client_send_policy(spank_t sp);

/* Write err as the command's one line of error and end it. */
void client_refuse(const struct error *err) __attribute__((noreturn));

#endif

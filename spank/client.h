/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The plugin in sbatch, salloc and srun. */
#ifndef ELASTIC_SPANK_CLIENT_H
#define ELASTIC_SPANK_CLIENT_H

#include <slurm/spank.h>

#include "lib/error.h"

/* Before any option is read: forget what an elastic job around this command has left in the
 * environment. */
void client_forget_outer_job(spank_t sp);

/* After the options: merge and check the policy, and send it along. Does not return if it is
 * wrong. */
int client_send_policy(spank_t sp);

/* Write err as the command's one line of error and end it. */
void client_refuse(const struct error *err) __attribute__((noreturn));

#endif

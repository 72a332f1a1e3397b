/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic doctor --nodes LIST`: some nodes are asked by a job step whether they are like this
 * host. */
#ifndef SELASTIC_DOCTOR_STEP_H
#define SELASTIC_DOCTOR_STEP_H

#include "cmd/arguments.h"
#include "lib/doctor.h"

/* Add what is found on the nodes of arguments->hostlist. conf: a hash of this host's elastic.conf.
 * -1 with err: no node could be asked. */
int doctor_step(const struct arguments *arguments, const struct doctor_facts *facts,
                const char *conf, struct doctor *doctor, struct error *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The facts of this host and its Slurm, for lib/doctor.h. */
#ifndef SELASTIC_DOCTOR_LOOK_H
#define SELASTIC_DOCTOR_LOOK_H

#include "lib/doctor.h"

struct doctor_look;

/* Look at everything. It takes seconds at most where something does not answer. */
struct doctor_look *doctor_look_create(void);
void doctor_look_destroy(struct doctor_look *look);

const struct doctor_facts *doctor_look_facts(const struct doctor_look *look);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The time that a subcommand may take. libslurm's calls can neither be given a time limit nor be interrupted, so while one
 * runs it is a signal that ends the program, with a message. */
#ifndef SELASTIC_DEADLINE_H
#define SELASTIC_DEADLINE_H

#include <stdbool.h>

#define DEADLINE_MS 5000

/* The time runs from now on. */
void deadline_start(void);

/* Milliseconds that are left; at least 500, so that what comes last has a chance. */
int deadline_left(void);
bool deadline_over(void);

/* Around calls of slurm_client.h: between the two the end of time ends the program. */
void deadline_enter_slurm(void);
void deadline_leave_slurm(void);

#endif

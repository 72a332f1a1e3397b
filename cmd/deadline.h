/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The time limit of a subcommand.
 *
 * Calls of libslurm cannot be given a time limit or be interrupted. So while one runs, a signal
 * ends the program with a message when the time is over. It is not SIGALRM, whose handler libslurm
 * takes away while it talks to munged. */
#ifndef SELASTIC_DEADLINE_H
#define SELASTIC_DEADLINE_H

#include <stdbool.h>

#include "cmd/command.h"

#define DEADLINE_MS 5000

/* The time runs from now on. */
void deadline_start(void);
/* The same with another time, and with the exit status that its end has. */
void deadline_start_for(int ms, enum exit_status status);

/* Milliseconds that are left; at least 500, so that the last step has a chance. */
int deadline_left(void);
bool deadline_over(void);

/* Around calls of slurm_client.h: between the two the end of time ends the program. */
void deadline_enter_slurm(void);
/* Around a loop that ends in time unless one of its threads hangs. */
void deadline_enter_threads(void);
void deadline_leave(void);

#endif

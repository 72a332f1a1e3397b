/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeping Slurm's SIGTERM from ending a worker before it has saved (term_guard.c). */
#ifndef ELASTIC_CLIENT_TERM_GUARD_H
#define ELASTIC_CLIENT_TERM_GUARD_H

#include <sys/types.h>

/* From now on SIGTERM from this process is ignored, and anybody else's ends the process as before. Does nothing if the
 * program has a handler of its own, or ignores the signal. */
void term_guard_install(pid_t stepd);

/* The same in front of the handler that there is now, which gets what anybody else sends. Does nothing without
 * term_guard_install() before, in this process or in the one that it was forked off. */
void term_guard_chain(void);

#endif

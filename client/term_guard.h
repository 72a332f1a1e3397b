/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeping Slurm's SIGTERM from ending a worker before it has saved (term_guard.c). */
#ifndef ELASTIC_CLIENT_TERM_GUARD_H
#define ELASTIC_CLIENT_TERM_GUARD_H

#include <sys/types.h>

/* From now on SIGTERM from the process stepd is ignored; SIGTERM from any other process ends this
 * process as before. Does nothing if the program has a handler of its own, or ignores the
 * signal. */
void term_guard_install(pid_t stepd);

/* The same in front of the handler that is installed now, which gets SIGTERM from all other
 * processes. Does nothing without an earlier term_guard_install() in this process or in its
 * parent. */
void term_guard_chain(void);

#endif

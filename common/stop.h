/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When to stop: after a signal, or after a time limit. For a process that does one thing. */
#ifndef ELASTIC_COMMON_STOP_H
#define ELASTIC_COMMON_STOP_H

#include <stdbool.h>

/* From now on SIGHUP, SIGINT, SIGTERM, and the end of that many seconds (0: no limit), ask to stop.
 * Earlier requests are forgotten. */
void stop_watch(int seconds);

/* The process ends after that many seconds in any case, by SIGALRM: whatever the parent process has
 * blocked or ignored. */
void stop_limit(int seconds);

/* Until the next stop_watch(): look() says, too, whether to stop, and is asked often; by several
 * threads, but one at a time. NULL: nobody does. */
void stop_when(bool (*look)(void *arg), void *arg);

/* The signal that has asked to stop, SIGALRM for the time limit, and for look(); 0: go on. A system
 * call that waits ends with EINTR after a request, and again each second. */
int stop_asked(void);

/* Has anything ever asked to? Also if that was forgotten, for a clean-up that has its own time. */
int stop_was_asked(void);

#endif

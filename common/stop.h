/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When to stop: a signal, or the end of the time that there is. One process has one of it. */
#ifndef ELASTIC_COMMON_STOP_H
#define ELASTIC_COMMON_STOP_H

/* From now on SIGHUP, SIGINT and SIGTERM, and the end of so many seconds (0: there is none), ask to stop; what has asked before is forgotten. */
void stop_watch(int seconds);

/* The signal that has asked, SIGALRM for the time; 0: go on. A call that waits ends with EINTR then, once more each
 * second. */
int stop_asked(void);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process that runs with a user's rights outside of all jobs, and must end.
 *
 * Whatever else the user runs may stop it (SIGSTOP), and with it its own alarm clock. */
#ifndef ELASTIC_FLUSH_GUARD_H
#define ELASTIC_FLUSH_GUARD_H

#include <sys/types.h>

enum guarded {
    GUARD_ENDED,   /* by itself, or by a signal of its user */
    GUARD_STOPPED, /* somebody has stopped it: killed */
    GUARD_LATE,    /* its time was over: killed */
    GUARD_STUCK,   /* one of these two, but it does not end: it waits for a file system */
};

/* Wait for this child, at most `limit` seconds, and kill it if it is stopped meanwhile. A child
 * that is killed and does not end is given up after some seconds. What asks this process to stop
 * (stop.h) is passed on to the child. Blocks SIGCHLD. */
enum guarded guard_wait(pid_t child, int limit);

#endif

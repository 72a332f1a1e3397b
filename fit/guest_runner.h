/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Has trainings for guests come one after the other: each gets the replica that trains, and gives
 * it back. A part of the runner of the service that trains. */
#ifndef FIT_GUEST_RUNNER_H
#define FIT_GUEST_RUNNER_H

#include <stdbool.h>
#include <time.h>

#include "fit/guests.h"
#include "fit/leader_link.h"

struct guest_runner {
    struct home home;
    struct service_link *link;
    const char *service;
    int64_t id;    /* whose turn it is; 0: nobody's */
    double asked;  /* the leader was, for the replica */
    int64_t noted; /* whose turn it is by the job's comment; -1: not known */
    /* Its user has asked last: when that was first seen here, and by the file system's clock. */
    struct {
        int64_t id;
        double seen;
        struct timespec at;
    } heard;
};

/* One look. *busy: somebody's turn has come. -1 with err: to be tried again. */
int guest_runner_look(struct guest_runner *runner, double now, bool *busy, struct error *err);

#endif

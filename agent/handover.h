/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the next leader has to know of a job's past (doc/internals/takeover.md).
 *
 * The leader tells it to the members of the base each time that it changes. */
#ifndef ELASTIC_AGENT_HANDOVER_H
#define ELASTIC_AGENT_HANDOVER_H

#include <stdint.h>

struct handover {
    int target;  /* the number of nodes that a user has asked for, 0: not known */
    int faults;  /* so far */
    int counted; /* faults that count against --max-restarts */
    /* That training has made in this run of the job: those of the last seconds may be missing. */
    int64_t steps;
};

#endif

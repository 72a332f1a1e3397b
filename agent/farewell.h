/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of a job whose leader cannot start. */
#ifndef ELASTIC_AGENT_FAREWELL_H
#define ELASTIC_AGENT_FAREWELL_H

#include <stdint.h>

#include "lib/conf.h"

struct farewell_options {
    uint32_t job, restarts;
    const struct conf *conf;
    /* Where the other agents look for the leader's port if none of the candidates is free. NULL:
     * not known. */
    const char *state_dir;
    int others;     /* agents of the base besides this one */
    int timeout_ms; /* for all of them to come */
};

/* Listen where the leader would, and tell each agent of the base that joins to end with code 1.
 * Returns when all have been told, or have not come in time. */
void farewell(const struct farewell_options *options);

#endif

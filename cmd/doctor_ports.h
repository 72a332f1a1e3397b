/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Can nodes connect to each other at the ports of elastic.conf? Each node of a job step listens at
 * a port that a leader of this job would have, and connects to the next node of the list. */
#ifndef SELASTIC_DOCTOR_PORTS_H
#define SELASTIC_DOCTOR_PORTS_H

#include <stdbool.h>

#include "lib/conf.h"

struct doctor_ports {
    char *peer; /* the next node; NULL: this is the only one, or not one of them */
    int port;   /* where the next node listens */
    bool listens;
    const char *why; /* it cannot be reached; NULL: it can */
};

/* Try it: it takes as long as the slowest node needs to begin, and a few seconds where one cannot
 * be reached. nodes: as Slurm writes them. */
void doctor_ports_try(const char *nodes, const struct conf *conf, struct doctor_ports *ports);
void doctor_ports_clear(struct doctor_ports *ports);

#endif

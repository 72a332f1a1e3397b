/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The port at which srun listens to slurmctld, slurmstepd and its own user. */
#ifndef ELASTIC_SRUN_PORT_H
#define ELASTIC_SRUN_PORT_H

#include <stdbool.h>

/* Does it accept connections? True also if that cannot be said (NULL, an unknown host). Takes 1.5 s at most, and what the resolver takes. srun complains of "Zero Bytes" then. */
bool srun_port_answers(const char *host, const char *port);

#endif

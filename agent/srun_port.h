/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The port at which srun listens to slurmctld, slurmstepd and its own user. */
#ifndef ELASTIC_SRUN_PORT_H
#define ELASTIC_SRUN_PORT_H

#include <stdbool.h>

/* Does the port accept connections? True also if that is not known (NULL, an unknown host). Takes
 * at most 1.5 s, and the time of the resolver. srun does not notice. */
bool srun_port_answers(const char *host, const char *port);

#endif

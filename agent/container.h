/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Does this elasticrun run in a container that Slurm's own processes do not run in? */
#ifndef ELASTIC_AGENT_CONTAINER_H
#define ELASTIC_AGENT_CONTAINER_H

#include <stdbool.h>

/* Has "/" the same file system in two texts of /proc/PID/mountinfo? Also true if a text does not
 * say what is mounted at "/". */
bool container_same_root(const char *one, const char *other);

/* True if "/" is another file system here than for the slurmstepd above this process. A private
 * /tmp, as job_container/tmpfs makes it, does not count. False where /proc does not tell. */
bool container_is_entered(void);

#endif

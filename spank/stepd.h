/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The plugin in slurmstepd. */
#ifndef ELASTIC_SPANK_STEPD_H
#define ELASTIC_SPANK_STEPD_H

#include <slurm/spank.h>

/* Give the step of an elastic job its environment. Never fails: a job must not end because of this
 * plugin. */
void stepd_set_environment(spank_t sp);

#endif

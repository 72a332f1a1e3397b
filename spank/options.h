/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options that sbatch, salloc and srun get from this plugin. */
#ifndef ELASTIC_SPANK_OPTIONS_H
#define ELASTIC_SPANK_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <slurm/spank.h>

#include "lib/policy.h"

/* What was given on the command line and in #SBATCH lines, the last of each option. */
struct options {
    const char *first; /* an option that was given, without dashes; NULL: none was */
    struct policy policy;
    bool policy_given; /* any other than --elastic-pool and --elastic-extend */
    char *config;      /* --elastic-config, absolute; NULL: not given */
    uint32_t extend;   /* --elastic-extend; 0: not given */
};

/* Register all options; called from slurm_spank_init in every context in which they can appear. */
int options_register(spank_t sp);

/* What has been collected until now. Belongs to this module. */
const struct options *options_given(void);

/* The names of all options, for what Slurm derives from them; the last is NULL. */
extern const char *const options_names[];

#endif

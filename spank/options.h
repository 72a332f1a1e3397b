/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options that sbatch, salloc and srun get from this plugin. */
#ifndef ELASTIC_SPANK_OPTIONS_H
#define ELASTIC_SPANK_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include <slurm/spank.h>

#include "lib/policy.h"

/* What the user has given on the command line and in #SBATCH lines, the last of each option. */
struct options {
    /* One of the given options, without "--". NULL: none was given. */
    const char *some;
    struct policy policy;
    /* Any option other than --elastic-pool and --elastic-extend. */
    bool policy_given;
    /* --elastic-config as an absolute path. NULL: not given. */
    char *config;
    /* --elastic-roles in the same way. */
    char *roles;
    /* --elastic-extend. 0: not given. */
    uint32_t extend;
};

/* Register all options. slurm_spank_init calls this in every context in which they can appear. */
int options_register(spank_t sp);

/* The options until now. The struct belongs to this module. */
const struct options *options_given(void);

/* The name of an option, without "--". The numbers begin at 0; NULL after the last option. */
const char *options_name(int number);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the sruns of an elastic job read (environment.h). */
#include "spank/environment.h"

#include <stddef.h>

const char *const environment_roles[] = {ROLES_VARIABLE, ROLES_NODES_VARIABLE, NULL};

/* srun refuses any other value of SLURM_NO_KILL than "set", "off" and "no". */
const struct environment_input environment_inputs[] = {
    {"SLURM_NO_KILL", "set"},
    {"SLURM_KILL_BAD_EXIT", "0"},
    {"SLURM_WAIT", "0"},
    {NULL, NULL},
};

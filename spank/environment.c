/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names of environment variables (environment.h). */
#include "spank/environment.h"

#include <stddef.h>

const struct environment_name environment_names[] = {
    {ENVIRONMENT_SIZES, "nodes"},
    {"ELASTIC_GRACE", "grace"},
    {"ELASTIC_GROW_DELAY", "grow_delay"},
    {"ELASTIC_SNOOZE", "snooze"},
    {"ELASTIC_FAULT_WAIT", "fault_wait"},
    {"ELASTIC_HANG_WAIT", "hang_wait"},
    {"ELASTIC_MAX_RESTARTS", "max_restarts"},
    {"ELASTIC_POOL", "pool"},
    {"ELASTIC_SIGNAL", "signal"},
    {"ELASTIC_GROW", "grow"},
    {"ELASTIC_REQUEUE", "requeue"},
    {ENVIRONMENT_POLICY, "scale_config"},
    {NULL, NULL},
};

/* srun refuses any other value of SLURM_NO_KILL than "set", "off" and "no". */
const struct environment_input environment_inputs[] = {
    {"SLURM_NO_KILL", "set"},
    {"SLURM_KILL_BAD_EXIT", "0"},
    {"SLURM_WAIT", "0"},
    {NULL, NULL},
};

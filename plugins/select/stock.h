/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slurm's own select/cons_tres, loaded beside this plugin: it decides which job fits where. */
#ifndef ELASTIC_SELECT_STOCK_H
#define ELASTIC_SELECT_STOCK_H

#include "plugins/select/compat.h"

/* Load it from PluginDir, as Slurm would. SLURM_SUCCESS, or SLURM_ERROR with a line in the log. */
int stock_load(void);
void stock_unload(void);

/* Its functions, in the order of the lists in compat.h. Only after stock_load. */
#define STOCK_FIELD(type, name, parameters, arguments) type(*name) parameters;
extern struct stock {
    OURS(STOCK_FIELD)
    STRAIGHT(STOCK_FIELD)
} stock;

#endif

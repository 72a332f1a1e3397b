/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What slurm_jobs.c, slurm_nodes.c and slurm_site.c share (slurm_client.h). */
#ifndef ELASTIC_SLURM_PRIVATE_H
#define ELASTIC_SLURM_PRIVATE_H

#include "common/slurm_client.h"

#include "common/slurm_compat.h"

/* Queries ask for this cluster only (SHOW_LOCAL): else each would first ask for the federation. */
#define QUERY_FLAGS (SHOW_ALL | SHOW_LOCAL)

/* Before and after each call of libslurm: one thread calls it at a time. */
void slurm_client_enter(void);
void slurm_client_leave(void);

/* Set err to the reason for which the last call of libslurm failed: "Slurm cannot WHAT: reason".
 * Only before slurm_client_leave(). Returns -1. */
int slurm_client_failed(struct error *err, const char *what);

/* A new string; NULL for NULL and for an empty text. */
char *slurm_client_copy(const char *text);

#endif

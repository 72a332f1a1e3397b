/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a member holds on its node: its run directory and the port that rank 0 will listen on. */
#ifndef ELASTIC_RUN_DIR_H
#define ELASTIC_RUN_DIR_H

#include <stdint.h>

#include "lib/error.h"

/* Make ROOT/elastic-UID-JOB.RESTARTS-NODE (0700) for this member's own job; what is there of the same name is removed first, and so are
 * directories of this user on this node whose agent has died. Returns the path (new string). */
char *run_dir_make(const char *root, uint32_t job, uint32_t restarts, const char *node,
                   struct error *err);

/* Remove it with all that is in it; NULL is accepted. */
void run_dir_remove(const char *path);

/* Bind a free TCP port on all interfaces and keep it bound, without listening, so that nobody else gets it. SO_REUSEADDR lets the one who listens
 * (TCPStore sets it too) bind it all the same. Returns the descriptor, -1 with err. */
int run_dir_reserve_port(int *port, struct error *err);

#endif

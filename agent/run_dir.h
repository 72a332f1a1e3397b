/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a member holds on its node: its run directory. */
#ifndef ELASTIC_RUN_DIR_H
#define ELASTIC_RUN_DIR_H

#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"

/* Make ROOT/elastic-UID-JOB.RESTARTS-NODE (0700) for this member's own job; what is there of the same name is removed first, and so are
 * directories of this user on this node whose agent has died. Returns the path (new string). */
char *run_dir_make(const char *root, uint32_t job, uint32_t restarts, const char *node,
                   struct error *err);

/* Its name, whether it exists or not. -1: it does not fit. */
int run_dir_name(char *path, size_t size, const char *root, uint32_t job, uint32_t restarts,
                 const char *node);

/* Remove it with all that is in it; NULL is accepted. */
void run_dir_remove(const char *path);

#endif

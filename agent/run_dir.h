/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a member holds on its node: its run directory, ROOT/elastic-UID-JOB.RESTARTS-NODE (0700).
 *
 * ROOT is snapshot_dir, where the prolog has made it, or where anybody may; else RUN_DIR_FALLBACK. */
#ifndef ELASTIC_RUN_DIR_H
#define ELASTIC_RUN_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/conf.h"
#include "lib/error.h"

#define RUN_DIR_FALLBACK "/dev/shm"

/* Take, or make, that of this member's own job, and hold its lock until this process ends. Directories of this user on this node whose agent has
 * died are flushed and removed: those of this job before this returns, which takes epilog_flush seconds at most for each, others in the background.
 * Returns the path (new string), or NULL with err. */
char *run_dir_make(const struct conf *conf, uint32_t job, uint32_t restarts, const char *node,
                   struct error *err);

/* The path of one of this node, which is to exist. -1: there is none. */
int run_dir_find(char *path, size_t size, const struct conf *conf, uint32_t job, uint32_t restarts,
                 const char *node);

/* The member ends. What it has made is removed, unless the epilog has to make a snapshot in it durable: the others, if there are any, do not have
 * what was done since. NULL is accepted. */
void run_dir_leave(const char *path, bool needless);

#endif

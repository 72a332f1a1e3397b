/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The run directory of a member: its files on its node, ROOT/elastic-UID-JOB.RESTARTS-NODE (0700).
 *
 * ROOT is snapshot_dir if the prolog has made it, or if every user may write there; else
 * RUN_DIR_FALLBACK. If another user has taken the name in both, ROOT is a directory of this user's
 * own in RUN_DIR_FALLBACK, with a random name. */
#ifndef ELASTIC_RUN_DIR_H
#define ELASTIC_RUN_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/conf.h"
#include "lib/error.h"

#define RUN_DIR_FALLBACK "/dev/shm"

/* Where everybody may make files there may be millions: names that are looked at. */
#define RUN_DIR_NAMES_MAX 100000

/* Take, or make, the run directory of this member's own job, and hold its lock until this process
 * ends. Run directories of this user on this node whose agent has died are flushed and removed.
 * Those of this job are done before this call returns, which takes at most epilog_flush seconds for
 * each; the others are done in the background. They are looked for among the first
 * RUN_DIR_NAMES_MAX names. Returns the path (new string), or NULL with err. */
char *run_dir_make(const struct conf *conf, uint32_t job, uint32_t restarts, const char *node,
                   struct error *err);

/* The path of an existing run directory of this node. -1: there is none. */
int run_dir_find(char *path, size_t size, const struct conf *conf, uint32_t job, uint32_t restarts,
                 const char *node);

/* The member ends. Its files are removed, unless the epilog has to make a snapshot in them durable
 * because other nodes, if there are any, do not have its newest steps. needless: no snapshot is
 * needed. NULL is accepted. */
void run_dir_leave(const char *path, bool needless);

/* A new socket for connections of this machine, bound to that name in the directory, which only
 * this user may connect to. It does not listen yet. -1 with err. */
int run_dir_socket(const char *path, const char *name, struct error *err);

#endif

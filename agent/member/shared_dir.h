/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The directory that the tasks of a job share (`shared` of the job file). */
#ifndef ELASTIC_AGENT_MEMBER_SHARED_DIR_H
#define ELASTIC_AGENT_MEMBER_SHARED_DIR_H

#include "lib/error.h"

/* Its absolute path, a new string; cwd: where a relative one begins, NULL: as it is. NULL: out of
 * memory. */
char *shared_dir_path(const char *path, const char *cwd);

/* It is there, and tasks may write to it; else -1 with err. NULL is accepted: there is none. */
int shared_dir_make(const char *path, struct error *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A job's directories, before the job begins: made, and its own (lib/job_record.h). */
#ifndef ELASTIC_AGENT_STATE_DIR_H
#define ELASTIC_AGENT_STATE_DIR_H

#include <stdbool.h>

#include "lib/error.h"
#include "lib/job_record.h"

/* Make the state directory of this job. One that belongs to an earlier job of the same number is
 * moved aside. A directory that the user has named is used as it is. Either is said in
 * one line. A directory that the user has not named is in none of another user
 * (dir_make_private()). job->first is set to the first submission that is known. */
int state_dir_take(const char *dir, bool named, struct job_record *job, struct error *err);
/* Make the checkpoint directory that the user has named. Checkpoints of another job are used; that
 * is said. */
int state_dir_take_checkpoints(const char *dir, const struct job_record *job, struct error *err);

#endif

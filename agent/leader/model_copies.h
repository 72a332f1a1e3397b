/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copies of the models of a repository on S3: a process makes them in a directory, which is then
 * the repository for all others (state/mirror.c). */
#ifndef ELASTIC_AGENT_LEADER_MODEL_COPIES_H
#define ELASTIC_AGENT_LEADER_MODEL_COPIES_H

#include <stdbool.h>

struct leader;
struct leader_service;
struct model_copies;

/* NULL: out of memory. */
struct model_copies *model_copies_create(void);
void model_copies_destroy(struct model_copies *copies);

/* Is the repository on S3? */
bool model_copies_any(const struct leader *leader);
/* Start the process if it is due, or end it. */
void model_copies_look(struct leader *leader);
/* Somebody wants it now. */
void model_copies_ask(struct leader *leader);
/* May the directory be looked at: has the process ended once? */
bool model_copies_known(const struct leader *leader);
/* What was asked for has not been copied so far. */
bool model_copies_asked(const struct leader *leader);
/* Does the process run? */
bool model_copies_run(const struct leader *leader);
/* The directory has been looked at, since a time at which it did not. */
void model_copies_scanned(struct leader *leader);
/* The end of the leader. */
void model_copies_close(struct leader *leader);

#endif

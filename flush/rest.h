/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the rights of its user could not remove of a run directory, root removes.
 *
 * A user can leave there what is not his: a file system that he has mounted, files of the
 * subordinate uids of a container, a directory of another user. */
#ifndef ELASTIC_FLUSH_REST_H
#define ELASTIC_FLUSH_REST_H

#include "flush/lock.h"
#include "flush/place.h"

/* In a process of its own, which ends within a minute: remove these run directories of one user,
 * with all that is in them. One such process of a user at a time. Only in a place that
 * is alone in its file system; none that is in use (lock_is_used(), with the terms of each). What
 * was removed and what stays is said: at the end of a pipe, *output, which ends with the process;
 * or, if output is NULL, in the system's log. 0; -1 with err. */
int rest_remove(const struct place places[PLACES_MAX], const struct place_run *runs, int count,
                const struct lock_terms *terms, int *output, struct error *err);

#endif

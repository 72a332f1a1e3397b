/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The run directories of a job that has ended on this node. */
#ifndef ELASTIC_FLUSH_END_H
#define ELASTIC_FLUSH_END_H

#include <stdbool.h>
#include <sys/types.h>

#include "flush/place.h"

/* End what still runs in the directories of one job, make their snapshots durable and remove them.
 * It prints what elastic-flush says, and waits for it for limit seconds and one more; what is not
 * done then goes on. A user has no more such processes than a few: where these hang, the
 * directories stay for a sweep. age: seconds. True: a directory stays, and nobody works on
 * it. A sweep is to see then whether the user keeps too much. */
bool end_runs(const struct place places[PLACES_MAX], const struct place_run *runs, int count,
              gid_t gid, int limit, int age);

#endif

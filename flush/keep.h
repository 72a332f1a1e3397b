/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What could not be flushed: may it stay in the run directory, and what of it? */
#ifndef ELASTIC_FLUSH_KEEP_H
#define ELASTIC_FLUSH_KEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "flush/attempt.h"
#include "lib/error.h"

/* Of all run directories together that one process flushes. */
struct keep {
    int64_t bytes; /* that may still stay; -1: no limit */
    int runs;      /* directories that may; -1: no limit */
    int max_age;   /* seconds; 0: for ever */
};

/* If it may stay, it counts. Where bytes are counted the snapshot stays alone, with the lock. No
 * manifest is read. */
bool keep_may_stay(struct keep *keep, int dir, const struct told *told, struct error *why);

#endif

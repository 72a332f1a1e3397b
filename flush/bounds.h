/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How much of what jobs have left a user keeps on this node, as root sees it.
 *
 * elastic-flush runs with the user's rights. Any process of the user may kill it, stop it, or take
 * its descriptors. So nothing that it says counts here: root looks at what is there by itself. */
#ifndef ELASTIC_FLUSH_BOUNDS_H
#define ELASTIC_FLUSH_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>

#include "flush/place.h"

struct bounds {
    bool sweep;    /* not even whether the jobs have ended is known */
    int64_t bytes; /* that may stay */
    int runs;      /* … in at most so many directories; 0: any */
    int age;       /* … for so many seconds */
    /* What users have mounted may go. The kernel may keep root waiting there for a process of the
     * user for ever. */
    bool unmounts;
    bool prints; /* what was removed is said on the standard output, else in the system's log */
};

/* Before the flush: which of the run directories have something in them. */
void bounds_look(const struct place places[PLACES_MAX], const struct place_run *runs, int count,
                 bool unmounts, bool *filled);

/* After it: remove those that are empty now, and of the others, which are of one user, those that
 * may not stay. They are taken in their order. One that is in use stays. It works in places that
 * are `alone`, and takes no longer than a minute, but for what is unmounted. Changes the working
 * directory. */
void bounds_apply(const struct place places[PLACES_MAX], const struct place_run *runs, int count,
                  const bool *filled, const struct bounds *bounds);

/* The job of that run directory lives: its time begins anew when it has ended. */
void bounds_begin_anew(const struct place *place, const char *name);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lock of a run directory, which its agent holds for as long as it lives. */
#ifndef ELASTIC_FLUSH_LOCK_H
#define ELASTIC_FLUSH_LOCK_H

#include "lib/snapshot.h"

#define LOCK_NAME "agent.lock"

enum lock {
    LOCK_LIVES,    /* a process of the job holds it */
    LOCK_UNKNOWN,  /* it is not known who does */
    LOCK_STRANGER, /* somebody does who is not of the job: no agent. Any process of the user can */
    LOCK_ENDED,    /* nobody does, so it is ours now until this process ends */
    LOCK_NONE,     /* there is no lock, or something else in its place */
};

/* Who holds the lock in this run directory? */
enum lock lock_look(int dir, const struct snapshot_run *run);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The run directories that jobs which have ended have left on this node. */
#ifndef ELASTIC_FLUSH_SWEEP_H
#define ELASTIC_FLUSH_SWEEP_H

#include "flush/place.h"

/* In a process of its own, which outlives the script that has started this one: flush and remove
 * what is left by jobs that have ended when slurmd was not there, or that could not be flushed, but
 * nothing of own's job (0: none is left out). One sweep at a time for each node, and one that
 * waits. age: seconds. */
void sweep_in_background(const struct place places[PLACES_MAX], const struct snapshot_run *own,
                         int age);

#endif

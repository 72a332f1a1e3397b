/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Snapshots of a worker's state in the memory of its node, as elastic-flush reads them.
 *
 * See doc/internals/flush.md. */
#ifndef ELASTIC_CLIENT_SNAPSHOT_H
#define ELASTIC_CLIENT_SNAPSHOT_H

#include "client/elastic.h"
#include "client/event.h"

/* Where the snapshot goes, and of which moment it is. */
struct snapshot_place {
    const char *run_dir;     /* of this node */
    const char *checkpoint;  /* the job's directory */
    const char *incarnation; /* "12.0" */
    int32_t generation;
    int64_t step;
};

/* elastic_snapshot(), in a worker that is one of those that keep the state. */
int snapshot_client_keep(const struct snapshot_place *place, const struct elastic_part *parts,
                         int count, int flags, struct event_client_error *err);

/* elastic_snapshot_wait() */
int snapshot_client_wait(int timeout_ms, struct event_client_error *err);

/* Wait for the snapshot that is being written, and free the memory. */
void snapshot_client_close(void);

#endif

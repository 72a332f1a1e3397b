/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The two buffers of a run directory, of which each holds a snapshot or is of no use. */
#ifndef ELASTIC_FLUSH_BUFFER_H
#define ELASTIC_FLUSH_BUFFER_H

#include <stdint.h>
#include <time.h>

#include "lib/error.h"
#include "lib/snapshot.h"

#define BUFFERS 2

struct buffer {
    int index; /* snapshot/INDEX */
    int dir;
    struct timespec written; /* its manifest */
    struct snapshot *snapshot;
};

/* Open the buffers below the run directory of which all but the files' content checks out: each file is there with the size that it should have, limit bytes in all at most. Returns how many, the newest first; why others are not used is said in
 * torn, which stays as it is for one that was never complete. */
int buffers_open(int run_dir, int64_t limit, struct buffer buffers[BUFFERS], struct error *torn);

void buffers_close(struct buffer *buffers, int count);

/* Open a file of it for reading. -1 with err. */
int buffer_open_file(const struct buffer *buffer, const struct snapshot_file *file,
                     struct error *err);

/* Add "snapshot/INDEX: REASON" to what is said of other buffers. */
void buffer_add_reason(struct error *torn, int index, const char *reason);

#endif

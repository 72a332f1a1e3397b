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

/* Open the complete buffers below the run directory; only the contents of their files are not
 * checked. Each file is there with the size in the manifest, and all files together have at most
 * limit bytes. Returns the number of buffers, the newest first. torn says why other buffers are not
 * used; it is unchanged for a buffer that was never complete. */
int buffers_open(int run_dir, int64_t limit, struct buffer buffers[BUFFERS], struct error *torn);

void buffers_close(struct buffer *buffers, int count);

/* Open a file of the buffer for reading. -1 with err. */
int buffer_open_file(const struct buffer *buffer, const struct snapshot_file *file,
                     struct error *err);

/* Add "snapshot/INDEX: REASON" to the text about unused buffers. */
void buffer_add_reason(struct error *torn, int index, const char *reason);

#endif

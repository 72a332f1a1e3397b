/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of the state directory, written by a thread: the file system may hang, and the leader must
 * go on. They are written one after another, in the order in which they come. */
#ifndef ELASTIC_AGENT_LEADER_SCRIBE_H
#define ELASTIC_AGENT_LEADER_SCRIBE_H

#include <stdbool.h>

#include <uv.h>

#include "lib/error.h"

struct scribe;

/* directory must outlive it. wrote is called in the loop after each file; rc < 0: with why. NULL:
 * out of memory. */
struct scribe *scribe_create(uv_loop_t *loop, const char *directory,
                             void (*wrote)(int rc, const struct error *err, void *arg), void *arg);
/* What waits is not written. Accepts NULL. */
void scribe_destroy(struct scribe *scribe);

/* Replace a file, with mode 0600, or append a line to it. text is taken over; NULL: memory was not
 * there. A text that still waits for its turn is replaced by a newer one of the same file. */
void scribe_replace(struct scribe *scribe, const char *name, char *text);
void scribe_append(struct scribe *scribe, const char *name, char *text);

/* Is anything still to be written? */
bool scribe_busy(const struct scribe *scribe);

#endif

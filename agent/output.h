/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writing workers' output to this process' stdout and stderr without blocking the loop, with
 * labels on request. */
#ifndef ELASTIC_OUTPUT_H
#define ELASTIC_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include <uv.h>

struct output;

/* Write to descriptors 1 and 2, whole lines of a rank at a time. What others write to the same pipe
 * never tears a line of at most PIPE_BUF bytes; other ranks of this output never tear a line of at
 * most 64 KiB. With label each line begins with "RANK: ", or with the name of output_label().
 * drained(arg) is called when the queue falls below the low mark after it was above the high
 * mark. */
struct output *output_create(uv_loop_t *loop, bool label, void (*drained)(void *arg), void *arg);

/* Queue output of a rank for fd 1 or 2. The beginning of a line waits for its end, or for
 * output_end_rank(). A line ends with \n; without label, \r ends one as well.
 *
 * Returns false when the queue is above its high mark (1 MiB): stop producing until drained (below
 * 256 KiB). written(bytes, arg), which may be NULL, follows when these bytes are written, or kept
 * for a line's end, or lost because nobody can read them any more. A line of more than 64 KiB is
 * cut. Callbacks come from the loop only. */
bool output_write(struct output *output, int rank, int fd, const char *data, size_t len,
                  void (*written)(size_t, void *), void *arg);

/* Descriptors 1 and 2 are now descriptors of a regular file. */
void output_redirect(struct output *output);

/* With label, lines of that rank begin with "NAME: " from now on. Without memory they begin with
 * the number. */
void output_label(struct output *output, int rank, const char *name);

/* Write the lines that a rank has begun and not ended, and forget its name. */
void output_end_rank(struct output *output, int rank);

/* Write the queue, for at most timeout_ms (a file system that hangs may take longer), then free.
 * done(arg) is called from the loop; drained and written are not called any more. */
void output_destroy(struct output *output, int timeout_ms, void (*done)(void *arg), void *arg);

#endif

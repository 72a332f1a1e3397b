/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines of a worker's output that mean a failure, whatever the worker does then
 * (--fail-pattern). */
#ifndef ELASTIC_PATTERN_H
#define ELASTIC_PATTERN_H

#include <stddef.h>

#include "lib/error.h"

#define PATTERN_LINE 1024 /* bytes of a line that are compared */

struct pattern;

/* A line whose end has not come yet. */
struct pattern_stream {
    char line[PATTERN_LINE];
    size_t used;
};

/* An extended regular expression (POSIX). NULL with err. */
struct pattern *pattern_create(const char *text, struct error *err);
/* NULL is accepted. */
void pattern_destroy(struct pattern *pattern);
/* Look at output as it comes. Returns the first line that ends in this output and matches; NULL if
 * no line does. The result is valid until the next call. */
const char *pattern_feed(const struct pattern *pattern, struct pattern_stream *stream,
                         const char *data, size_t len);

#endif

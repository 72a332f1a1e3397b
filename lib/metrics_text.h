/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Metrics as text: Prometheus's format 0.0.4, and OpenMetrics 1.0.0.
 *
 * A family has a name, a kind and a help text, which are said before its first sample. Names are
 * the caller's own, and are well-formed. Values of labels may be anything: they are escaped, and
 * what is no UTF-8 becomes '?'. Pure. */
#ifndef ELASTIC_METRICS_TEXT_H
#define ELASTIC_METRICS_TEXT_H

#include <stdio.h>

enum metrics_format {
    METRICS_PROMETHEUS, /* text/plain; version=0.0.4 */
    METRICS_OPENMETRICS,
};

enum metrics_kind {
    METRICS_GAUGE,
    METRICS_COUNTER,   /* its name ends with _total */
    METRICS_HISTOGRAM, /* its samples are written by metrics_histogram() */
    METRICS_INFO,      /* its name ends with _info, its value is 1 */
};

/* Which format a client gets for its header Accept; NULL: it has none. */
enum metrics_format metrics_format_for(const char *accept);
/* The header Content-Type. */
const char *metrics_content_type(enum metrics_format format);

struct metrics_family {
    const char *name; /* with its unit, and with _total or _info */
    enum metrics_kind kind;
    const char *unit; /* the last word of the name before _total; NULL: none */
    const char *help;
};

struct metrics_label {
    const char *name, *value;
};
#define METRICS_LABELS_MAX 8

struct metrics_writer {
    FILE *out; /* the caller's */
    enum metrics_format format;
    /* In front of the labels of each sample. */
    struct metrics_label common[METRICS_LABELS_MAX];
    int common_count;
    const struct metrics_family *said; /* the family that is being written */
};

/* A sample. labels ends with one without a name; NULL: there are none. A value that is no number is
 * written as NaN. The samples of a family follow each other. */
void metrics_sample(struct metrics_writer *writer, const struct metrics_family *family,
                    const struct metrics_label *labels, double value);

/* Cumulative counts of what was at most bounds[i], and of all. */
void metrics_histogram(struct metrics_writer *writer, const struct metrics_family *family,
                       const double *bounds, const double *counts, int buckets, double all,
                       double sum);

/* A bound as that writes it. */
#define METRICS_BOUND 32
const char *metrics_bound(double bound, char text[METRICS_BOUND]);

/* The value of a label as it is read: what cannot be written of it is replaced. Two values that are
 * the same then are one sample twice. */
void metrics_clean(char *value);

/* The end of the whole text. */
void metrics_end(struct metrics_writer *writer);

#endif

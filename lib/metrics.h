/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The metrics of elastic jobs, from the answers of their leaders to "metrics", and of a site.
 *
 * An answer may come from a leader of another user, and says whatever that user likes: what is of
 * the wrong type is left out, and the number and length of labels are limited. Pure. */
#ifndef ELASTIC_METRICS_H
#define ELASTIC_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include <json-c/json.h>

#include "lib/metrics_text.h"

/* A job by what Slurm says of it. */
struct metrics_job {
    uint32_t id;
    const char *user;    /* NULL: without this label, as in the job's own interface */
    json_object *answer; /* of its leader */
};

/* Family by family, each with all jobs. */
void metrics_jobs(struct metrics_writer *writer, const struct metrics_job *jobs, int count);

/* The same for Prometheus, as a new string. If the text of all is longer than so many bytes, who
 * says more than its share has to go, as what is longer is of no use to anybody. Those that are
 * shown come first, in their order. NULL: out of memory. */
char *metrics_jobs_text(struct metrics_job *jobs, int count, size_t most, int *shown);

/* All elastic jobs that Slurm knows. */
struct metrics_site {
    int running, pending;               /* jobs without their extensions */
    int base_nodes, extension_nodes;    /* that they have */
    int extensions, extensions_pending; /* jobs */
    int shown;                          /* jobs whose leaders have answered */
    int silent;                         /* … that were asked, and have not */
    int left_out;                       /* … that were not asked: there are too many */
    double seconds;                     /* that it took to find all this out */
};

void metrics_site(struct metrics_writer *writer, const struct metrics_site *site);

#endif

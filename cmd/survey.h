/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One question to the leaders of many jobs, many at a time. */
#ifndef SELASTIC_SURVEY_H
#define SELASTIC_SURVEY_H

#include <stdbool.h>

#include <json-c/json.h>

#include "cmd/jobs.h"
#include "cmd/query.h"

struct survey;

/* A job. */
struct survey_row {
    struct base_job job;
    char **addresses;    /* NULL: it is not asked */
    char *state_dir;     /* NULL: not known, or not of interest */
    json_object *answer; /* NULL: there is none */
    const char *why;     /* … and why; NULL: it was not asked */
    struct survey *survey;
};

/* Find out where the leader of the row's job is, if the job runs. Asks Slurm. */
void survey_prepare(struct survey_row *row, struct site *site);
/* Ask all that are prepared; the time limit is deadline.h's. An answer of another type than this
 * does not count. */
int survey_run(const struct site *site, struct survey_row *rows, int count, const char *request,
               const char *type, struct error *err);
/* What the rows have been given here. */
void survey_clear(struct survey_row *rows, int count);

#endif

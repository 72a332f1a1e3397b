/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whose a directory is: the record that elasticrun keeps in a job's state directory. Pure.
 *
 * Slurm gives the number of a job again when it has lost its state. So the record has the time of
 * submission as well. Slurm changes that time when it requeues a job: the record has the first one
 * that was seen, and the one of the latest incarnation. */
#ifndef ELASTIC_JOB_RECORD_H
#define ELASTIC_JOB_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "lib/error.h"

#define JOB_RECORD_FILE "job.json"
#define JOB_RECORD_MAX  4096 /* bytes */

struct job_record {
    char cluster[64], user[64];
    uint32_t job, restarts;
    time_t submit; /* of this incarnation, Slurm's clock */
    time_t first;  /* of the first incarnation */
};

/* A new text, free() it. NULL: out of memory. */
char *job_record_format(const struct job_record *record);
/* -1 with err: the text is no record. */
int job_record_parse(const char *text, size_t len, struct job_record *record, struct error *err);

/* Is the job that the record was written for the same job, in this or in an earlier incarnation? */
bool job_record_is_of(const struct job_record *record, const struct job_record *job);
/* "job 12 of ada, submitted 2026-03-01 12:00:00", in local time. */
void job_record_describe(const struct job_record *record, char *text, size_t size);
/* Where the directory goes: DIR.old-20260301T120000, with a number from the second try on. A new
 * string, NULL: out of memory. */
char *job_record_aside(const char *dir, time_t submit, int try);

#endif

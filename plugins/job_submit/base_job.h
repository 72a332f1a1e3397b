/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What slurmctld knows about jobs and partitions, in the plain form that admission needs.
 *
 * This file and drains.c read slurmctld's own structures, which change between micro versions of
 * Slurm. All functions are called with slurmctld's locks held, do not wait, and give
 * pointers into its records, good until the locks are released. */
#ifndef ELASTIC_JOB_SUBMIT_BASE_JOB_H
#define ELASTIC_JOB_SUBMIT_BASE_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "lib/admission.h"
#include "lib/admitted.h"

struct job_record; /* slurmctld's */

/* A job by its id. job->known is false where there is none. */
void base_job_find(uint32_t job_id, time_t now, struct admission_job *job);

/* A job by its record. */
void base_job_read(struct job_record *record, time_t now, struct admission_job *job);

/* The extensions of this run of base, with those in admitted that are no jobs yet; admitted forgets
 * those that are. pool: of the extension that asks (admission_pool). now: in microseconds.
 * siblings->nodes is a string to free with free(). */
void base_job_siblings(const struct conf *conf, const struct admission_job *base, int pool,
                       struct admitted *admitted, int64_t now, struct admission_siblings *siblings);

/* Is there a partition of that name? */
bool base_job_partition_exists(const char *name);

/* The most nodes that any of these partitions (comma list; NULL: the default one) has for one job,
 * and the name of that partition. ADMISSION_UNSET if it is not known. */
int base_job_partition_nodes(const char *partitions, const char **name);

/* The most CPUs and the most memory that a job may have of a node of these partitions (comma list).
 * 0 where that is not known, or where Slurm does not count it. True: a job there gets its nodes as
 * a whole. */
bool base_job_partition_node(const char *partitions, struct slots_size *size);

/* The longest time in minutes that a job may have by the partition and the QOS, which may be NULL;
 * ADMISSION_UNLIMITED if they have no limit, or are not known. */
int base_job_most_minutes(const char *partition, const char *qos);

/* Whether uid may change any job. */
bool base_job_is_admin(uint32_t uid);

/* When slurmctld has last read its configuration. */
time_t base_job_configured(void);

#endif

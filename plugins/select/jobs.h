/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What slurmctld knows about a job, in the plain form that lib/placement needs.
 *
 * Pointers into slurmctld's records are good until its locks are released. */
#ifndef ELASTIC_SELECT_JOBS_H
#define ELASTIC_SELECT_JOBS_H

#include <stdbool.h>

#include "lib/placement.h"

struct job_record; /* slurmctld's */

/* What a job is. A rigid one costs a few comparisons. */
enum placement_kind jobs_kind(const struct job_record *job);

/* MAX of a base, 0 if it has none that can be read. */
int jobs_max(const struct job_record *job);

/* The base of an extension: a running job of the same user with nodes. NULL: there is none. */
struct job_record *jobs_base(const struct job_record *job);

/* The order in which the site has jobs preempted, lower first. */
int64_t jobs_priority(const struct job_record *job);

/* Which elastic jobs and extensions run: all of slurmctld's jobs; one that has begun; one that has
 * ended. So nothing is searched when a job is tested. */
void jobs_read(void);
void jobs_add(const struct job_record *job);
void jobs_remove(const struct job_record *job);
void jobs_forget(void);

/* Of those: whether a job is an extension; whether there is one. */
bool jobs_is_extension(const struct job_record *job);
bool jobs_have_extensions(void);

/* How many nodes a running base has, with its extensions. */
int jobs_size(const struct job_record *base);

/* Set those of map's nodes that an elastic job has: its base's, and its extensions'. Returns how many
 * more it may have. */
int jobs_world(const struct placement_map *map, const struct job_record *base, bool *nodes);

/* Clear those of the free nodes that elastic jobs other than base (NULL: none) are to grow into. */
void jobs_keep(const struct placement_map *map, const struct job_record *base, bool *free_nodes);

/* How far the farthest node of an extension is from the nearest one of its base; 0 if it has none. */
int jobs_distance(const struct placement_map *map, const struct job_record *job);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What slurmctld knows about a job, in the form that lib/placement needs.
 *
 * Pointers into slurmctld's records are valid until its locks are released. */
#ifndef ELASTIC_SELECT_JOBS_H
#define ELASTIC_SELECT_JOBS_H

#include <stdbool.h>

#include "lib/placement.h"

struct job_record; /* slurmctld's */

/* The kind of a job. This reads its environment. */
enum placement_kind jobs_kind(const struct job_record *job);

/* MAX of a base. 0: it has no readable MAX. */
int jobs_max(const struct job_record *job);

/* The base of an extension: a running job of the same user that has nodes. NULL: there is none. */
struct job_record *jobs_base(const struct job_record *job);

/* Is it a job with roles, or an extension of one? Its nodes need not be alike, and its replicas
 * share nodes. */
bool jobs_has_roles(const struct job_record *job);

/* The order in which the site has jobs preempted, lower first. */
int64_t jobs_priority(const struct job_record *job);

/* Keep the list of running elastic jobs and extensions: read all of slurmctld's jobs; add a job
 * that has begun; remove a job that has ended. So nothing is searched when a job is tested. */
void jobs_read(void);
void jobs_add(const struct job_record *job);
void jobs_remove(const struct job_record *job);
void jobs_forget(void);

/* The kind of a running job, as it was when the job began. Its environment is not read: a job that
 * is to be preempted is asked in each test, and its user may have filled the environment. */
enum placement_kind jobs_running_kind(const struct job_record *job);

/* Is this running job an extension? Does any extension run? */
bool jobs_is_extension(const struct job_record *job);
bool jobs_have_extensions(void);

/* extended[i]: if jobs[i] is a base, the nodes that it has by those of its extensions that are
 * among the jobs, as far as resources_match(); else 0. -1: out of memory. */
int jobs_extended(struct job_record *const *jobs, int count, int *extended);

/* Set the nodes of the map that an elastic job has: those of its base and of its extensions.
 * Returns the number of nodes that it may still have. */
int jobs_world(const struct placement_map *map, const struct job_record *base, bool *nodes);

/* Clear the free nodes into which elastic jobs other than base (NULL: none) are to grow. */
void jobs_keep(const struct placement_map *map, const struct job_record *base, bool *free_nodes);

/* The distance of the farthest node of an extension from the nearest node of its base; 0 without a
 * base. */
int jobs_distance(const struct placement_map *map, const struct job_record *job);

#endif
